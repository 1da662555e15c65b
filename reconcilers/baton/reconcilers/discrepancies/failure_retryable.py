"""A failure that may be tried again, and whose time has come."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_

from baton.db.states import PartState
from baton.db.tables import documents, understanding_part
from baton.reconcilers import moves
from baton.reconcilers.aspects import PARTS, Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import NOW, word
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.registration import parts, service

_d, _p = documents.c, understanding_part.c


def _failed(s: Situation) -> ColumnElement[bool]:
    if s.part is not None:
        return s.part.c.state == word("failed")
    # a retry is refused while the text is not there
    d = s.document.c
    return and_(d.registration_status == word("registration_failed"), d.processing_status == word("indexed"))


def _next_attempt(s: Situation) -> ColumnElement[datetime]:
    return s.document.c.next_attempt_at if s.part is None else s.part.c.next_attempt_at


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (
        Clause("it failed, and may be tried again", _failed(s)),
        Clause("the time of the next attempt has come", _next_attempt(s) <= NOW),
    )


def _repair(case: Case) -> Repaired | None:
    if case.part is None:
        ticket = service.request(case.executor, case.document, explicit=True)
    else:
        row = moves.lock_part(case)
        if row is None or row.state is not PartState.FAILED:
            return None
        ticket = parts.retry(case.executor, case.document, row)
    return None if ticket is None else Repaired(action=Action.RETRIED, ticket_id=ticket.id)


FAILURE_RETRYABLE = Discrepancy(
    name="failure_retryable",
    aspects=(Aspect.REGISTRATION, *PARTS),
    meaning="it failed, attempts are left, and the time of the next one has come",
    owner=Owner.RECONCILER,
    severity=Severity.INFO,
    grace=timedelta(0),
    clauses=_clauses,
    since=_next_attempt,
    reads=frozenset(
        (
            "document.registration_status",
            "document.processing_status",
            "document.next_attempt_at",
            "part.state",
            "part.next_attempt_at",
        )
    ),
    candidates=(
        by_index(
            "m_retry",
            documents,
            _d.registration_status == word("registration_failed"),
            _d.next_attempt_at.is_not(None),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.next_attempt_at,
            identity=_d.id,
        ),
        by_index(
            "part_retry",
            understanding_part,
            _p.state == word("failed"),
            _p.next_attempt_at.is_not(None),
            document=_p.document_id,
            at=_p.next_attempt_at,
            identity=_p.document_id,
        ),
    ),
    action="retry",
    repair=_repair,
    spends_run=True,
    limited=False,
)
