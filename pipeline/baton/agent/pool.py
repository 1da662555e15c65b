"""A bounded number of threads over a bounded number of jobs, some of which are not due yet.

A job that has to wait (for a retry, or because it was told to be late) waits in the heap and not in a thread, so that
an object store which is away for one run does not stop the others.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

Job = TypeVar("Job")


class Pool(Generic[Job]):
    """Threads that call `handle(job)`, which returns None when the job is done or the seconds until it is due again.

    A job whose handling raises is dropped with a log line and handed to `drop`; the thread goes on.
    """

    def __init__(
        self, handle: Callable[[Job], float | None], *, drop: Callable[[Job], None], threads: int, backlog: int
    ) -> None:
        self._handle = handle
        self._drop = drop
        self._room = threads + backlog
        self._jobs: list[tuple[float, int, Job]] = []
        self._order = itertools.count()
        self._working = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, name=f"agent-{n}", daemon=True) for n in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> bool:
        """Take a job; False when there is no room or the pool is stopping."""
        with self._changed:
            if self._stopping or len(self._jobs) + self._working >= self._room:
                return False
            self._push(job, delay=0.0)
            return True

    @property
    def has_room(self) -> bool:
        """Whether a job would be taken now."""
        with self._changed:
            return not self._stopping and len(self._jobs) + self._working < self._room

    def counts(self) -> tuple[int, int]:
        """Jobs waiting and jobs in a thread."""
        with self._changed:
            return len(self._jobs), self._working

    def stop(self, *, timeout: float) -> list[Job]:
        """Take no more jobs and wait for those in a thread, at most `timeout` seconds; returns the jobs not begun."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._stopping = True
            left = [job for _due, _order, job in sorted(self._jobs, key=lambda entry: entry[:2])]
            self._jobs.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return left

    def _push(self, job: Job, *, delay: float) -> None:
        heapq.heappush(self._jobs, (time.monotonic() + delay, next(self._order), job))
        self._changed.notify()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            again: float | None = None
            try:
                again = self._handle(job)
            except Exception:
                logger.exception("a run was dropped by an error of the agent")
                self._drop(job)
            with self._changed:
                self._working -= 1
                if again is not None and not self._stopping:
                    self._push(job, delay=again)

    def _next(self) -> Job | None:
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                if self._jobs and self._jobs[0][0] <= now:
                    self._working += 1
                    return heapq.heappop(self._jobs)[2]
                self._changed.wait(self._jobs[0][0] - now if self._jobs else None)
        return None
