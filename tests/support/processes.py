"""Processes of the pipeline as a cluster runs them, against a test's own database and queues."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import UUID

from baton.db.access import Role
from baton.db.rows import lock_document
from baton.registration import service
from support.dispatching import Desk
from support.scripted_agent import TOKEN

_PROGRAM = """
import signal, threading
from baton.settings.loading import load
from {module} import run
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
run(load(), {arguments}stop=stop)
"""
_PARTS = {
    "relay": (Role.RELAY, "baton.outbox.process", "lane=Lane.REGISTRAR, "),
    "registrar": (Role.REGISTRAR, "baton.registrar.process", ""),
    "settler": (Role.SETTLER, "baton.runs.process", ""),
    "reconciler": (Role.RECONCILER, "baton.reconcilers.process", ""),
}
TEXT = "LETTER\n\nTo: Jane Roe\nFrom: Richard Doe\n\n1 March 2024\n\nDear Ms Roe,\n\nWe write about the lease of 3 High Street."


@contextmanager
def process(desk: Desk, part: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """One process of the pipeline, ended by SIGTERM as its container would."""
    role, module, arguments = _PARTS[part]
    script = _PROGRAM.format(module=module, arguments=arguments)
    if "Lane" in arguments:
        script = f"from baton.db.states import Lane\n{script}"
    environ = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": desk.database.url(role),
        "BATON_BUCKET": desk.store.name,
        "BATON_AGENT_TOKEN": TOKEN,
        "BATON_CONSUMER_RECEIVE_WAIT": "1",
        "BATON_LOG_FORMAT": "json",
        "BATON_RUN_RETRY_INITIAL": "0.2",
        "BATON_RUN_RETRY_MAX": "1",
        "BATON_SWEEPER_INTERVAL": "0.5",
        **desk.account.environ,
        **more,
    }
    child = subprocess.Popen([sys.executable, "-c", script], env=environ)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(30)
        finally:
            child.kill()
            child.wait()
    assert child.returncode == 0, f"{part} ended with {child.returncode}"


@contextmanager
def pipeline(desk: Desk, *parts: str, **more: str) -> Iterator[None]:
    """Several of them."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(process(desk, part, **more))
        yield


def asked(desk: Desk) -> UUID:
    """A document with text that was asked to be registered."""
    document = desk.matter.document()
    desk.write_pages(document, (TEXT,))
    with desk.database.engine(Role.REGISTRAR).begin() as connection:
        found = lock_document(connection, document)
        assert found is not None
        assert service.request(connection, found) is not None
    return document
