"""What a pass found, planned and did; made to be counted, shown and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from baton.db.states import Lane
from baton.reconcilers.aspects import Aspect, Severity


class Mode(StrEnum):
    """What a pass may do."""

    OBSERVE = "observe"
    """Report what a repairing pass would do next; nothing is written, and the role could not."""
    REPAIR = "repair"


class Guard(StrEnum):
    """What holds a repair back. The document is found again by a later pass."""

    SUSPENDED = "suspended"
    WINDOW = "window"
    """A maintenance window is open."""
    OWNER = "owner"
    """Another resource works on this database."""
    RATE = "rate"
    """This minute's repairs are made."""
    BACKOFF = "backoff"
    BUDGET = "budget"
    BREAKER = "breaker"
    STORE = "store"
    """The object store could not be asked for the artifact, or has it still to wait for."""
    LOCKED = "locked"
    """Live work holds the document."""


class Effect(StrEnum):
    """How a repair ended, as the ledger keeps it."""

    REPAIRED = "repaired"
    GAVE_UP = "gave_up"
    """Attempts were used up: the aspect failed visibly."""
    ERROR = "error"
    """Nothing was changed; it counts as an attempt."""
    LEFT = "left"
    """A person chose it, and it was left alone; the action says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One disagreement on one aspect of one document."""

    document_id: UUID
    aspect: Aspect
    name: str
    severity: Severity
    since: datetime | None = None
    """Since when it stands, as far as the index that showed it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is to be done about a finding."""

    finding: Finding
    action: str | None
    """``None``: it is reported, and a person decides."""
    guard: Guard | None = None
    """What holds it back; ``None``: nothing."""
    due: datetime | None = None
    """When it no longer holds it back, where that is known."""
    exhausted: bool = False
    """Attempts are used up: the action is a visible failure."""

    @property
    def ready(self) -> bool:
        """Whether it would be done now."""
        return self.action is not None and self.guard is None


#: Plans that a result keeps for showing; counts are of all.
SHOWN = 1000


@dataclass(slots=True, kw_only=True)
class PassResult:
    """One pass. Its counts are complete; its list of plans is cut at :data:`SHOWN`."""

    mode: Mode
    began: datetime | None = None
    """By the database's clock."""
    seconds: float = 0.0
    finished: bool = True
    """``False``: it was told to stop, and the next one goes on."""
    found: Counter[str] = field(default_factory=Counter)
    oldest: dict[str, datetime] = field(default_factory=dict)
    reported: Counter[str] = field(default_factory=Counter)
    """Left to a person."""
    refused: Counter[Guard] = field(default_factory=Counter)
    effects: Counter[tuple[str, Effect]] = field(default_factory=Counter)
    vanished: int = 0
    """Right by itself before it was locked."""
    left_over: int = 0
    """Tickets that were closed because nothing waits for them any more; no document changed."""
    stalled: tuple[Lane, ...] = ()
    """Lanes that nobody consumes though tickets wait: reported, never repaired."""
    failures: list[str] = field(default_factory=list)
    """Sources (a discrepancy's index, the backstop, the scrub) that could not be asked."""
    judged: int = 0
    """Documents that were judged."""
    scrubbed: int = 0
    plans: list[Planned] = field(default_factory=list)

    @property
    def repaired(self) -> int:
        """Documents' aspects that were changed, visible failures included."""
        return sum(count for (_, effect), count in self.effects.items() if effect is not Effect.ERROR)

    @property
    def errors(self) -> int:
        """Repairs that failed."""
        return sum(count for (_, effect), count in self.effects.items() if effect is Effect.ERROR)

    @property
    def total(self) -> int:
        """Everything that was found."""
        return self.found.total()

    def note(self, findings: Iterable[Finding]) -> None:
        """Count what was found."""
        for each in findings:
            self.found[each.name] += 1
            if each.since is not None:
                self.oldest[each.name] = min(self.oldest.get(each.name, each.since), each.since)

    def show(self, plans: Iterable[Planned]) -> None:
        """Keep plans for showing, and count what is not done."""
        for plan in plans:
            if plan.action is None:
                self.reported[plan.finding.name] += 1
            elif plan.guard is not None:
                self.refused[plan.guard] += 1
            if len(self.plans) < SHOWN:
                self.plans.append(plan)
