"""A settled run whose announcement moves nothing any more: lost, or handled without the effect."""

from __future__ import annotations

from datetime import timedelta

from baton.db.states import EventType, Lane
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.conditions import is_running, is_settled, letter_is
from baton.reconcilers.lost import GONE, gone_reads, gone_since
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.reconcilers.stalls import stalled


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (
        is_running(s),
        is_settled(s),
        Clause("the ticket that announces it is lost, or was handled without the effect", letter_is(s, *GONE)),
    )


def _repair(case: Case) -> Repaired | None:
    return moves.fail(case) if case.exhausted else moves.announce(case)


APPLY_STALLED = Discrepancy(
    name="apply_stalled",
    aspects=(Aspect.REGISTRATION,),
    meaning="the run is settled, and the ticket that announces it was lost or handled without the effect",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.ticket.c.created_at if s.letter is None else gone_since(s.letter),
    reads=gone_reads("letter")
    | {"document.registration_status", "document.registration_run_id", "run.state", "letter.life"},
    candidates=stalled(Lane.REGISTRAR, EventType.ARTIFACT_DELIVERED),
    action="write the next generation; at the limit fail the registration with a message",
    repair=_repair,
)
