"""The process's own threads: none of them dies unseen, and together they end in time.

A thread whose work fails is begun again after a wait; one that hangs has no beat, and fails the liveness probe. What
ends together is told so at once, and then waited for together: one that hangs takes no time from the next group.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

from baton.consumers.backoff import Backoff, Failures
from baton.telemetry import fields
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Seconds; the longest wait before work that failed is begun again: shorter than any thread may be silent.
_BACKOFF_MAX: Final = 20.0
#: Seconds without a beat after which a thread counts as stuck.
_SILENT_AFTER: Final = 90.0

Work = Callable[[threading.Event], None]


class End(Protocol):
    """Ends something: tells it at once, and waits no longer than it is given."""

    def __call__(self, *, within: float) -> bool:
        """Return ``False`` where it has not ended after ``within`` seconds."""
        ...


class Group:
    """Threads and others that end together, in at most ``within`` seconds, when the block does."""

    def __init__(self, progress: Progress, *, within: float) -> None:
        """:param within: seconds."""
        self._progress = progress
        self._within = within
        self._members: list[tuple[str, End]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        until = time.monotonic() + self._within
        for _, end in self._members:
            end(within=0.0)
        for name, end in self._members:
            if not end(within=max(0.0, until - time.monotonic())):
                _log.warning("did not end in time; the process goes without it", extra=fields.of(loop=name))

    def begin(
        self,
        name: str,
        work: Work,
        *,
        silent_after: float = _SILENT_AFTER,
        wake: Callable[[], None] = lambda: None,
        ready: bool = True,
    ) -> None:
        """Run ``work`` in a thread until its event is set.

        :param silent_after: seconds without a beat of that name after which it counts as stuck.
        :param wake: has it look at its event.
        :param ready: whether it says nothing of the process' readiness; else it says itself when it is.
        """
        stop = threading.Event()
        thread = threading.Thread(target=_keep, args=(name, work, stop), name=name, daemon=True)

        def end(*, within: float) -> bool:
            stop.set()
            wake()
            thread.join(within)
            if thread.is_alive():
                return False
            self._progress.retire(name)
            return True

        self._progress.declare(name, silent_after=silent_after)
        if ready:
            self._progress.ready(name)
        self.add(name, end)
        thread.start()

    def add(self, name: str, end: End) -> None:
        """Have something else end with the group."""
        self._members.append((name, end))


def _keep(name: str, work: Work, stop: threading.Event) -> None:
    failures = Failures(Backoff(initial=1.0, maximum=_BACKOFF_MAX))
    while not stop.is_set():
        reason: Exception | None = None
        try:
            work(stop)
        except Exception as error:  # noqa: BLE001 - it is begun again
            reason = error
        if not stop.is_set():
            wait = failures.failed()
            extra = fields.of(loop=name, seconds=round(wait, 1))
            _log.error("a thread ended by itself, and is begun again", exc_info=reason, extra=extra)
            stop.wait(wait)
