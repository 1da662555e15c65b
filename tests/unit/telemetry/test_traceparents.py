"""Reading a traceparent takes the W3C's shape and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.telemetry import traceparents

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_reading_and_writing_are_inverse() -> None:
    """What is read can be written again."""
    context = traceparents.read(GOOD)
    assert context is not None
    assert traceparents.written(context) == GOOD


def test_only_the_sampled_flag_is_passed_on() -> None:
    """Flags that version 00 does not know are left out."""
    context = traceparents.read(GOOD[:-2] + "ff")
    assert context is not None
    assert traceparents.written(context) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"bytes",
        "",
        GOOD.upper(),
        GOOD + "\n",
        " " + GOOD,
        GOOD + "-more",
        "ff" + GOOD[2:],
        GOOD.replace("b7ad6b7169203331", "0" * 16),
        GOOD.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        "x" * 10_000,
    ],
)
def test_anything_else_is_no_traceparent(text: object) -> None:
    """Wrong case, blanks, all zeros, version ff and appended fields are not read."""
    assert traceparents.read(text) is None


def test_a_later_version_may_append_fields() -> None:
    """A reader of version 00 passes over what a later version appends."""
    assert traceparents.read("01" + GOOD[2:] + "-extra") is not None


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_reading_never_raises(text: str) -> None:
    """Whatever comes back from a queue, reading it gives a context or none."""
    context = traceparents.read(text)
    assert context is None or context.is_valid
