"""Waits grow, stay bounded, and differ between consumers."""

from hypothesis import given
from hypothesis import strategies as st

from baton.consumers.backoff import Backoff, Failures


@given(st.integers(min_value=-5, max_value=10**9))
def test_a_wait_is_never_zero_nor_longer_than_its_maximum(failures: int) -> None:
    """For any number of failures."""
    assert 0.5 <= Backoff(initial=1.0, maximum=30.0).seconds(failures) <= 30.0


def test_waits_double_from_failure_to_failure() -> None:
    """Between half and all of 1, 2, 4, 8 seconds."""
    waits = Failures(Backoff(initial=1.0, maximum=100.0))
    for whole in (1, 2, 4, 8):
        assert whole / 2 <= waits.failed() <= whole


def test_a_success_begins_anew() -> None:
    """After it the first wait is short again."""
    waits = Failures(Backoff(initial=1.0, maximum=100.0))
    for _ in range(10):
        waits.failed()
    waits.succeeded()
    assert waits.failed() <= 1.0


def test_two_consumers_do_not_wait_in_step() -> None:
    """Their waits after the same failure differ."""
    assert len({Backoff().seconds(3) for _ in range(20)}) > 10
