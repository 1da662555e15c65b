"""Sharing a minute's repairs out: a flood of one discrepancy, or of one firm, leaves the others their turn.

Each discrepancy gets an equal share of what the minute still has, and within it each firm a part. What goes beyond waits
until everything was looked at, and then takes what is left, by turns. So nothing of the minute is wasted where only one
wants it, and nobody stands behind a flood where several do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from baton.reconcilers.results import Finding, Planned

T = TypeVar("T")

#: Firms that a discrepancy's share is meant for at least.
_FIRMS: Final = 10
#: Whose turn it is: a discrepancy's, and a firm's within it.
_Turn: TypeAlias = tuple[str, UUID]


class Shares:
    """Those of one pass."""

    def __init__(self) -> None:
        self._each: int | None = None
        self._taken: Counter[str] = Counter()
        self._of_firms: Counter[_Turn] = Counter()
        self._later: list[tuple[_Turn, Planned]] = []

    def open(self, left: int, *, among: int) -> None:
        """Say how much there is; only the first time counts.

        :param left: repairs that the minute has.
        :param among: discrepancies that may want some of it.
        """
        if self._each is None:
            self._each = _part(left, max(among, 1))

    def take(self, plans: Iterable[Planned], *, firms: Mapping[UUID, UUID]) -> list[Planned]:
        """What of these is to be done now; the rest is kept for :meth:`rest`.

        :param plans: all of them ready.
        :param firms: whose the documents are.
        """
        each = self._each or 0
        now = []
        for plan in plans:
            name = plan.finding.name
            turn = name, firms[plan.finding.document_id]
            if self._taken[name] < each and self._of_firms[turn] < _part(each, _FIRMS):
                self._taken[name] += 1
                self._of_firms[turn] += 1
                now.append(plan)
            else:
                self._later.append((turn, plan))
        return now

    def rest(self) -> list[Planned]:
        """What was put off, by turns; it is kept no longer."""
        kept, self._later = self._later, []
        return _by_turns(kept)


def in_turn(found: Iterable[Finding], *, firms: Mapping[UUID, UUID]) -> list[Finding]:
    """Findings with their discrepancies and firms by turns; those whose firm is not known are left out."""
    return _by_turns(((each.name, firms[each.document_id]), each) for each in found if each.document_id in firms)


def _by_turns(items: Iterable[tuple[_Turn, T]]) -> list[T]:
    """Each discrepancy one, then each another one; and of each its firms in the same way."""
    groups: dict[str, dict[UUID, list[T]]] = {}
    for (name, firm), item in items:
        groups.setdefault(name, {}).setdefault(firm, []).append(item)
    return list(_around([_around([iter(some) for some in firms.values()]) for firms in groups.values()]))


def _around(sources: Sequence[Iterator[T]]) -> Iterator[T]:
    left = list(sources)
    while left:
        going = []
        for source in left:
            for each in source:
                going.append(source)
                yield each
                break
        left = going


def _part(of: int, count: int) -> int:
    """Rounded up: where there is anything, everybody may have one."""
    return -(-of // count)
