"""Waking a lane's relays within milliseconds after a commit that wrote tickets.

Postgres serializes the commits of all transactions that notify, by a lock over the whole server; so the caller's
transaction never does. Its commit is observed instead, and a thread of this process sends the notification afterwards,
on a connection of its own: one for all commits of a few milliseconds. A wake-up that is lost costs its tickets the
relay's next look, a second at most; so failing is counted and otherwise silent.

SQLAlchemy tells of a commit just before it is made. The thread therefore holds the notification back until the
transaction is over: a relay that looked earlier would find nothing.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Final

import psycopg
from sqlalchemy import Connection, Engine, RootTransaction, event

from baton.db.connect import Executor
from baton.db.states import LANE_OF, EventType, Lane
from baton.db.tables import outbox
from baton.outbox.sessions import Driver, own_session
from baton.telemetry.labels import DatabaseFault
from baton.telemetry.metrics import DATABASE_ERRORS

_log = logging.getLogger(__name__)

#: Seconds between two notifications of one process; commits in between share the later one.
COALESCE: Final = 0.005
_COMMIT_POLL: Final = 0.001
#: Seconds after which an unfinished commit is given up, and a thread with nothing to do ends.
_PATIENCE: Final = 30.0
#: Seconds without an attempt after a failed one.
_PAUSE: Final = 1.0
_REGISTERED: Final = "baton.outbox.wake"


def channel(lane: Lane) -> str:
    """The notification channel on which a lane's relays listen."""
    return f"baton_outbox_{lane}"


def after_commit(executor: Executor, event_type: EventType) -> None:
    """Wake the relays of ``event_type``'s lane once the executor's open transaction is committed.

    Nothing is sent when it is rolled back. A savepoint's end decides nothing: what is registered inside one that is
    rolled back wakes relays at the outer commit, which find nothing. Never raises for a fault of the database.
    """
    connection = (
        executor if isinstance(executor, Connection) else executor.connection(bind_arguments={"clause": outbox})
    )
    transaction = connection.get_transaction()
    if transaction is None:  # the executor writes outside of any transaction that could be observed
        return
    registered = connection.info.get(_REGISTERED)
    if not isinstance(registered, _Registered) or registered.transaction is not transaction:
        registered = connection.info[_REGISTERED] = _Registered(transaction, set())
        _notifier_of(connection.engine)
    registered.lanes.add(LANE_OF[event_type])


@dataclass(slots=True)
class _Registered:
    """The lanes to wake when one transaction is committed; travels with its connection."""

    transaction: RootTransaction
    lanes: set[Lane]


_notifiers: weakref.WeakKeyDictionary[Engine, _Notifier] = weakref.WeakKeyDictionary()
_notifiers_lock = threading.Lock()


def _notifier_of(engine: Engine) -> _Notifier:
    found = _notifiers.get(engine)
    if found is None:
        with _notifiers_lock:
            found = _notifiers.get(engine)
            if found is None:
                found = _notifiers[engine] = _Notifier(engine)
                event.listen(engine, "commit", _committing)
                event.listen(engine, "rollback", _rolled_back)
                event.listen(engine, "engine_disposed", _disposed)
    return found


def _committing(connection: Connection) -> None:
    with contextlib.suppress(Exception):  # a commit never fails by what it would have told
        registered = connection.info.pop(_REGISTERED, None)
        if isinstance(registered, _Registered) and registered.transaction is connection.get_transaction():
            _notifier_of(connection.engine).expect(registered)


def _rolled_back(connection: Connection) -> None:
    with contextlib.suppress(Exception):  # the connection may be gone, and what was registered with it
        connection.info.pop(_REGISTERED, None)


def _disposed(engine: Engine) -> None:
    notifier = _notifiers.get(engine)
    if notifier is not None:
        notifier.close()


class _Notifier:
    """Sends one engine's notifications from a thread that lives while there is something to send."""

    def __init__(self, engine: Engine) -> None:
        # Weakly: an engine that nobody holds any more must be able to go, whatever this thread waits for.
        self._engine = weakref.ref(engine)
        self._condition = threading.Condition()
        self._expected: list[tuple[float, _Registered]] = []
        self._thread: threading.Thread | None = None
        self._closing = False
        self._session: Driver | None = None
        self._resume = 0.0

    def expect(self, registered: _Registered) -> None:
        """Notify when the transaction, which is about to be committed, is over."""
        with self._condition:
            self._closing = False
            self._expected.append((time.monotonic(), registered))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="outbox-wake", daemon=True)
                self._thread.start()
            self._condition.notify()

    def close(self) -> None:
        """End the thread and its connection; a later commit starts another."""
        with self._condition:
            thread, self._closing = self._thread, True
            self._condition.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1)

    def _run(self) -> None:
        while True:
            due = self._next()
            if due:
                self._notify(due)
            elif due is None:
                self._disconnect()
                with self._condition:
                    if not self._expected or self._closing:
                        self._thread = None
                        return

    def _next(self) -> set[Lane] | None:
        """The lanes of the transactions that are over; empty: look again; ``None``: the thread's end."""
        with self._condition:
            if not self._expected and not self._closing:
                self._condition.wait(_PATIENCE)
            if not self._expected or self._closing:
                self._expected.clear()
                return None
            overdue = time.monotonic() - _PATIENCE
            over = [each for _, each in self._expected if not each.transaction.is_active]
            self._expected = [
                (since, each) for since, each in self._expected if each.transaction.is_active and since > overdue
            ]
            if not over:
                self._condition.wait(_COMMIT_POLL)
            return {lane for each in over for lane in each.lanes}

    def _notify(self, lanes: set[Lane]) -> None:
        if time.monotonic() < self._resume:
            return
        try:
            session = self._connected()
            for lane in sorted(lanes):
                session.execute(f"NOTIFY {channel(lane)}")
        except Exception as error:  # noqa: BLE001 - a lost wake-up is a second's delay, and no more
            DATABASE_ERRORS.add(fault=DatabaseFault.CONNECTION)
            _log.debug("relays were not woken: %s", type(error).__name__)
            self._disconnect()
            self._resume = time.monotonic() + _PAUSE
            return
        # Not on the condition: commits that come meanwhile are to wait for the next round.
        threading.Event().wait(COALESCE)

    def _connected(self) -> Driver:
        if self._session is None:
            engine = self._engine()
            if engine is None:
                raise ConnectionError("the engine is gone")
            self._session = own_session(engine)
        return self._session

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(psycopg.Error):
                session.close()
