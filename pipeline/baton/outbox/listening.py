"""How an idle relay learns of new tickets: by notification where it has a session of its own, else by looking often.

A transaction pooler takes a LISTEN and delivers nothing, so behind one the relay looks instead.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Final

import psycopg
from sqlalchemy import Engine

from baton.db.connect import pooled
from baton.db.states import Lane
from baton.outbox.sessions import Driver, own_session
from baton.outbox.wake import channel

_log = logging.getLogger(__name__)

#: Seconds between two tries to get a session to listen on.
_RETRY: Final = 10.0
#: Seconds after which a wait looks whether the relay was told to stop.
_SLICE: Final = 0.25
#: Seconds of the first look without notifications; doubled while nothing is found.
_FIRST_LOOK: Final = 0.02


class Listener:
    """One relay's ear. Not shared between threads."""

    def __init__(self, engine: Engine, *, lane: Lane) -> None:
        """:param engine: one connection of it is kept for listening; a URL that bypasses any pooler, if there is one."""
        self._engine = engine
        self._channel = channel(lane)
        self._session: Driver | None = None
        self._not_before = 0.0
        self._quiet = 0

    @property
    def listening(self) -> bool:
        """Whether notifications arrive; without, the relay looks more often."""
        return self._session is not None

    def open(self) -> None:
        """Listen from now on, where that is possible; to be called before the look whose result is waited on."""
        if self._session is not None or time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _RETRY
        driver: Driver | None = None
        try:
            driver = own_session(self._engine)
            if pooled(driver):
                _log.info("a pooler stands before the database: looking for tickets without notifications")
                self._not_before = float("inf")
                driver.close()
                return
            driver.execute(f"LISTEN {self._channel}")
        except Exception as error:  # noqa: BLE001 - an ear is a convenience
            _log.debug("notifications cannot be had: %s", type(error).__name__)
            _closed(driver)
            return
        self._session = driver

    def drain(self) -> None:
        """Forget the notifications that came so far; what they announced is seen by the next claim."""
        self._quiet = 0
        self._hear(0.0)

    def wait(self, seconds: float, *, stop: threading.Event) -> None:
        """Return when a notification arrives, ``stop`` is set, or after ``seconds`` (sooner without notifications)."""
        if self._session is None:
            doubled: float = _FIRST_LOOK * 2.0 ** min(self._quiet, 16)
            self._quiet += 1
            stop.wait(min(seconds, doubled))
            return
        deadline = time.monotonic() + seconds
        while not stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0 or self._hear(min(left, _SLICE)) or self._session is None:
                return

    def close(self) -> None:
        """Give the session back."""
        session, self._session = self._session, None
        _closed(session)

    def _hear(self, seconds: float) -> bool:
        if self._session is None:
            return False
        try:
            heard = False
            for _ in self._session.notifies(timeout=seconds, stop_after=1):
                heard = True
        except Exception as error:  # noqa: BLE001 - the next look tells whether the database is there
            _log.debug("notifications ended: %s", type(error).__name__)
            self.close()
            return True
        return heard


def _closed(session: Driver | None) -> None:
    if session is not None:
        with contextlib.suppress(psycopg.Error):
            session.close()
