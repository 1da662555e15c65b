"""Which loops run: one for each resource of the roster while this replica leads, none while it does not."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from baton.operator.roster import Change, Roster
from baton.operator.specs import Key
from baton.telemetry import fields

_log = logging.getLogger(__name__)


class Loop(Protocol):
    """One resource's loop."""

    def start(self) -> None:
        """Begin."""
        ...

    def tell(self, change: Change) -> None:
        """Let it know of a change."""
        ...

    def stop(self) -> None:
        """Have it end as soon as it can."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait for its end; ``False`` where it takes longer."""
        ...


class Supervisor:
    """Starts and stops loops; nothing here waits, but for :meth:`end`."""

    def __init__(self, make: Callable[[Key], Loop]) -> None:
        """:param make: makes the loop of a resource."""
        self._make = make
        self._lock = threading.Lock()
        self._loops: dict[str, Loop] = {}
        self._leaving: list[Loop] = []
        self._leads = False

    @property
    def leads(self) -> bool:
        """Whether this replica works."""
        return self._leads

    def changed(self, change: Change, key: Key) -> None:
        """Take a change of the roster's."""
        with self._lock:
            loop = self._loops.get(key.uid)
            if change is Change.GONE:
                if loop is not None:
                    loop.tell(change)
                    self._retire(key.uid)
            elif loop is not None:
                loop.tell(change)
            elif self._leads:
                self._begin(key)

    def turned(self, roster: Roster, *, leads: bool) -> None:
        """Take that this replica leads from now on, or no longer."""
        _log.info("leads" if leads else "no longer leads", extra=fields.of(count=len(self._loops)))
        known = roster.all()
        with self._lock:
            self._leads = leads
            if leads:
                for wanted in known:
                    if wanted.key.uid not in self._loops:
                        self._begin(wanted.key)
            else:
                for uid in list(self._loops):
                    self._loops[uid].stop()
                    self._retire(uid)

    def end(self, *, within: float) -> bool:
        """Stop all loops and wait; ``False`` where one takes longer than ``within`` seconds in all."""
        with self._lock:
            self._leads = False
            for uid in list(self._loops):
                self._loops[uid].stop()
                self._retire(uid)
            leaving = list(self._leaving)
        until = time.monotonic() + within
        still = [loop for loop in leaving if not loop.join(max(0.0, until - time.monotonic()))]
        return not still

    def _begin(self, key: Key) -> None:
        loop = self._make(key)
        loop.start()
        self._loops[key.uid] = loop

    def _retire(self, uid: str) -> None:
        self._leaving = [each for each in self._leaving if not each.join(0)]
        self._leaving.append(self._loops.pop(uid))
