"""The table: for each aspect its rows in order, and the first that holds is the answer.

One CASE expression says it. It is what scans, verifies under the lock, explains and scrubs; nothing asks the conditions
in another way. A row whose grace still runs is healthy (*settling*) and stands right behind its discrepancy, so that
nothing below it takes its place meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    Uuid,
    any_,
    bindparam,
    case,
    cast,
    literal_column,
    null,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY

from baton.db.connect import Executor
from baton.db.states import Lane
from baton.reconcilers import healthy
from baton.reconcilers.aspects import PARTS, Aspect, Owner, Severity
from baton.reconcilers.discrepancies.apply_stalled import APPLY_STALLED
from baton.reconcilers.discrepancies.artifact_unopened import ARTIFACT_UNOPENED
from baton.reconcilers.discrepancies.deleted_in_flight import DELETED_IN_FLIGHT
from baton.reconcilers.discrepancies.failure_retryable import FAILURE_RETRYABLE
from baton.reconcilers.discrepancies.fan_out_missing import FAN_OUT_MISSING
from baton.reconcilers.discrepancies.ingest_stalled import INGEST_STALLED
from baton.reconcilers.discrepancies.ingest_ticket_missing import INGEST_TICKET_MISSING
from baton.reconcilers.discrepancies.mark_missing import MARK_MISSING
from baton.reconcilers.discrepancies.part_missing import PART_MISSING
from baton.reconcilers.discrepancies.pass_superseded import PASS_SUPERSEDED
from baton.reconcilers.discrepancies.request_missing import REQUEST_MISSING
from baton.reconcilers.discrepancies.request_stalled import REQUEST_STALLED
from baton.reconcilers.discrepancies.request_ticket_missing import REQUEST_TICKET_MISSING
from baton.reconcilers.discrepancies.run_lapsed import RUN_LAPSED
from baton.reconcilers.discrepancies.run_missing import RUN_MISSING
from baton.reconcilers.discrepancies.ticket_dead_lettered import TICKET_DEAD_LETTERED
from baton.reconcilers.discrepancies.ticket_parked import TICKET_PARKED
from baton.reconcilers.discrepancies.understanding_stalled import UNDERSTANDING_STALLED
from baton.reconcilers.discrepancies.upload_abandoned import UPLOAD_ABANDONED
from baton.reconcilers.lanes import LaneState
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Discrepancy, Healthy
from baton.reconcilers.situation import Situation, situation

Row: TypeAlias = Discrepancy | Healthy

_PART_ROWS: Final[tuple[Row, ...]] = (
    DELETED_IN_FLIGHT,
    healthy.DELETED,
    healthy.READY,
    PART_MISSING,
    healthy.AWAITING_TURN,
    TICKET_PARKED,
    TICKET_DEAD_LETTERED,
    UNDERSTANDING_STALLED,
    RUN_LAPSED,
    healthy.WITH_AGENT,
    MARK_MISSING,
    healthy.UNDISPATCHED,
    healthy.WAITING,
    healthy.HELD,
    FAILURE_RETRYABLE,
    healthy.AWAITING_RETRY,
    healthy.FAILED,
)

#: The rows of each aspect, in order.
ORDER: Final[Mapping[Aspect, tuple[Row, ...]]] = {
    Aspect.INGEST: (
        healthy.DELETED,
        healthy.EXTRACTED,
        healthy.TEXT_NEEDS_REVIEW,
        healthy.UNREADABLE,
        UPLOAD_ABANDONED,
        INGEST_TICKET_MISSING,
        TICKET_PARKED,
        TICKET_DEAD_LETTERED,
        INGEST_STALLED,
        MARK_MISSING,
        healthy.UNDISPATCHED,
        healthy.WAITING,
        healthy.HELD,
    ),
    Aspect.REGISTRATION: (
        DELETED_IN_FLIGHT,
        healthy.DELETED,
        PASS_SUPERSEDED,
        FAN_OUT_MISSING,
        healthy.REGISTERED,
        healthy.REGISTRATION_NEEDS_REVIEW,
        REQUEST_MISSING,
        healthy.AWAITING_TEXT,
        healthy.TEXT_UNDER_REVIEW,
        healthy.WITHOUT_TEXT,
        REQUEST_TICKET_MISSING,
        RUN_MISSING,
        TICKET_PARKED,
        TICKET_DEAD_LETTERED,
        REQUEST_STALLED,
        RUN_LAPSED,
        healthy.WITH_AGENT,
        ARTIFACT_UNOPENED,
        APPLY_STALLED,
        MARK_MISSING,
        healthy.UNDISPATCHED,
        healthy.WAITING,
        healthy.HELD,
        FAILURE_RETRYABLE,
        healthy.AWAITING_RETRY,
        healthy.FAILED,
    ),
    **dict.fromkeys(PARTS, _PART_ROWS),
}

#: Every discrepancy by its name.
DISCREPANCIES: Final[Mapping[str, Discrepancy]] = {
    row.name: row for rows in ORDER.values() for row in rows if isinstance(row, Discrepancy)
}
#: Every healthy row by its name.
HEALTHY: Final[Mapping[str, Healthy]] = {
    row.name: row for rows in ORDER.values() for row in rows if isinstance(row, Healthy)
}

IMPOSSIBLE: Final = "state_impossible"
SETTLING: Final = "settling"
#: What the answer begins with where nothing disagrees.
HEALTHY_PREFIX: Final = "healthy:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer for one aspect of one document."""

    name: str
    """Of the discrepancy or of the healthy row; ``settling``, or ``state_impossible``."""
    owner: Owner
    """Who has the next move."""
    due: datetime | None
    """By when; since when it is due, for a discrepancy. ``None`` where nobody has a move, a person decides, or the move
    is another aspect's."""
    discrepancy: Discrepancy | None = None
    """What holds."""
    settling: Discrepancy | None = None
    """What disagrees, while its grace runs until ``due``."""
    severity: Severity | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be repaired or reported."""
        return self.discrepancy is None and not self.impossible

    @property
    def impossible(self) -> bool:
        """Whether no row of the table holds: a person must look."""
        return self.name == IMPOSSIBLE


@cache
def verdict(aspect: Aspect) -> ColumnElement[str]:
    """The CASE: a discrepancy's name, ``healthy:<name>``, ``healthy:settling:<discrepancy>`` or ``state_impossible``."""
    return verdict_of(ORDER[aspect], situation(aspect))


