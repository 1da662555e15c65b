"""One document, explained by the very conditions that repair it: clause by clause, what was compared with what.

For each aspect the rows of its table are asked in their order in one statement: whether each clause holds, and the values
of every column and parameter that the clause names. Then what the plan of the next pass would be, and what holds it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnClause,
    ColumnElement,
    Connection,
    Select,
    Uuid,
    bindparam,
    select,
)
from sqlalchemy.sql import visitors

from baton.db import clock
from baton.db.rows import Document, read_document
from baton.db.states import Lane
from baton.reconcilers import ledger, owner, timeline
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, HEALTHY, ORDER, Verdict, classify, parameters
from baton.reconcilers.graces import graces
from baton.reconcilers.healthy import WAITING
from baton.reconcilers.lanes import LaneState
from baton.reconcilers.planning import Ground, allowance, plan
from baton.reconcilers.readings import Readings
from baton.reconcilers.results import Finding, Planned
from baton.reconcilers.rows import Clause, Discrepancy
from baton.reconcilers.situation import Situation, situation
from baton.reconcilers.timeline import Timeline
from baton.settings.model import Settings

#: Which of the situation's columns says most about a row that is there, so that it is shown even where no clause names it.
_LIFE: Final = ("dispatched_at", "first_received_at", "hold_until")


@dataclass(frozen=True, slots=True)
class Compared:
    """One value that a clause looked at."""

    name: str
    """Member and column, such as ``ticket.dispatched_at``; or a parameter, such as ``now``."""
    value: object


@dataclass(frozen=True, slots=True)
class ClauseSeen:
    """One comparison, and how it came out."""

    text: str
    holds: bool
    compared: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class RowSeen:
    """One row of the aspect's table."""

    name: str
    discrepancy: bool
    clauses: tuple[ClauseSeen, ...]

    @property
    def holds(self) -> bool:
        """Whether every clause does; a grace is not among them."""
        return all(clause.holds for clause in self.clauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectSeen:
    """One aspect: the answer, why, and what follows from it."""

    aspect: Aspect
    verdict: Verdict
    meaning: str
    rows: tuple[RowSeen, ...]
    """In the order of the table, up to the one that is the answer."""
    planned: Planned | None
    """What would be done about it; ``None`` where nothing disagrees."""
    grace_until: datetime | None
    """When the grace is over, where one runs."""
    lost_if_empty_for: timedelta | None
    """Of a ticket on its queue: it counts as lost sooner, once the queue was seen empty for so long since it was sent."""

    @property
    def answer(self) -> RowSeen | None:
        """The row that holds; ``None`` where the state is impossible."""
        return next((row for row in self.rows if row.holds), None)

    @property
    def action(self) -> str | None:
        """What a repair does, or would do once the grace is over."""
        found = self.verdict.discrepancy or self.verdict.settling
        return None if found is None else found.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One document at one moment."""

    document: Document
    now: datetime
    aspects: tuple[AspectSeen, ...]
    lanes: Mapping[Lane, LaneState]
    works_here: str | None
    """Which resource's loops work on this database; ``None``: none does."""
    timeline: Timeline

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be repaired or reported."""
        return all(seen.verdict.healthy for seen in self.aspects)


def explain(connection: Connection, document_id: UUID, *, settings: Settings) -> Explanation | None:
    """Explain a document, reading only; ``None`` where there is none."""
    document = read_document(connection, document_id)
    if document is None:
        return None
    ground = ground_of(connection, settings=settings)
    verdicts = classify(connection, [document.id], lanes=ground.lanes, graces=ground.graces, now=ground.now)
    planned = _plans(connection, document, verdicts[document.id], ground=ground, settings=settings)
    return Explanation(
        document=document,
        now=ground.now,
        aspects=tuple(
            _aspect(connection, document, aspect, verdict, ground=ground, planned=planned.get(aspect))
            for aspect, verdict in verdicts[document.id].items()
        ),
        lanes=ground.lanes,
        works_here=owner.current(connection),
        timeline=timeline.read(connection, document.id),
    )


def ground_of(connection: Connection, *, settings: Settings) -> Ground:
    """What a pass of these settings would know before it looks at any document; nothing is written."""
    now = clock.now(connection)
    given = {name: timedelta(seconds=seconds) for name, seconds in settings.reconcile.graces or ()}
    return Ground(
        now=now,
        lanes=Readings(None, config=settings.queues, keep=False).states(connection, now=now),
        graces=graces(given),
        owned=owner.current(connection) in (None, settings.reconcile.resource),
    )


def _aspect(
    connection: Connection,
    document: Document,
    aspect: Aspect,
    verdict: Verdict,
    *,
    ground: Ground,
    planned: Planned | None,
) -> AspectSeen:
    answer = verdict.settling.name if verdict.settling else verdict.name
    names = [row.name for row in ORDER[aspect]]
    upto = names.index(answer) + 1 if answer in names else len(names)
    values = parameters(lanes=ground.lanes, graces=ground.graces, now=ground.now)
    asked = _question(aspect)
    seen = dict(connection.execute(asked.statement, values | {"document_id": document.id}).mappings().one())
    return AspectSeen(
        aspect=aspect,
        verdict=verdict,
        meaning=_meaning(verdict),
        rows=tuple(row.read(seen, values) for row in asked.rows[:upto]),
        planned=planned,
        grace_until=verdict.due if verdict.settling else None,
        lost_if_empty_for=ground.lanes[aspect.lane].empty_for if verdict.name == WAITING.name else None,
    )


def _meaning(verdict: Verdict) -> str:
    if verdict.impossible:
        return "no row of the table holds: a person must look at the row"
    if verdict.settling is not None:
        return f"{verdict.settling.meaning}; not yet for long enough to count"
    found = DISCREPANCIES.get(verdict.name) or HEALTHY[verdict.name]
    return found.meaning


def _plans(
    connection: Connection,
    document: Document,
    verdicts: Mapping[Aspect, Verdict],
    *,
    ground: Ground,
    settings: Settings,
) -> Mapping[Aspect, Planned]:
    """What a pass would do about what disagrees; for what is settling, what it would do then."""
    found = []
    for aspect, verdict in verdicts.items():
        row = verdict.discrepancy or verdict.settling
        if row is not None:
            found.append(Finding(document_id=document.id, aspect=aspect, name=row.name, severity=row.severity))
    planned = plan(
        found,
        documents={document.id: document},
        entries=ledger.read_entries(connection, [document.id]),
        allowed=allowance(connection, ground=ground, settings=settings),
        ground=ground,
        settings=settings,
    )
    return {each.finding.aspect: each for each in planned}


@dataclass(frozen=True, slots=True)
class _ClauseAsked:
    text: str
    label: str
    columns: tuple[tuple[str, str], ...]
    """Names and labels."""
    given: tuple[str, ...]
    """Parameters."""

    def read(self, seen: Mapping[Any, Any], values: Mapping[str, object]) -> ClauseSeen:
        compared = [Compared(name, seen[label]) for name, label in self.columns]
        compared += [Compared(name, values[name]) for name in self.given]
        return ClauseSeen(self.text, bool(seen[self.label]), tuple(compared))


@dataclass(frozen=True, slots=True)
class _RowAsked:
    name: str
    discrepancy: bool
    clauses: tuple[_ClauseAsked, ...]

    def read(self, seen: Mapping[Any, Any], values: Mapping[str, object]) -> RowSeen:
        return RowSeen(self.name, self.discrepancy, tuple(clause.read(seen, values) for clause in self.clauses))


@dataclass(frozen=True, slots=True)
class _Asked:
    statement: Select[Any]
    rows: tuple[_RowAsked, ...]


@cache
def _question(aspect: Aspect) -> _Asked:
    """Every clause of an aspect's table, and every column that they look at, in one statement."""
    s = situation(aspect)
    numbers = count()
    selected: list[ColumnElement[Any]] = []
    known: dict[str, str] = {}

    def labelled(expression: ColumnElement[Any]) -> str:
        label = f"c{next(numbers)}"
        selected.append(expression.label(label))
        return label

    def asked(clause: Clause) -> _ClauseAsked:
        columns, given = _names(clause.expression, s)
        for name, column in columns.items():
            if name not in known:
                known[name] = labelled(column)
        return _ClauseAsked(
            clause.text, labelled(clause.expression), tuple((name, known[name]) for name in columns), given
        )

    rows = tuple(
        _RowAsked(row.name, isinstance(row, Discrepancy), tuple(asked(clause) for clause in row.clauses(s)))
        for row in ORDER[aspect]
    )
    statement = select(*selected).select_from(s.source).where(s.document.c.id == bindparam("document_id", type_=Uuid()))
    return _Asked(statement, rows)


def _names(expression: ColumnElement[bool], s: Situation) -> tuple[dict[str, ColumnElement[Any]], tuple[str, ...]]:
    """The columns of the situation and the parameters that an expression looks at, in the order of reading."""
    members = {id(member): name for name, member in s.members().items()}
    columns: dict[str, ColumnElement[Any]] = {}
    given: dict[str, None] = {}
    for element in visitors.iterate(expression):
        if isinstance(element, ColumnClause | Column) and id(element.table) in members:
            member = members[id(element.table)]
            columns.setdefault(f"{member}.{element.name}", element)
            if element.name == "life":  # worked out from these
                for name in _LIFE:
                    columns.setdefault(f"{member}.{name}", s.members()[member].c[name])
        elif isinstance(element, BindParameter) and not element.key.startswith(("param", "%")):
            given.setdefault(element.key)
    return columns, tuple(given)


def as_json(explanation: Explanation) -> dict[str, object]:
    """For machines; members are added, never renamed."""
    document = explanation.document
    return {
        "document": {name: getattr(document, name) for name in Document.__dataclass_fields__},
        "now": explanation.now,
        "healthy": explanation.healthy,
        "works_here": explanation.works_here,
        "aspects": [_aspect_json(seen) for seen in explanation.aspects],
        "lanes": {lane: _lane_json(state) for lane, state in explanation.lanes.items()},
        "timeline": [event.as_json() for event in explanation.timeline.events],
        "timeline_cut": explanation.timeline.cut,
        "tickets": list(explanation.timeline.tickets),
        "runs": list(explanation.timeline.runs),
    }


def _aspect_json(seen: AspectSeen) -> dict[str, object]:
    verdict, planned, sooner = seen.verdict, seen.planned, seen.lost_if_empty_for
    return {
        "aspect": seen.aspect,
        "verdict": verdict.name,
        "disagrees": verdict.settling.name if verdict.settling else None,
        "healthy": verdict.healthy,
        "owner": verdict.owner,
        "due": verdict.due,
        "severity": verdict.severity,
        "meaning": seen.meaning,
        "action": seen.action,
        "held_back_by": None if planned is None else held_back(seen),
        "held_back_until": held_back_until(seen),
        "last_attempt": planned is not None and planned.exhausted,
        "lost_if_empty_for_seconds": None if sooner is None else sooner.total_seconds(),
        "rows": [
            {"row": row.name, "holds": row.holds, "clauses": [_clause_json(clause) for clause in row.clauses]}
            for row in seen.rows
        ],
    }


def held_back(seen: AspectSeen) -> Sequence[str]:
    """What keeps the repair from being made now: ``grace``, and a guard of the plan; empty: nothing."""
    found = ["grace"] if seen.grace_until is not None else []
    if seen.planned is not None and seen.planned.guard is not None:
        found.append(seen.planned.guard.value)
    return found


def held_back_until(seen: AspectSeen) -> datetime | None:
    """When nothing of that keeps it any more, where it is known: the later of the grace's end and the guard's."""
    if seen.planned is None:
        return None
    return max((at for at in (seen.grace_until, seen.planned.due) if at is not None), default=None)


def _clause_json(clause: ClauseSeen) -> dict[str, object]:
    return {
        "text": clause.text,
        "holds": clause.holds,
        "compared": {each.name: _plain(each.value) for each in clause.compared},
    }


def _lane_json(state: LaneState) -> dict[str, object]:
    return {
        "alive": state.alive,
        "visibility_seconds": state.visibility.total_seconds(),
        "retention_seconds": state.retention.total_seconds(),
        "empty_before": _known(state.empty_before),
        "overtaken_before": _known(state.overtaken_before),
    }


def _known(at: datetime) -> datetime | None:
    """A watermark; the first year means that there is none."""
    return at if at.year > 1 else None


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _known(value) if isinstance(value, datetime) else value
