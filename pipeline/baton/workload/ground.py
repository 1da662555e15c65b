"""The ground of one process: telemetry, database, AWS clients, queues and bucket, in that order, and undone in reverse.

A pod may start before the migration has ended, or before the database answers: it waits. A database that is not fit for
its role is refused at once. Queues and bucket are made where they are missing; a service that is away keeps no process
from starting, for whoever uses it meets it again, says so, and waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from sqlalchemy import Engine

from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.errors import AwsError
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.db import selfcheck
from baton.db.access import Role
from baton.db.connect import database_engine
from baton.settings.model import Settings
from baton.telemetry import fields, instruments
from baton.telemetry.process import watched
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a process works with. Nothing of it is made in AWS before it is asked for: :func:`ensured`."""

    engine: Engine
    clients: Clients
    ingest: Queue
    registrar: Queue
    results: Queue
    store: Store
    progress: Progress
    engine_of: Callable[..., Engine]
    """Makes another engine for this process: ``engine_of(url, pool_size=…)``."""


@contextmanager
def stood(
    settings: Settings,
    *,
    component: str,
    role: Role,
    connections: int,
    stop: threading.Event,
    metrics: tuple[str, ...],
    prepare: bool = True,
) -> Iterator[Ground | None]:
    """Stand on the ground for the length of a block; ``None`` where ``stop`` was set before the database was there.

    :param connections: of the database, at most.
    :param metrics: prefixes of the metrics to be shown from the start, at zero.
    :param prepare: see :func:`database_engine`; not for those who ask about a thousand documents at once, for a plan
        made without seeing them expects a few.
    :raises StartupRefusal: this process must not run against this database.
    :raises ValueError: the settings name no database.
    """
    release = version("baton")
    database = settings.database
    if database.url is None:
        raise ValueError("DATABASE_URL: not set")
    with ExitStack() as ends:
        watch = ends.enter_context(watched(settings, component=component, version=release))
        for prefix in metrics:
            instruments.prepare(prefix)
        engine_of = partial(
            database_engine, application=f"baton-{component}/{release}", connect_timeout=database.connect_timeout
        )
        engine = engine_of(database.url.reveal(), pool_size=connections, prepare=prepare)
        ends.callback(engine.dispose)
        if not selfcheck.wait_for_revision(engine, stop=stop):
            yield None
            return
        selfcheck.check(engine, role=role)
        clients = Clients(settings.aws)
        ends.callback(clients.close)
        ingest, registrar, results = configured(clients, settings.queues)
        store = Store(clients, settings.bucket, create=settings.queues.create)
        yield Ground(engine, clients, ingest, registrar, results, store, watch.progress, engine_of)


def ensured(*parts: Queue | Store) -> tuple[AwsError, ...]:
    """Make what is missing in AWS; what cannot be looked at now is said, and left to whoever uses it.

    :returns: what stood in the way.
    """
    met = []
    for part in parts:
        try:
            part.ensure()
        except AwsError as error:
            _say(part.name, error)
            met.append(error)
    return tuple(met)


def announced(clients: Clients, store: Store, *, results: Queue) -> bool:
    """Have the bucket tell the results queue about artifacts.

    :returns: whether it was told to only now, so that artifacts may lie there which nobody announced.
    """
    try:
        return notifications.ensure(clients, store.name, results)
    except AwsError as error:
        _say("notification", error)
        return False


def _say(what: str, error: AwsError) -> None:
    _log.warning("a part could not be looked at or made", exc_info=error, extra=fields.of(kind=what))
