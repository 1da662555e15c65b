"""A part that the chain should have asked for, and no row of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_

from baton.reconcilers.aspects import PARTS, Owner, Severity
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.registration import parts


def _turn(s: Situation) -> ColumnElement[bool]:
    """The chain has come to this part."""
    d = s.document.c
    if s.before is None:
        return d.understood_pass.is_not_distinct_from(d.registration_pass)
    b = s.before.c
    return or_(b.state == word("ready"), and_(b.state == word("failed"), b.next_attempt_at.is_(None)))


def _since(s: Situation) -> ColumnElement[datetime]:
    return s.document.c.registration_status_since if s.before is None else s.before.c.state_since


def _clauses(s: Situation) -> tuple[Clause, ...]:
    d = s.document.c
    row = s.document.c.id if s.part is None else s.part.c.document_id
    return (
        Clause("the document is registered", d.registration_status == word("registered")),
        Clause("its status is about the present pass", d.registration_pass.is_not_distinct_from(d.extraction_run_id)),
        Clause("the part is not there", row.is_(None)),
        Clause("the chain has come to it", _turn(s)),
    )


def _repair(case: Case) -> Repaired | None:
    ticket = None if case.part is None else parts.request(case.executor, case.document, case.part)
    return None if ticket is None else Repaired(action=Action.REQUESTED, ticket_id=ticket.id)


PART_MISSING = Discrepancy(
    name="part_missing",
    aspects=PARTS,
    meaning="the part is the next of the chain, and nobody has asked for it",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=_since,
    reads=frozenset(
        (
            "document.registration_status",
            "document.registration_status_since",
            "document.registration_pass",
            "document.extraction_run_id",
            "document.understood_pass",
            "part.document_id",
            "before.state",
            "before.state_since",
            "before.next_attempt_at",
        )
    ),
    candidates=(),
    action="ask for the part",
    repair=_repair,
    spends_run=True,
    limited=False,
)
