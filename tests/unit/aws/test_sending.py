"""How a batch is dealt out: within limits, in order, in no more calls than needed."""

from hypothesis import given
from hypothesis import strategies as st

from baton.aws import sending
from baton.aws.sending import CALL_BYTES, CALL_ENTRIES, Entry


def numbered(entries: list[Entry]) -> list[tuple[int, Entry]]:
    """Entries with their positions."""
    return list(enumerate(entries))


ENTRIES = st.lists(
    st.builds(
        lambda group, size: Entry("k", "x" * size, group=group, deduplication="d"),
        st.sampled_from(["a", "b", "c", None]) | st.uuids().map(str),
        st.integers(1, 300) | st.integers(CALL_BYTES // 3, CALL_BYTES),
    ),
    max_size=60,
)


@given(entries=ENTRIES, parallel=st.integers(1, 8))
def test_every_entry_is_dealt_out_once_within_the_limits(entries: list[Entry], parallel: int) -> None:
    """No call holds more than ten messages or the bytes of a call, and none is lost or doubled."""
    strands = sending._strands(numbered(entries), parallel=parallel)
    assert len(strands) <= parallel
    calls = [call for strand in strands for call in sending._calls(strand)]
    assert sorted(index for call in calls for index, _ in call) == list(range(len(entries)))
    for call in calls:
        assert 0 < len(call) <= CALL_ENTRIES
        assert sum(entry.size for _, entry in call) <= CALL_BYTES


@given(entries=ENTRIES, parallel=st.integers(1, 8))
def test_a_group_stays_in_one_strand_and_in_order(entries: list[Entry], parallel: int) -> None:
    """Messages of one document are never in flight side by side, and never overtake each other."""
    strands = sending._strands(numbered(entries), parallel=parallel)
    home: dict[str, int] = {}
    for position, strand in enumerate(strands):
        indexes = [index for index, _ in strand]
        assert indexes == sorted(indexes)
        for _, entry in strand:
            if entry.group:
                assert home.setdefault(entry.group, position) == position


@given(count=st.integers(0, 200), parallel=st.integers(1, 8))
def test_dealing_out_makes_no_more_calls_than_needed(count: int, parallel: int) -> None:
    """Messages of different documents fill whole calls, however many strands there are."""
    entries = [Entry(str(n), "x", group=str(n), deduplication=str(n)) for n in range(count)]
    strands = sending._strands(numbered(entries), parallel=parallel)
    calls = sum(len(list(sending._calls(strand))) for strand in strands)
    assert calls == -(-count // CALL_ENTRIES)


def test_attributes_count_towards_the_size() -> None:
    """Names, types and values of attributes are part of a message."""
    assert Entry("k", "é", attributes={"traceparent": "12345"}).size == 2 + len("traceparent") + len("String") + 5
