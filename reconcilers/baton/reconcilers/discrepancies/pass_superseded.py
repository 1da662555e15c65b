"""A registration status that speaks of another pass than the present one."""

from __future__ import annotations

from datetime import timedelta

from baton.db.states import LANE_OF, EventType, Lane, Outcome, Purpose
from baton.db.tables import documents
from baton.documents.messages import RUN_RE_EXTRACTED
from baton.outbox.life import close_document
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.registration import service
from baton.runs.rows import supersede_pending

_d = documents.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    d = s.document.c
    return (
        Clause("registration was asked for", d.registration_status != word("not_requested")),
        Clause(
            "its status speaks of another pass than the present one",
            d.registration_pass.is_distinct_from(d.extraction_run_id),
        ),
    )


def _repair(case: Case) -> Repaired | None:
    for purpose in Purpose:
        supersede_pending(case.executor, case.document, purpose=purpose, message=RUN_RE_EXTRACTED)
    of_lane = [event for event in EventType if LANE_OF[event] is Lane.REGISTRAR]
    close_document(case.executor, case.document.id, outcome=Outcome.STALE, event_types=of_lane)
    service.supersede(case.executor, case.document)
    return Repaired(action=Action.SUPERSEDED)


PASS_SUPERSEDED = Discrepancy(
    name="pass_superseded",
    aspects=(Aspect.REGISTRATION,),
    meaning="the registration status speaks of a pass that is not the document's present one",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.registration_status_since,
    reads=frozenset(
        f"document.{column}"
        for column in ("registration_status", "registration_status_since", "registration_pass", "extraction_run_id")
    ),
    candidates=(
        by_index(
            "m_pass_superseded",
            documents,
            _d.registration_status != word("not_requested"),
            _d.registration_pass.is_distinct_from(_d.extraction_run_id),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.registration_status_since,
            identity=_d.id,
        ),
    ),
    action="back to not requested, and to nothing else; what was under way for the old pass is settled and closed",
    repair=_repair,
)
