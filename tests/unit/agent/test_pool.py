"""Jobs are done once each, wait in the heap and not in a thread, and a failing one harms nobody."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from baton.agent.pool import Pool
from support.waiting import wait_until


def _ignore(_job: int) -> None:
    pass


def _waiter(gate: threading.Event) -> Callable[[int], None]:
    """Handles a job by waiting for the gate."""

    def handle(_job: int) -> None:
        gate.wait(30)

    return handle


def test_every_job_is_done_once() -> None:
    """A hundred jobs over four threads are a hundred calls."""
    done: list[int] = []
    pool: Pool[int] = Pool(done.append, drop=_ignore, threads=4, backlog=200)
    pool.start()
    assert all(pool.submit(number) for number in range(100))
    wait_until(lambda: pool.counts() == (0, 0))
    pool.stop(timeout=1)
    assert sorted(done) == list(range(100))


def test_a_job_that_waits_holds_no_thread() -> None:
    """With one thread, a job that is due in an hour does not delay the next."""
    done: list[int] = []

    def handle(job: int) -> float | None:
        if job == 1:
            return 3600.0
        done.append(job)
        return None

    pool: Pool[int] = Pool(handle, drop=_ignore, threads=1, backlog=10)
    pool.start()
    pool.submit(1)
    pool.submit(2)
    wait_until(lambda: done == [2])
    assert pool.counts() == (1, 0)
    assert pool.stop(timeout=1) == [1]


def test_a_job_comes_back_when_it_is_due() -> None:
    """The seconds that a job asked for pass, and it is handled again."""
    times: list[float] = []

    def handle(_job: int) -> float | None:
        times.append(time.monotonic())
        return 0.2 if len(times) < 3 else None

    pool: Pool[int] = Pool(handle, drop=_ignore, threads=2, backlog=10)
    pool.start()
    pool.submit(1)
    wait_until(lambda: len(times) == 3)
    pool.stop(timeout=1)
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))


def test_there_is_room_for_so_many_and_no_more() -> None:
    """Threads and backlog together are the bound; a finished job makes room."""
    gate = threading.Event()
    pool: Pool[int] = Pool(_waiter(gate), drop=_ignore, threads=1, backlog=2)
    pool.start()
    assert [pool.submit(number) for number in range(4)] == [True, True, True, False]
    assert not pool.has_room
    gate.set()
    wait_until(lambda: pool.has_room)
    pool.stop(timeout=1)
    assert not pool.submit(5)


def test_an_error_drops_its_job_and_spares_the_thread() -> None:
    """The job that raised is handed back once; the next is done by the same thread."""
    dropped: list[int] = []
    done: list[int] = []

    def handle(job: int) -> float | None:
        if job == 1:
            raise RuntimeError("broken")
        done.append(job)
        return None

    pool: Pool[int] = Pool(handle, drop=dropped.append, threads=1, backlog=10)
    pool.start()
    pool.submit(1)
    pool.submit(2)
    wait_until(lambda: done == [2])
    pool.stop(timeout=1)
    assert dropped == [1]


def test_a_stop_waits_no_longer_than_it_was_given() -> None:
    """A thread that hangs does not hang the stop; what was not begun comes back."""
    gate = threading.Event()
    pool: Pool[int] = Pool(_waiter(gate), drop=_ignore, threads=1, backlog=10)
    pool.start()
    pool.submit(1)
    pool.submit(2)
    wait_until(lambda: pool.counts() == (1, 1))
    begun = time.monotonic()
    assert pool.stop(timeout=0.2) == [2]
    assert time.monotonic() - begun < 2
    gate.set()
