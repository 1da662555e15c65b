"""Worker threads take what comes, and none of them is missed."""

import threading
from typing import Any

from baton.consumers.crew import Crew
from support.waiting import wait_until


def _crew(size: int, work: Any) -> Crew:
    crew = Crew(size, name="test", work=work)
    crew.supervise()
    return crew


def test_a_group_that_ends_in_an_error_costs_no_worker() -> None:
    """Whatever it was, SystemExit included: the next groups are worked on by as many."""
    done: list[str] = []

    def work(group: Any) -> None:
        if group == ["bad"]:
            raise SystemExit
        done.append(group[0])

    crew = _crew(1, work)
    crew.submit([["bad"], ["good"]])  # type: ignore[list-item]
    wait_until(lambda: done == ["good"], what="the good group")
    wait_until(lambda: crew.free == 1, what="a free worker")
    crew.end()


def test_a_worker_that_is_gone_is_replaced() -> None:
    """The crew is of its size again after the next look."""
    crew = _crew(2, lambda _: None)
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    crew._threads[0] = ended
    crew.supervise()
    assert len(crew._threads) == 2
    assert all(thread.is_alive() for thread in crew._threads)
    crew.end()


def test_nobody_is_free_while_a_group_waits() -> None:
    """So that nothing is received into a crew that is behind."""
    gate = threading.Event()
    crew = _crew(1, lambda _: gate.wait(20))
    assert crew.free == 1
    crew.submit([[], []])
    wait_until(lambda: crew.busy == 1, what="work")
    assert crew.free == 0
    assert crew.end() == [[]]
    gate.set()
    assert crew.join(10)


def test_work_that_hangs_is_waited_for_no_longer_than_said() -> None:
    """And its thread does not keep the process."""
    gate = threading.Event()
    crew = _crew(1, lambda _: gate.wait(20))
    crew.submit([[]])
    wait_until(lambda: crew.busy == 1, what="work")
    crew.end()
    assert not crew.join(0.05)
    assert all(thread.daemon for thread in crew._threads)
    gate.set()
