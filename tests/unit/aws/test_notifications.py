"""Messages of the results queue are read without trust."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.aws.notifications import Notification, NotificationKind, ObjectCreated, parse


def record(key: str = "agent-runs/r/a.json", *, event: str = "ObjectCreated:Put", **more: object) -> dict[str, object]:
    """One record as S3 writes it."""
    return {"eventName": event, "s3": {"bucket": {"name": "b"}, "object": {"key": key, **more}}}


def test_several_records_with_encoded_keys() -> None:
    """Keys are decoded as S3 encodes them: percent signs, and a plus for a blank."""
    body = json.dumps(
        {"Records": [record("a+b/%C3%BC%2B.json", size=3, eTag="e"), record(event="s3:ObjectCreated:Post")]}
    )
    assert parse(body) == Notification(
        NotificationKind.OBJECTS,
        (ObjectCreated("b", "a b/ü+.json", 3, "e"), ObjectCreated("b", "agent-runs/r/a.json", None, None)),
    )


def test_the_test_event_is_known() -> None:
    """S3's greeting is neither an object nor garbage."""
    assert (
        parse(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"})).kind
        is NotificationKind.TEST
    )


@pytest.mark.parametrize(
    "each",
    [
        record(event="ObjectRemoved:Delete"),
        record(event="s3:TestEvent"),
        record("../up"),
        record("a%00b"),
        record("%FF"),
        {},
        None,
        {"eventName": "ObjectCreated:Put", "s3": {"bucket": {}, "object": {"key": "a"}}},
        {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": 7}}},
    ],
)
def test_a_record_of_no_use_does_not_spoil_its_neighbour(each: object) -> None:
    """Other events, keys that nobody made and wrong shapes are counted, the rest is read."""
    found = parse(json.dumps({"Records": [each, record()]}))
    assert found.kind is NotificationKind.OBJECTS
    assert [it.key for it in found.objects] == ["agent-runs/r/a.json"]
    assert found.ignored == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "x",
        "[]",
        "7",
        "null",
        "{}",
        '{"Records": 7}',
        "[" * 100_000,
        json.dumps({"Records": [1] * 1001}),
        '{"Records"',
    ],
)
def test_garbage_is_said_to_be_garbage(body: str) -> None:
    """What cannot be read has a reason that repeats nothing of it."""
    found = parse(body)
    assert found.kind is NotificationKind.UNREADABLE
    assert found.reason is not None


def test_sizes_that_are_none_are_dropped() -> None:
    """A size of the wrong type or sign is not told."""
    for size in (True, -1, "3", 1.5):
        assert parse(json.dumps({"Records": [record(size=size)]})).objects[0].size is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Records", "s3", "bucket", "name", "object", "key", "eventName", "Event"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON | st.text())
def test_nothing_makes_reading_raise(content: object) -> None:
    """Any JSON, and any text that is none, gives a notification."""
    body = content if isinstance(content, str) else json.dumps(content)
    assert isinstance(parse(body), Notification)
