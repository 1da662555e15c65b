"""Which threads carry out redrives: one for each reconciler that has some unfinished, none while this replica waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from baton.operator.redrives import Place, phase_of, place_of, unfinished
from baton.operator.roster import Change, Roster
from baton.operator.specs import Key


class Loop(Protocol):
    """One reconciler's redrives."""

    @property
    def place(self) -> Place:
        """Which reconciler's."""
        ...

    def start(self) -> None:
        """Begin."""
        ...

    def wake(self) -> None:
        """Let it look at once."""
        ...

    def stop(self) -> None:
        """Have it end as soon as it can."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait for its end; ``False`` where it takes longer."""
        ...


class Crew:
    """Starts threads where there is work; nothing here waits, but for :meth:`end`."""

    def __init__(self, make: Callable[[Place], Loop]) -> None:
        """:param make: makes the loop of a reconciler."""
        self._make = make
        self._lock = threading.Lock()
        self._loops: dict[Place, Loop] = {}
        self._leaving: list[Loop] = []
        self._leads = False

    def changed(self, redrives: Roster) -> None:
        """Take that some redrive is another."""
        with self._lock:
            if self._leads:
                places = {place_of(each) for each in redrives.all() if not phase_of(each).final}
                for place in places - self._loops.keys():
                    self._begin(place)
            for loop in self._loops.values():
                loop.wake()

    def reconciler_changed(self, change: Change, key: Key) -> None:
        """Take that a reconciler is another: what waited for it looks again."""
        if change is Change.STATUS:
            return
        with self._lock:
            loop = self._loops.get(Place(key.namespace, key.name))
            if loop is not None:
                loop.wake()

    def may_end(self, redrives: Roster, loop: Loop) -> bool:
        """Whether a loop that finds nothing left may end; from then on it is none of ours.

        One that was told to stop may have been followed by another, which stays.
        """
        with self._lock:
            if self._loops.get(loop.place) is not loop:
                return True
            if unfinished(redrives, loop.place):
                return False
            del self._loops[loop.place]
            self._leaving = [each for each in self._leaving if not each.join(0)]
            self._leaving.append(loop)
            return True

    def turned(self, redrives: Roster, *, leads: bool) -> None:
        """Take that this replica leads from now on, or no longer."""
        with self._lock:
            self._leads = leads
            if not leads:
                self._stop_all()
        if leads:
            self.changed(redrives)

    def end(self, *, within: float) -> bool:
        """Stop all and wait; ``False`` where one takes longer than ``within`` seconds in all."""
        with self._lock:
            self._leads = False
            self._stop_all()
            leaving = list(self._leaving)
        until = time.monotonic() + within
        still = [loop for loop in leaving if not loop.join(max(0.0, until - time.monotonic()))]
        return not still

    def _begin(self, place: Place) -> None:
        loop = self._make(place)
        self._loops[place] = loop
        loop.start()

    def _stop_all(self) -> None:
        for loop in self._loops.values():
            loop.stop()
        self._leaving.extend(self._loops.values())
        self._loops.clear()
