"""A minute's repairs by turns: of discrepancies, and of firms within each."""

from collections.abc import Sequence
from uuid import UUID

from uuid_utils.compat import uuid7

from baton.reconcilers.aspects import Aspect, Severity
from baton.reconcilers.results import Finding, Planned
from baton.reconcilers.shares import Shares, in_turn

FLOOD, OTHER = uuid7(), uuid7()


def _found(name: str, count: int) -> list[Finding]:
    return [
        Finding(document_id=uuid7(), aspect=Aspect.INGEST, name=name, severity=Severity.WARNING) for _ in range(count)
    ]


def _plans(found: Sequence[Finding]) -> list[Planned]:
    return [Planned(finding=each, action="redrove") for each in found]


def _of(firm: UUID, *found: Sequence[Finding]) -> dict[UUID, UUID]:
    return {each.document_id: firm for some in found for each in some}


def test_nobody_takes_more_than_his_share_at_first_and_nothing_is_lost() -> None:
    """Half of ten for each of two; within it one firm has a tenth, rounded up; the rest comes by turns afterwards."""
    shares = Shares()
    shares.open(10, among=2)
    shares.open(1000, among=1)  # what a later look says changes nothing
    a, b = _found("a", 8), _found("b", 2)
    firms = _of(FLOOD, a, b)
    now = shares.take(_plans(a), firms=firms)
    assert [each.finding for each in now] == a[:1]
    assert [each.finding for each in shares.take(_plans(b), firms=firms)] == b[:1]
    rest = [each.finding for each in shares.rest()]
    assert rest[:3] == [a[1], b[1], a[2]]
    assert sorted(each.document_id for each in rest) == sorted(each.document_id for each in (*a[1:], b[1]))
    assert shares.rest() == []


def test_a_share_is_that_of_all_firms_together() -> None:
    """Many firms, each with one, take no more than the discrepancy's share."""
    shares = Shares()
    shares.open(8, among=2)
    found = _found("a", 20)
    assert len(shares.take(_plans(found), firms={each.document_id: uuid7() for each in found})) == 4


def test_where_nothing_is_left_nothing_is_taken() -> None:
    """Whatever is ready waits."""
    shares = Shares()
    shares.open(0, among=3)
    found = _found("a", 2)
    assert shares.take(_plans(found), firms=_of(FLOOD, found)) == []
    assert len(shares.rest()) == 2


def test_turns_go_round_discrepancies_first_and_then_firms() -> None:
    """So the last of a thousand of another name, or of another firm, is among the first; what has no firm is left out."""
    a, b, other = _found("a", 3), _found("b", 1), _found("a", 1)
    stranger = _found("a", 1)
    firms = _of(FLOOD, a, b) | _of(OTHER, other)
    assert in_turn([*a, *stranger, *other, *b], firms=firms) == [a[0], b[0], other[0], a[1], a[2]]
