"""Names of queues and keys of objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.aws import naming
from baton.aws.errors import KeyRefused
from baton.settings.stores import Queues


@pytest.mark.parametrize(
    ("queue", "name", "fifo", "dead"),
    [
        ("baton-ingest.fifo", "baton-ingest.fifo", True, "baton-ingest-dead.fifo"),
        ("baton-results", "baton-results", False, "baton-results-dead"),
        (
            "https://sqs.eu-west-1.amazonaws.com/123456789012/q.fifo",
            "q.fifo",
            True,
            "https://sqs.eu-west-1.amazonaws.com/123456789012/q-dead.fifo",
        ),
    ],
)
def test_a_queue_by_name_or_url(queue: str, name: str, fifo: bool, dead: str) -> None:
    """Name, order and dead-letter queue follow from either spelling."""
    assert naming.queue_name(queue) == name
    assert naming.is_fifo(queue) == fifo
    assert naming.dead_letter_queue(queue) == dead


def test_a_named_dead_letter_queue_wins() -> None:
    """The settings' own name is used where there is one."""
    queues = Queues(ingest_dead="elsewhere.fifo")
    assert naming.dead_letter_queues(queues)[queues.ingest] == "elsewhere.fifo"
    assert naming.dead_letter_queues(queues)[queues.results] == "baton-results-dead"


@pytest.mark.parametrize("key", ["a", "agent-runs/x/result.json", "a b/ü+.json", "x" * 1024, "a..b", ".hidden"])
def test_ordinary_keys_pass(key: str) -> None:
    """A key comes back as it was."""
    assert naming.checked_key(key) == key


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\x00b", "a\nb", "a\\b", "x" * 1025, "ü" * 513, "\ud800"],
)
def test_keys_that_nobody_made_are_refused(key: str) -> None:
    """Keys that climb, hide characters or are too long are refused with a typed error."""
    with pytest.raises(KeyRefused) as refused:
        naming.checked_key(key)
    assert isinstance(refused.value, ValueError)


@given(st.text(max_size=40))
def test_a_key_that_passes_stays_in_its_folder(key: str) -> None:
    """Whatever the text, a key that passes names a path below its root."""
    try:
        naming.checked_key(key)
    except KeyRefused:
        return
    assert not key.startswith("/")
    assert ".." not in key.split("/")
