"""A ticket is on its way and the row that waits for it does not name it: harmless, and put right."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, or_

from baton.db.tables import agent_run, documents, understanding_part
from baton.reconcilers import marks, moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.conditions import (
    MARK_READS,
    WAIT_READS,
    asked,
    letter_is,
    of_ticket,
    request_is,
    run_is_settled,
    run_of,
    running,
    ticket_mark,
)
from baton.reconcilers.lost import TRAVELLING
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_d, _p, _r = documents.c, understanding_part.c, agent_run.c


def _request_unnamed(s: Situation) -> ColumnElement[bool]:
    waiting = asked(s) if s.aspect is not Aspect.INGEST else s.document.c.processing_status == word("uploaded")
    return and_(waiting, ticket_mark(s).is_(None), request_is(s, *TRAVELLING))


def _clauses(s: Situation) -> tuple[Clause, ...]:
    unnamed = _request_unnamed(s)
    if s.run is not None:
        announced = and_(
            running(s), run_is_settled(s), run_of(s).c.artifact_ticket_id.is_(None), letter_is(s, *TRAVELLING)
        )
        unnamed = or_(unnamed, announced)
    return (Clause("a ticket is on its way, and the mark that should name it is empty", unnamed),)


def _repair(case: Case) -> Repaired | None:
    return moves.adopt_ticket(case) if moves.is_asked(case) else moves.adopt_letter(case)


MARK_MISSING = Discrepancy(
    name="mark_missing",
    aspects=tuple(Aspect),
    meaning="the ticket is on its way, and the row that waits for it does not name it",
    owner=Owner.RECONCILER,
    severity=Severity.INFO,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: of_ticket(s, lambda ticket: ticket.c.created_at),
    reads=WAIT_READS | MARK_READS | {"ticket.created_at", "letter.created_at"},
    candidates=(
        marks.INGEST_TICKET,
        marks.REQUEST_TICKET,
        marks.PART_TICKET,
        marks.LETTER,
    ),
    action="write the mark of what stands already",
    repair=_repair,
    limited=False,
)
