"""Signs of life: is every loop of the process moving, and can the process do its work.

A loop declares how long it may be silent and beats as it goes round; liveness is nothing but
that. Readiness is said by the parts themselves: the first success makes a part ready, a reason
makes it unready again. Both are about this process only, so its own clock is good enough.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one probe."""

    healthy: bool
    details: dict[str, str]
    """What is said of each loop or part, by its name."""


@dataclass(slots=True)
class _Loop:
    silent_after: float
    last: float
    beats: int = 0


class Progress:
    """The signs of life of one process, shared between its threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._loops: dict[str, _Loop] = {}
        self._unready: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._started = False
        self._settled = False

    def declare(self, name: str, *, silent_after: float) -> None:
        """Announce a loop that beats at least every ``silent_after`` seconds, from now on.

        The process is not ready before the loop's first ``ready``.
        """
        with self._lock:
            self._declare(name, silent_after)

    def declare_another(self, name: str, *, silent_after: float) -> str:
        """The same where one of that name may not have ended yet; returns the name that is this one's alone."""
        with self._lock:
            own, number = name, 1
            while own in self._loops:
                number += 1
                own = f"{name} ({number})"
            self._declare(own, silent_after)
        return own

    def _declare(self, name: str, silent_after: float) -> None:
        self._loops[name] = _Loop(silent_after, self._clock())
        self._parts[name] = "ready"
        self._unready[name] = "has not succeeded yet"

    def beat(self, name: str) -> None:
        """Say that a loop is moving; one that was not declared is none of ours."""
        with self._lock:
            loop = self._loops.get(name)
            if loop is not None:
                loop.last = self._clock()
                loop.beats += 1

    def ready(self, name: str, remark: str = "ready") -> None:
        """Say that a loop or part can do its work.

        :param remark: what is said of it; words without content.
        """
        with self._lock:
            self._parts[name] = remark
            self._unready.pop(name, None)
            self._settle()

    def not_ready(self, name: str, reason: str) -> None:
        """Say that a loop or part cannot do its work, and why, in words without content."""
        with self._lock:
            self._parts[name] = "ready"
            self._unready[name] = reason

    def retire(self, name: str) -> None:
        """Say that a loop has ended as it should; it is not missed from now on."""
        with self._lock:
            self._loops.pop(name, None)
            self._unready.pop(name, None)
            self._parts.pop(name, None)

    def started(self) -> None:
        """Say that the process has started all that it runs."""
        with self._lock:
            self._started = True
            self._settle()

    def settled(self) -> bool:
        """Whether the process has been ready before, or is."""
        with self._lock:
            return self._settled

    def _settle(self) -> None:
        self._settled = self._settled or (self._started and not self._unready)

    def liveness(self) -> Finding:
        """Healthy while no loop has been silent for longer than it declared."""
        with self._lock:
            now = self._clock()
            silences = {name: now - loop.last for name, loop in self._loops.items()}
            stuck = {name for name, loop in self._loops.items() if silences[name] > loop.silent_after}
        details = {
            name: f"silent for {silence:.1f} s" if name in stuck else f"beat {silence:.1f} s ago"
            for name, silence in silences.items()
        }
        return Finding(not stuck, details)

    def readiness(self) -> Finding:
        """Healthy when the process has started and no part says otherwise."""
        with self._lock:
            details = self._parts | self._unready
            healthy = self._started and not self._unready
            if not self._started:
                details["start"] = "has not finished"
        return Finding(healthy, details)

    def startup(self) -> Finding:
        """Healthy once the process has started and each of its loops has gone round once."""
        with self._lock:
            waiting = {name: "has not gone round yet" for name, loop in self._loops.items() if not loop.beats}
            if not self._started:
                waiting["start"] = "has not finished"
        return Finding(not waiting, waiting)
