"""A queued document that no ticket speaks of."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import documents
from baton.reconcilers import marks, moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.conditions import is_asked
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_d = documents.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return is_asked(s), Clause("there is no ticket of this pass", s.ticket.c.id.is_(None))


def _repair(case: Case) -> Repaired | None:
    return moves.fail(case) if case.exhausted else moves.ask_again(case)


REQUEST_TICKET_MISSING = Discrepancy(
    name="request_ticket_missing",
    aspects=(Aspect.REGISTRATION,),
    meaning="registration is queued, and no ticket of the pass asks for it",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.registration_status_since,
    reads=frozenset(("document.registration_status", "document.registration_status_since", "ticket.id")),
    candidates=(marks.REQUEST_TICKET,),
    action="write the ticket",
    repair=_repair,
    spends_run=True,
)
