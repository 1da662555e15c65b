"""Waits of what was held back."""

from datetime import timedelta

from baton.runs.budget import spread


def test_what_was_held_back_together_comes_back_apart() -> None:
    """Between the wait and a quarter more, and not all at the same moment."""
    waits = {spread(timedelta(seconds=100), ticket) for ticket in range(200)}
    assert min(waits) == timedelta(seconds=100)
    assert max(waits) < timedelta(seconds=125)
    assert len(waits) == 64
