"""A queued document whose ticket moves nothing any more: lost, or handled without the effect."""

from __future__ import annotations

from datetime import timedelta

from baton.db.states import EventType, Lane
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.conditions import is_asked, request_is
from baton.reconcilers.lost import GONE, gone_reads, gone_since
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.reconcilers.stalls import stalled


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return is_asked(s), Clause("its ticket is lost, or was handled without the effect", request_is(s, *GONE))


def _repair(case: Case) -> Repaired | None:
    return moves.fail(case) if case.exhausted else moves.ask_again(case)


REQUEST_STALLED = Discrepancy(
    name="request_stalled",
    aspects=(Aspect.REGISTRATION,),
    meaning="registration is queued, and its ticket was lost or handled without the effect",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: gone_since(s.ticket),
    reads=gone_reads("ticket") | {"document.registration_status", "ticket.life"},
    candidates=stalled(Lane.REGISTRAR, EventType.REGISTRATION_REQUESTED),
    action="write the next generation; at the limit fail the registration with a message",
    repair=_repair,
    spends_run=True,
)