def verdict_of(rows: Collection[Row], s: Situation) -> ColumnElement[str]:
    """The CASE over these rows, in their order."""
    whens: list[tuple[ColumnElement[bool], ColumnElement[str]]] = []
    for row in rows:
        if isinstance(row, Healthy):
            whens.append((row.condition(s), word(f"{HEALTHY_PREFIX}{row.name}")))
            continue
        whens.append((row.condition(s), word(row.name)))
        whens.append((row.disagrees(s), word(f"{HEALTHY_PREFIX}{SETTLING}:{row.name}")))
    return case(*whens, else_=word(IMPOSSIBLE))


@cache
def question(aspect: Aspect) -> Select[Any]:
    """Columns ``document_id``, ``verdict``, ``due`` for the documents of parameter ``document_ids``.

    Its other parameters are those of :func:`parameters`.
    """
    s = situation(aspect)
    source, answer, due = answered(aspect)
    return (
        select(s.document.c.id.label("document_id"), answer.label("verdict"), due.label("due"))
        .select_from(source)
        .where(s.document.c.id == any_(bindparam("document_ids", type_=ARRAY(Uuid()))))
    )


@cache
def answered(aspect: Aspect) -> tuple[FromClause, ColumnElement[str], ColumnElement[datetime]]:
    """The situation with its verdict and due time beside it, for a question of one's own.

    The verdict is worked out once a row (``OFFSET 0`` keeps the planner from doing it again for every use of it).
    """
    s = situation(aspect)
    only_once = select(verdict(aspect).label("name")).offset(literal_column("0"))
    lateral = only_once.correlate(*s.members().values()).lateral("verdict")
    answer: ColumnElement[str] = lateral.c.name
    whens: list[tuple[ColumnElement[bool], ColumnElement[datetime]]] = []
    for row in ORDER[aspect]:
        if isinstance(row, Discrepancy):
            names = (row.name, f"{HEALTHY_PREFIX}{SETTLING}:{row.name}")
            whens.append((answer.in_([word(name) for name in names]), row.due(s)))
        elif row.due is not None:
            whens.append((answer == word(f"{HEALTHY_PREFIX}{row.name}"), row.due(s)))
    due = case(*whens, else_=cast(null(), DateTime(timezone=True)))
    return s.source.join(lateral, true()), answer, due


def parameters(*, lanes: Mapping[Lane, LaneState], graces: Mapping[str, timedelta], now: datetime) -> dict[str, object]:
    """The values that every question needs.

    :param now: by the database's clock, read once for the whole pass.
    """
    values: dict[str, object] = {"now": now}
    for lane in Lane:
        values.update(lanes[lane].parameters())
    values.update({f"grace_{name}": grace for name, grace in graces.items()})
    return values


def classify(
    connection: Executor,
    document_ids: Collection[UUID],
    *,
    lanes: Mapping[Lane, LaneState],
    graces: Mapping[str, timedelta],
    now: datetime,
    aspects: Collection[Aspect] = tuple(Aspect),
) -> dict[UUID, dict[Aspect, Verdict]]:
    """Answer every aspect of the documents, with one question an aspect; ids that are not there are left out.

    :param now: by the database's clock.
    """
    found: dict[UUID, dict[Aspect, Verdict]] = {}
    if not document_ids:
        return found
    values = parameters(lanes=lanes, graces=graces, now=now) | {"document_ids": list(document_ids)}
    for aspect in aspects:
        for row in connection.execute(question(aspect), values):
            found.setdefault(row.document_id, {})[aspect] = read_verdict(row.verdict, due=row.due)
    return found


def read_verdict(answer: str, *, due: datetime | None) -> Verdict:
    """What the CASE said."""
    if answer == IMPOSSIBLE:
        return Verdict(name=IMPOSSIBLE, owner=Owner.PERSON, due=None, severity=Severity.CRITICAL)
    if not answer.startswith(HEALTHY_PREFIX):
        row = DISCREPANCIES[answer]
        return Verdict(name=answer, owner=row.owner, due=due, discrepancy=row, severity=row.severity)
    name = answer.removeprefix(HEALTHY_PREFIX)
    if name.startswith(f"{SETTLING}:"):
        young = DISCREPANCIES[name.removeprefix(f"{SETTLING}:")]
        return Verdict(name=SETTLING, owner=young.while_young, due=due, settling=young)
    return Verdict(name=name, owner=HEALTHY[name].owner, due=due)
