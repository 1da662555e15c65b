"""Points at which a chaos test may end a process do nothing unless one asked for it."""

import pytest

from baton.db import crashpoints


def test_a_point_is_inert() -> None:
    """In production nothing is installed."""
    crashpoints.reach("relay.sent")


def test_a_hook_hears_of_points_inside_its_block_only() -> None:
    """Also when the block ends by the crash that it made."""
    heard: list[str] = []

    def crash(name: str) -> None:
        heard.append(name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), crashpoints.install(crash):
        crashpoints.reach("relay.sent")
    crashpoints.reach("relay.settled")
    assert heard == ["relay.sent"]


def test_hooks_do_not_displace_each_other() -> None:
    """The inner one leaves, the outer one stays."""
    outer: list[str] = []
    inner: list[str] = []
    with crashpoints.install(outer.append):
        with crashpoints.install(inner.append):
            crashpoints.reach("a")
        crashpoints.reach("b")
    assert (outer, inner) == (["a", "b"], ["a"])
