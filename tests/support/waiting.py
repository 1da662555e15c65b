"""The one way in which a test waits: a condition with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def wait_until(
    predicate: Callable[[], Seen], timeout: float = 10.0, *, interval: float = 0.02, what: str = "the condition"
) -> Seen:
    """Ask `predicate` every `interval` seconds until its answer is true, and return that answer.

    Raises AssertionError with `what` and the last answer after `timeout` seconds. An exception of
    the predicate's goes straight to the test.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what} did not hold within {timeout:g} s; last seen: {answer!r}")
        time.sleep(interval)
