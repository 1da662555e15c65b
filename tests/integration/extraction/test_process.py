"""The extraction process as it is deployed: its own role, real reading, a stop that leaves nothing behind."""

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from baton.aws.queues import configured
from baton.db.access import Role
from baton.db.errors import StartupRefusal
from baton.extraction import process
from baton.settings.loading import load
from support.tickets import entry_of
from support.waiting import wait_until


def _settings(firm: Any, role: Role, aws: Any, **more: str) -> Any:
    return load(
        {
            **aws.environ,
            "DATABASE_URL": firm.database.url(role).replace("postgresql+psycopg", "postgresql"),
            "BATON_BUCKET": firm.store.name,
            "BATON_CONSUMER_RECEIVE_WAIT": "1",
            "BATON_HEALTH_PORT": "0",
            **more,
        }
    )


def _send(clients: Any, settings: Any, firm: Any, tickets: list[Any]) -> None:
    """What the relay does."""
    queue = configured(clients, settings.queues)[0]
    queue.ensure()
    entries = []
    for ticket in tickets:
        firm.prepare("UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() WHERE id = :id", id=ticket.id)
        entries.append(entry_of(ticket))
    assert queue.send_batch(entries).failure is None


def test_the_process_extracts_and_stops_without_a_trace(firm: Any, aws: Any, clients: Any) -> None:
    """Twelve documents, one of them broken, are brought to their ends; then no row, file or process is left."""
    settings = _settings(firm, Role.EXTRACTOR, aws)
    tickets = [firm.upload(b"Letter about parcel %d.\n" % number) for number in range(11)]
    tickets.append(firm.upload(b"%PDF-1.7\nnothing of the kind", name="broken.pdf"))
    _send(clients, settings, firm, tickets)
    stop = threading.Event()
    running = threading.Thread(target=process.run, args=(settings,), kwargs={"stop": stop})
    running.start()
    try:
        ends = ("indexed", "failed", "needs_review")
        wait_until(
            lambda: all(firm.document(ticket).processing_status in ends for ticket in tickets), 60, what="extraction"
        )
        assert len(firm.rows("SELECT 1 FROM ops.consumer_heartbeat WHERE queue = 'ingest'")) == 1
    finally:
        stop.set()
        running.join(30)
    assert not running.is_alive()
    assert [str(firm.document(ticket).processing_status) for ticket in tickets] == ["indexed"] * 11 + ["failed"]
    assert len(firm.search("parcel")) == 11
    assert firm.rows("SELECT 1 FROM ops.consumer_heartbeat") == []
    assert list(Path(tempfile.gettempdir()).glob(f"baton-extraction-{os.getpid()}-*")) == []


def test_the_process_refuses_another_role(firm: Any, aws: Any) -> None:
    """As the relay, or as a superuser, it does not begin."""
    with pytest.raises(StartupRefusal):
        process.run(_settings(firm, Role.RELAY, aws), stop=threading.Event())


def test_the_process_waits_for_a_database_that_is_away(firm: Any, aws: Any) -> None:
    """It neither ends nor spins; a stop ends it."""
    settings = _settings(firm, Role.EXTRACTOR, aws, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    stop = threading.Event()
    running = threading.Thread(target=process.run, args=(settings,), kwargs={"stop": stop})
    running.start()
    running.join(1.5)
    assert running.is_alive()
    stop.set()
    running.join(20)
    assert not running.is_alive()
