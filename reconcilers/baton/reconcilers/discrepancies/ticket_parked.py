"""A ticket that the relay gave up: its own fault made the queue refuse it again and again."""

from __future__ import annotations

from datetime import timedelta

from baton.db.states import FailureKind
from baton.db.tables import outbox
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.conditions import WAIT_READS, of_ticket, waits_for
from baton.reconcilers.lost import Life
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_o = outbox.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (Clause("the ticket that the aspect waits for is parked", waits_for(s, Life.PARKED)),)


def _repair(case: Case) -> Repaired | None:
    if case.exhausted:
        return moves.fail(case, kind=FailureKind.TICKET_PARKED)
    return moves.ask_again(case) if moves.is_asked(case) else moves.announce(case)


TICKET_PARKED = Discrepancy(
    name="ticket_parked",
    aspects=tuple(Aspect),
    meaning="the queue refused the aspect's ticket by its own fault until the relay parked it",
    owner=Owner.RECONCILER,
    severity=Severity.CRITICAL,
    grace=timedelta(minutes=15),
    clauses=_clauses,
    since=lambda s: of_ticket(s, lambda ticket: ticket.c.parked_at),
    reads=WAIT_READS | {"ticket.parked_at", "letter.parked_at"},
    candidates=(
        by_index(
            "o_parked",
            outbox,
            _o.parked_at.is_not(None),
            _o.handled_at.is_(None),
            document=_o.document_id,
            at=_o.parked_at,
            identity=_o.id,
        ),
    ),
    action="write the next generation, a few times at long intervals; then fail the aspect visibly",
    repair=_repair,
)
