"""A situation is one object, whoever asks for it first."""

from __future__ import annotations

import threading

import pytest

from baton.reconcilers.aspects import Aspect
from baton.reconcilers.situation import Situation, situation


@pytest.mark.parametrize("aspect", Aspect)
def test_threads_that_ask_at_once_get_the_same_situation(aspect: Aspect) -> None:
    """Conditions built on one thread's aliases fit the FROM clause of another's."""
    threads = 8
    together = threading.Barrier(threads)
    found: list[Situation] = []

    def ask() -> None:
        together.wait()
        found.append(situation(aspect))

    asking = [threading.Thread(target=ask) for _ in range(threads)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert len({id(each) for each in found}) == 1
