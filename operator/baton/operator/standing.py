"""What one resource's passes stand on: its engine, AWS clients and reconciler, made anew whenever spec or secrets differ.

A few connections each; a pass holds one at a time. Time-outs of statements, locks and idle transactions are the login
role's own, so a frozen replica holds no document.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from typing import Final

from sqlalchemy import Connection, Engine

from baton.aws.clients import Clients
from baton.aws.errors import AwsError
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.db import selfcheck
from baton.db.access import Role
from baton.db.connect import database_engine, read_connection
from baton.db.errors import StartupRefusal
from baton.db.states import Lane
from baton.operator import ghosts
from baton.operator.api import Api, ApiError
from baton.operator.credentials import Credentials
from baton.operator.failures import Conflict
from baton.operator.specs import Wanted
from baton.reconcilers import deadletters, gauges, owner, windows
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import Guard, Mode, PassResult
from baton.reconcilers.windows import Declared
from baton.settings.model import Settings
from baton.settings.secret import Secret
from baton.telemetry import fields
from baton.workload.ground import announced, ensured

_log = logging.getLogger(__name__)

#: The pass's connection, one for a repair beside it, one to spare.
_CONNECTIONS: Final = 3


class Standing:
    """One resource's ground, for one spec and one set of credentials."""

    def __init__(
        self,
        wanted: Wanted,
        credentials: Credentials,
        *,
        ambient: Settings,
        api: Api,
        installation: str | None,
        beat: Callable[[], None],
    ) -> None:
        """Nothing is asked yet.

        :param installation: which of all operators this is; ``None``: not known.

        :raises SpecInvalid: values that do not go together.
        """
        self.generation = wanted.generation
        self.credentials = credentials
        self._wanted = wanted
        self._api = api
        self._installation = installation
        self._settings = wanted.settings(database=credentials.database, aws=credentials.aws, ambient=ambient)
        self._ends = ExitStack()
        self._engine = engine_for(self._settings, credentials.database, connections=_CONNECTIONS)
        self._ends.callback(self._engine.dispose)
        self._clients = Clients(self._settings.aws)
        self._ends.callback(self._clients.close)
        self._queues = configured(self._clients, self._settings.queues)
        self._store = Store(self._clients, self._settings.bucket, create=self._settings.queues.create)
        self._fit = False
        self.lacks: tuple[AwsError, ...] = ()
        """Why queues or bucket could not be used before the last pass. What needs the database alone is done all the same."""
        self._reconciler = Reconciler(
            self._engine,
            settings=self._settings,
            mode=wanted.mode,
            queues=self._lanes(),
            store=self._store,
            requested_by=f"reconciler {wanted.key}",
            beat=beat,
        )

    def close(self) -> None:
        """Let connections and clients go."""
        self._ends.close()

    def make_pass(self, cut: threading.Event) -> PassResult:
        """Make one pass, or as much of it as ``cut`` allows.

        :raises Conflict: another resource works on the database; nothing was repaired.
        :raises StartupRefusal: the database is not fit for the mode.
        """
        if not self._fit:
            fit(self._engine, self._wanted.mode)
            self._fit = True
        if self._wanted.mode is Mode.REPAIR:
            self._prepare()
        result = self._reconciler.run_once(cut)
        if self._wanted.mode is Mode.REPAIR and not cut.is_set():
            with read_connection(self._engine) as connection:
                self._owned(connection)
        return result

    def levels(self, result: PassResult) -> gauges.Levels:
        """How things stand now; metrics show it, too, and what the pass found and did."""
        return gauges.tell(self._engine, result, memory=self._reconciler.memory)

    def let_go(self) -> None:
        """Manage the database no longer: whoever comes next need not wait, and nothing stays suspended by it."""
        if self._wanted.mode is not Mode.REPAIR:
            return
        with self._engine.begin() as connection:
            ghosts.lay(connection, self._wanted.key.owner)

    def _prepare(self) -> None:
        """Say that the database is ours and what holds repairs back, and make again what somebody deleted."""
        key = self._wanted.key
        self._lay_ghosts()
        with self._engine.begin() as connection:
            if not owner.claim(connection, key.owner):
                raise Conflict(owner.current(connection))
            windows.declare(connection, self._declared(), set_by=key.owner)
            if self._installation is not None:
                ghosts.remember(connection, key.owner, installation=self._installation)
        self.lacks = ensured(*self._queues, self._store)
        if self._settings.queues.create:
            announced(self._clients, self._store, results=self._queues[2])
        deadletters.sweep(self._engine, self._queues)

    def _lay_ghosts(self) -> None:
        """Take back what resources left that were deleted while no operator ran."""
        if self._installation is None:
            return
        with read_connection(self._engine) as connection:
            found = ghosts.suspects(connection, besides=self._wanted.key.owner, installation=self._installation)
        for resource in found:
            try:
                if not ghosts.is_gone(self._api, resource):
                    continue
            except ApiError as error:
                _log.info("whether a resource is gone is not known", exc_info=error, extra=fields.of(loop=resource))
                continue
            with self._engine.begin() as connection:
                ghosts.lay(connection, resource)
            _log.info("what a deleted resource left was taken back", extra=fields.of(loop=resource))

    def _owned(self, connection: Connection) -> None:
        holder = owner.current(connection)
        if holder != self._wanted.key.owner:
            raise Conflict(holder)

    def _declared(self) -> list[Declared]:
        found = [Declared(Guard.WINDOW, each.reason, until=each.end, start=each.start) for each in self._wanted.windows]
        suspension = self._wanted.suspension
        if suspension is not None:
            found.append(Declared(Guard.SUSPENDED, suspension.reason, until=suspension.until))
        return found

    def _lanes(self) -> dict[Lane, Queue]:
        ingest, registrar, _ = self._queues
        return {Lane.INGEST: ingest, Lane.REGISTRAR: registrar}


def engine_for(settings: Settings, url: Secret, *, connections: int) -> Engine:
    """An engine of the operator's; nothing is asked yet."""
    return database_engine(
        url.reveal(),
        application=f"baton-operator/{version('baton')}",
        pool_size=connections,
        connect_timeout=settings.database.connect_timeout,
    )


def fit(engine: Engine, mode: Mode) -> None:
    """See that the database and the login are those that the mode needs.

    :raises StartupRefusal: they are not.
    """
    if mode is Mode.REPAIR:
        selfcheck.check(engine, role=Role.RECONCILER)
        return
    try:
        selfcheck.check(engine, role=Role.OBSERVER)
    except StartupRefusal as refusal:  # the login that may repair may look, too
        try:
            selfcheck.check(engine, role=Role.RECONCILER)
        except StartupRefusal:
            raise refusal from None
