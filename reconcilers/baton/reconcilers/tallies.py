"""What a redrive found and did, counted by firm: what a status, a summary and an exit code are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from baton.reconcilers.choosing import Choice
from baton.reconcilers.selection import kept

#: Firms that are counted by name; the rest are counted together.
_FIRMS: Final = 500
OTHERS: Final = "others"
#: Documents that were named, and are not there, or are deleted.
ABSENT: Final = "no such document"
#: Live work held the document.
BUSY: Final = "busy"
#: Its redrive failed.
FAILED: Final = "failed"
#: What was done, of all that is counted.
ACTS: Final = frozenset(choice.value for choice in Choice if choice.acts)


@dataclass(slots=True)
class Counts:
    """What was found and done, by firm; aspects of documents."""

    firms: dict[str, Counter[str]] = field(default_factory=dict)
    examined: int = 0
    """Rows of documents that were looked at."""

    def note(self, firm: UUID | str, what: str, number: int = 1) -> None:
        """Count."""
        name = str(firm)
        if name not in self.firms and len(self.firms) >= _FIRMS:
            name = OTHERS
        self.firms.setdefault(name, Counter())[what] += number

    @property
    def totals(self) -> Counter[str]:
        """Over all firms."""
        return sum(self.firms.values(), Counter())

    @property
    def redriven(self) -> int:
        """Aspects that were (or would be) redriven."""
        return sum(number for what, number in self.totals.items() if what in ACTS)

    @property
    def left(self) -> dict[str, int]:
        """What was left alone, by the reason."""
        return {what: number for what, number in self.totals.items() if what not in ACTS}

    @property
    def failed(self) -> int:
        """Documents that were busy, or whose redrive failed."""
        totals = self.totals
        return totals[BUSY] + totals[FAILED]

    def as_json(self) -> dict[str, Any]:
        """What is kept of it."""
        return {"examined": self.examined, "firms": {name: dict(counts) for name, counts in self.firms.items()}}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Counts:
        """Read what :meth:`as_json` wrote.

        :raises SelectorRefused: it makes no sense: somebody else wrote it.
        """
        return kept(written, cls._of)

    @classmethod
    def _of(cls, written: Mapping[str, Any]) -> Counts:
        firms = {
            name: Counter({what: int(number) for what, number in counts.items()})
            for name, counts in written.get("firms", {}).items()
        }
        return cls(firms, int(written.get("examined", 0)))
