"""A document whose text is there and for which nobody has asked for registration."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import documents
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.registration import service

_d = documents.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (
        Clause("the text is indexed", s.document.c.processing_status == word("indexed")),
        Clause("registration was not requested", s.document.c.registration_status == word("not_requested")),
    )


def _repair(case: Case) -> Repaired | None:
    ticket = service.request(case.executor, case.document)
    return None if ticket is None else Repaired(action=Action.REQUESTED, ticket_id=ticket.id)


REQUEST_MISSING = Discrepancy(
    name="request_missing",
    aspects=(Aspect.REGISTRATION,),
    meaning="the document's text is indexed, and nobody has asked for its registration",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.processing_status_since,
    reads=frozenset(("document.processing_status", "document.processing_status_since", "document.registration_status")),
    candidates=(
        by_index(
            "m_request_missing",
            documents,
            _d.processing_status == word("indexed"),
            _d.registration_status == word("not_requested"),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.processing_status_since,
            identity=_d.id,
        ),
    ),
    action="request registration",
    repair=_repair,
    spends_run=True,
    limited=False,
)
