"""A deleted document that still has a paid run under way."""

from __future__ import annotations

from datetime import timedelta

from baton.documents.messages import RUN_DELETED
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.discrepancies.run_lapsed import PAST_DEADLINE
from baton.reconcilers.rows import Action, Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.runs.rows import supersede_pending


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (
        Clause("the document is deleted", s.document.c.deleted_at.is_not(None)),
        Clause("a run for it is pending", s.stray),
    )


def _repair(case: Case) -> Repaired | None:
    settled = supersede_pending(case.executor, case.document, purpose=moves.purpose_of(case), message=RUN_DELETED)
    return Repaired(action=Action.SUPERSEDED) if settled else None


DELETED_IN_FLIGHT = Discrepancy(
    name="deleted_in_flight",
    aspects=(Aspect.REGISTRATION, Aspect.CARD, Aspect.SECTIONS, Aspect.BRIEF),
    meaning="the document is deleted, and a run for it is still pending",
    owner=Owner.RECONCILER,
    severity=Severity.INFO,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.deleted_at,
    reads=frozenset(("document.id", "document.deleted_at", "stray")),
    # Whoever deletes a document supersedes its runs in the same transaction, so this takes a hand or a bug. Pending runs
    # may be many, and all of living documents: those whose deadline has passed are few. The others the backstop comes
    # to in its turn.
    candidates=(PAST_DEADLINE,),
    action="supersede the run",
    repair=_repair,
    limited=False,
)
