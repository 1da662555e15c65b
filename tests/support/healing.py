"""A reconcile loop in a process of its own, beside work whose latency is measured."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any

from baton.db.access import Role
from baton.db.connect import database_engine
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import Mode
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from support.databases import Database


@dataclass(frozen=True, slots=True)
class Healer:
    """The process's switches."""

    go: Event
    """Set: passes are made; cleared: none."""
    idle: Event
    """Set while no pass is on its way."""


@contextmanager
def healing(database: Database, *, interval: float, **limits: Any) -> Iterator[Healer]:
    """Run it until the block ends; it waits for ``go``.

    :param interval: seconds between two passes.
    :param limits: of the loop's settings.
    """
    context = multiprocessing.get_context("spawn")
    healer, end = Healer(context.Event(), context.Event()), context.Event()
    healer.idle.set()
    process = context.Process(target=_heal, args=(database.direct_url(Role.RECONCILER), interval, limits, healer, end))
    process.start()
    try:
        yield healer
    finally:
        end.set()
        healer.go.set()
        process.join(60)
        if process.is_alive():
            process.kill()


def _heal(url: str, interval: float, limits: dict[str, Any], healer: Healer, end: Event) -> None:
    engine = database_engine(url, application="healer", pool_size=2)
    settings = Settings(reconcile=Reconcile(backstop_rows=0, scrub_rate=0.0, **limits))
    reconciler = Reconciler(engine, settings=settings, mode=Mode.REPAIR)
    stop = threading.Event()
    while not end.is_set():
        healer.go.wait()
        if end.is_set():
            break
        healer.idle.clear()
        reconciler.run_once(stop)
        healer.idle.set()
        end.wait(interval)
    engine.dispose()
