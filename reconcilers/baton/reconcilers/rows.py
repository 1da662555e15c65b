"""The two kinds of row in the table of an aspect: a discrepancy with its repair, or a healthy state with its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, and_

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import Part
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import Candidates
from baton.reconcilers.questions import NOW, grace
from baton.reconcilers.situation import Situation
from baton.runs.findings import Finding
from baton.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of a condition, with words for the person to whom it is explained."""

    text: str
    expression: ColumnElement[bool]


Clauses: TypeAlias = Callable[[Situation], tuple[Clause, ...]]
Moment: TypeAlias = Callable[[Situation], ColumnElement[datetime]]


class Action(StrEnum):
    """What a repair did, as the ledger names it."""

    REDROVE = "redrove"  # the next generation of a ticket, or a first one
    ADOPTED = "adopted"  # wrote a mark for what stood already
    REQUESTED = "requested"  # asked for something that nobody had asked for
    REQUEUED = "requeued"
    RETRIED = "retried"
    SETTLED = "settled"
    SUPERSEDED = "superseded"
    FAILED = "failed"  # visibly, at the limit of attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a repair works on: the locked document, in a transaction of the engine's."""

    executor: Executor
    document: Document
    aspect: Aspect
    settings: Settings
    exhausted: bool = False
    """Whether attempts are used up: the repair then fails the aspect visibly."""
    finding: Finding | None = None
    """What the store said about the run's artifact before any lock was taken, where the discrepancy asks for a look."""

    @property
    def part(self) -> Part | None:
        """The understanding part, where the aspect is one."""
        return self.aspect.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair did, for the ledger."""

    action: Action
    ticket_id: int | None = None
    run_id: UUID | None = None


class Repair(Protocol):
    """Puts one case right through the services that the pipeline itself uses; ``None``: nothing was to be done."""

    def __call__(self, case: Case) -> Repaired | None:
        """Repair."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """A named disagreement between state and desired outcome."""

    name: str
    aspects: tuple[Aspect, ...]
    meaning: str
    owner: Owner
    severity: Severity
    grace: timedelta
    clauses: Clauses
    since: Moment
    reads: frozenset[str]
    candidates: tuple[Candidates, ...]
    """Empty: no index shows it, and the backstop and the scrub do."""
    action: str
    repair: Repair | None
    """``None``: it is reported, and a person decides."""
    spends_run: bool = False
    """Whether the repair leads to a paid agent run, so that budget and breaker are asked."""
    limited: bool = True
    """Whether repeated repairs count as attempts and end in a visible failure."""
    looks_in_store: bool = False
    """Whether the artifact is looked for before any lock, and its finding handed to the repair."""
    while_young: Owner = Owner.RECONCILER
    """Who has the next move while the grace runs."""

    def condition(self, situation: Situation) -> ColumnElement[bool]:
        """All clauses, and the grace is over."""
        return and_(self.disagrees(situation), self.since(situation) <= NOW - grace(self.name))

    def disagrees(self, situation: Situation) -> ColumnElement[bool]:
        """All clauses, however young."""
        return and_(*(clause.expression for clause in self.clauses(situation)))

    def due(self, situation: Situation) -> ColumnElement[datetime]:
        """When the grace is over."""
        return self.since(situation) + grace(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthy:
    """A state that needs no repair: somebody named has the next move, by a time, or nobody has one."""

    name: str
    aspects: tuple[Aspect, ...]
    owner: Owner
    meaning: str
    clauses: Clauses
    reads: frozenset[str]
    due: Moment | None
    """``None``: terminal, a person's decision, or the move is that of another aspect, which has its own time."""

    def condition(self, situation: Situation) -> ColumnElement[bool]:
        """All clauses."""
        return and_(*(clause.expression for clause in self.clauses(situation)))
