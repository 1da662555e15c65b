"""The worker threads: they take groups of deliveries as they come, and none of them dies unnoticed."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from baton.consumers.holds import Delivery
from baton.telemetry import fields

_log = logging.getLogger(__name__)

Group = list[Delivery]


class Crew:
    """So many daemon threads over one queue of groups. Daemons, because work that hangs must not keep a process."""

    def __init__(self, size: int, *, name: str, work: Callable[[Group], None]) -> None:
        self._size = size
        self._name = name
        self._work = work
        self._changed = threading.Condition()
        self._waiting: deque[Group] = deque()
        self._busy = 0
        self._ended = False
        self._threads: list[threading.Thread] = []

    @property
    def free(self) -> int:
        """Workers with nothing to do; 0 while a group waits for one."""
        with self._changed:
            return self._free()

    @property
    def busy(self) -> int:
        """Groups being worked on."""
        with self._changed:
            return self._busy

    def submit(self, groups: Sequence[Group]) -> None:
        """Hand groups over to whoever is free."""
        with self._changed:
            self._waiting.extend(groups)
            self._changed.notify_all()

    def await_free(self, timeout: float) -> None:
        """Wait until somebody is free, ``timeout`` seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._free() > 0, timeout)

    def supervise(self) -> None:
        """Start what is missing of the crew; a thread that is gone is replaced, and said so."""
        with self._changed:
            alive = [thread for thread in self._threads if thread.is_alive()]
            if len(alive) < len(self._threads):
                gone = len(self._threads) - len(alive)
                _log.error("worker threads ended and are replaced", extra=fields.of(queue=self._name, count=gone))
            for _ in range(self._size - len(alive)):
                thread = threading.Thread(target=self._serve, name=f"{self._name}-worker", daemon=True)
                thread.start()
                alive.append(thread)
            self._threads = alive

    def end(self) -> list[Group]:
        """Take nothing more; returns the groups that nobody has begun."""
        with self._changed:
            self._ended = True
            left = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return left

    def join(self, timeout: float) -> bool:
        """Wait for the work in hand, ``timeout`` seconds at most; whether all of it is done."""
        deadline = time.monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(lambda: self._busy == 0, max(0.0, deadline - time.monotonic()))

    def _free(self) -> int:
        return 0 if self._waiting else self._size - self._busy

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if self._ended:
                    return
                group = self._waiting.popleft()
                self._busy += 1
                self._changed.notify_all()
            try:
                self._work(group)
            except BaseException:  # noqa: BLE001 - a worker must not die of one group
                _log.exception("a worker stumbled", extra=fields.of(queue=self._name))
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()
