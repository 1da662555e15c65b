"""A registered document whose understanding was never asked for."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import documents
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.registration import parts, service

_d = documents.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    d = s.document.c
    return (
        Clause("the document is registered", d.registration_status == word("registered")),
        Clause("understanding of this pass was not asked for", d.understood_pass.is_distinct_from(d.registration_pass)),
    )


def _repair(case: Case) -> Repaired | None:
    ticket = parts.request(case.executor, case.document, moves.FIRST_PART)
    service.mark_understood(case.executor, case.document)
    return Repaired(action=Action.REQUESTED, ticket_id=None if ticket is None else ticket.id)


FAN_OUT_MISSING = Discrepancy(
    name="fan_out_missing",
    aspects=(Aspect.REGISTRATION,),
    meaning="the document is registered, and the understanding of its pass was never asked for",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.registration_status_since,
    reads=frozenset(
        f"document.{column}"
        for column in ("registration_status", "registration_status_since", "registration_pass", "understood_pass")
    ),
    candidates=(
        by_index(
            "m_fan_out_missing",
            documents,
            _d.registration_status == word("registered"),
            _d.understood_pass.is_distinct_from(_d.registration_pass),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.registration_status_since,
            identity=_d.id,
        ),
    ),
    action="ask for the first part, and write the mark",
    repair=_repair,
    spends_run=True,
    limited=False,
)
