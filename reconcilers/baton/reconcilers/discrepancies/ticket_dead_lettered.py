"""A ticket whose message lies on the dead-letter queue: only a redrive with a reason brings it back."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import BigInteger, DateTime, Integer, bindparam, select

from baton.db.tables import dead_letter, outbox
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import Candidates
from baton.reconcilers.conditions import WAIT_READS, of_ticket, waits_for
from baton.reconcilers.lost import Life
from baton.reconcilers.rows import Clause, Discrepancy
from baton.reconcilers.situation import Situation


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (Clause("the message of its ticket lies on the dead-letter queue", waits_for(s, Life.DEAD)),)


def _candidates() -> Candidates:
    d = dead_letter.c
    statement = (
        select(outbox.c.document_id, d.found_at.label("at"), d.ticket_id.label("id"))
        .select_from(dead_letter.join(outbox, outbox.c.id == d.ticket_id))
        .where(
            d.outcome.is_(None),
            d.ticket_id > bindparam("after_id", type_=BigInteger()),
            d.found_at <= bindparam("horizon", type_=DateTime(timezone=True)),
        )
        .order_by(d.ticket_id)
        .limit(bindparam("page", type_=Integer()))
    )
    return Candidates(index="dead_letter_ticket", statement=statement, by_number=True)


TICKET_DEAD_LETTERED = Discrepancy(
    name="ticket_dead_lettered",
    aspects=tuple(Aspect),
    meaning="the message of the aspect's ticket was found on the dead-letter queue",
    owner=Owner.PERSON,
    severity=Severity.CRITICAL,
    grace=timedelta(0),
    clauses=_clauses,
    since=lambda s: of_ticket(s, lambda ticket: ticket.c.dead_at),
    reads=WAIT_READS | {"ticket.dead_at", "letter.dead_at"},
    candidates=(_candidates(),),
    action="reported; a redrive with a reason brings it back",
    repair=None,
)
