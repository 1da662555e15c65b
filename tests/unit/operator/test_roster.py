"""The latest wish of each resource, and who is told."""

from typing import Any

import pytest

from baton.operator.edge import Edge, Patient
from baton.operator.roster import Change, Roster
from baton.operator.specs import Key, Wanted


def body(version: int, *, uid: str = "u", generation: int = 1, **more: Any) -> dict[str, Any]:
    """A resource."""
    metadata = {"namespace": "n", "name": "r", "uid": uid, "generation": generation, "resourceVersion": str(version)}
    return {"metadata": {**metadata, **more}, "spec": {"mode": f"mode {generation}"}}


def wanted(version: int, **more: Any) -> Wanted:
    """A resource, read."""
    return Wanted.of(body(version, **more))


@pytest.fixture
def told() -> list[tuple[Change, str]]:
    """What was told, of whom."""
    return []


@pytest.fixture
def roster(told: list[tuple[Change, str]]) -> Roster:
    """An empty roster."""

    def tell(change: Change, key: Key) -> None:
        told.append((change, key.uid))

    return Roster(tell)


def test_each_change_is_told_for_what_it_is(roster: Roster, told: list[tuple[Change, str]]) -> None:
    """A new spec cuts a pass, a wish for a pass does not, a status of our own wakes nobody."""
    roster.put(wanted(1))
    roster.put(wanted(2, generation=2))
    roster.put(wanted(3, generation=2, annotations={"baton.pramaan.dev/reconcile-at": "a"}))
    roster.put(wanted(4, generation=2, annotations={"baton.pramaan.dev/reconcile-at": "a"}))
    roster.drop("u")
    roster.drop("u")
    assert [change for change, _ in told] == [Change.NEW, Change.SPEC, Change.ASKED, Change.STATUS, Change.GONE]


def test_an_older_version_never_takes_the_place_of_a_newer(roster: Roster, told: list[tuple[Change, str]]) -> None:
    """Watch and roll-call overtake each other; versions are compared as numbers."""
    roster.put(wanted(10, generation=2))
    assert roster.put(wanted(9)) is None
    assert roster.put(wanted(10, generation=2)) is None
    latest = roster.latest("u")
    assert latest is not None
    assert latest.generation == 2
    assert len(told) == 1


def test_a_recount_finds_what_no_event_told_of(roster: Roster, told: list[tuple[Change, str]]) -> None:
    """What is missing is gone, what is new is taken, and what came while the list was on its way stays."""
    roster.put(wanted(1, uid="gone"))
    known = {"gone": "1"}
    roster.put(wanted(5, uid="meanwhile"))
    roster.recount([wanted(3, uid="unheard")], known=known)
    assert {each.key.uid for each in roster.all()} == {"meanwhile", "unheard"}
    assert (Change.GONE, "gone") in told


def test_a_store_that_was_set_back_is_followed(roster: Roster, told: list[tuple[Change, str]]) -> None:
    """What a list says at an older version than was known before it was asked for is so; an event alone proves nothing."""
    roster.put(wanted(500, generation=7))
    assert roster.put(wanted(9, generation=3)) is None
    known = {each.key.uid: each.version for each in roster.all()}
    roster.recount([wanted(9, generation=3)], known=known)
    assert [each.generation for each in roster.all()] == [3]
    assert told[-1][0] is Change.SPEC
    roster.put(wanted(600, generation=8))
    roster.recount([wanted(10, generation=4)], known=dict.fromkeys(known, "9"))
    assert [each.generation for each in roster.all()] == [8]


def test_an_event_without_sense_stops_nothing(roster: Roster) -> None:
    """The next one is taken."""
    edge = Edge.__new__(Edge)
    for event in (
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {}},
        {"type": "DELETED", "object": {"metadata": {}}},
    ):
        edge.take(roster, event)
    edge.take(roster, {"type": None, "object": body(1)})
    assert len(roster.all()) == 1
    edge.take(roster, {"type": "DELETED", "object": body(2)})
    assert roster.all() == []


def test_a_wait_for_the_api_server_never_ends() -> None:
    """It grows to a bound: kopf gives up when its waits run out."""
    waits = iter(Patient())
    drawn = [next(waits) for _ in range(1000)]
    assert drawn[0] < 1.0
    assert max(drawn) <= 25.0
    assert min(drawn[10:]) >= 15.0
