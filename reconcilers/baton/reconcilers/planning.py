"""From findings to what is to be done about each: the very plan that a repairing pass carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from baton.db.rows import Document
from baton.db.states import Lane
from baton.reconcilers import ledger, limits, windows
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.lanes import LaneState
from baton.reconcilers.ledger import Entry
from baton.reconcilers.limits import Turn
from baton.reconcilers.results import Finding, Guard, Planned
from baton.reconcilers.rows import Discrepancy
from baton.reconcilers.windows import Held
from baton.runs import budget
from baton.runs.budget import Why
from baton.settings.model import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a pass knows before it looks at any document."""

    now: datetime
    """By the database's clock."""
    lanes: Mapping[Lane, LaneState]
    graces: Mapping[str, timedelta]
    owned: bool = True
    """Whether this resource is the one that works on the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What holds repairs back whatever the document is, read once for a batch."""

    held: Held | None
    owned: bool
    left: int
    """Repairs that this minute still has."""
    run: budget.Refused | None
    """Why no paid run may be asked for now."""


def allowance(connection: Connection, *, ground: Ground, settings: Settings, left: int | None = None) -> Allowance:
    """Read what holds repairs back.

    :param left: repairs that were reserved; ``None`` reads how many this minute still has.
    """
    return Allowance(
        held=windows.held(connection),
        owned=ground.owned,
        left=limits.left(connection, config=settings.reconcile) if left is None else left,
        run=budget.peek(connection, limits=settings.runs),
    )


def plan(
    findings: Sequence[Finding],
    *,
    documents: Mapping[UUID, Document],
    entries: Mapping[UUID, Sequence[Entry]],
    allowed: Allowance,
    ground: Ground,
    settings: Settings,
) -> list[Planned]:
    """Decide about each finding; pure. Those without a document (locked, or gone) are left out."""
    plans = []
    left = allowed.left
    for finding in findings:
        document = documents.get(finding.document_id)
        if document is None:
            continue
        discrepancy = DISCREPANCIES.get(finding.name)
        if discrepancy is None or discrepancy.repair is None:
            plans.append(Planned(finding=finding, action=None))
            continue
        past = ledger.history(entries.get(document.id, ()), document, finding.aspect, finding.name)
        turn = limits.turn(discrepancy, past, config=settings.reconcile)
        guard, due = _guard(discrepancy, turn, allowed=allowed, left=left, now=ground.now)
        left -= guard is None
        plans.append(
            Planned(finding=finding, action=discrepancy.action, guard=guard, due=due, exhausted=turn.exhausted)
        )
    return plans


def _guard(
    discrepancy: Discrepancy, turn: Turn, *, allowed: Allowance, left: int, now: datetime
) -> tuple[Guard | None, datetime | None]:
    """What holds one repair back, and until when; the strongest first."""
    if not allowed.owned:
        return Guard.OWNER, None
    if allowed.held is not None:
        return allowed.held.guard, allowed.held.until
    if turn.due is not None and turn.due > now:
        return Guard.BACKOFF, turn.due
    # a visible failure spends nothing
    if discrepancy.spends_run and not turn.exhausted and allowed.run is not None:
        guard = Guard.BREAKER if allowed.run.why is Why.BREAKER else Guard.BUDGET
        return guard, now + allowed.run.wait
    if left <= 0:
        return Guard.RATE, None
    return None, None
