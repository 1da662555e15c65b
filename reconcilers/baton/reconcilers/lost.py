"""Where a ticket is in its life, as expressions: backlog is not loss.

A ticket that is neither handled nor dead-lettered is *lost* when

a. it was received, its hold and one visibility time more have passed, and a consumer of the lane is alive; or
b. it was never received, no earlier unhandled ticket of its document stands before it, and either the queue was seen
   empty again and again since it was sent, with consumers polling, or for a long while everything that was received
   for the first time had been sent later; or
c. it is older than the queue's retention, and a consumer is alive.

Where nobody consumes nothing is lost: the lane is stalled, and said so. How long a queue is says nothing at all.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, FromClause, and_, case, exists, func, or_, select

from baton.db.tables import dead_letter, outbox
from baton.reconcilers.questions import NOW, LaneColumns, word


class Life(StrEnum):
    """Where a ticket is; each is in exactly one of these."""

    HANDLED = "handled"
    PARKED = "parked"
    UNDISPATCHED = "undispatched"
    DEAD = "dead"
    LOST = "lost"
    WAITING = "waiting"
    HELD = "held"


#: The states of a ticket that is where it should be: before the relay, on the queue, or with a worker.
TRAVELLING = (Life.UNDISPATCHED, Life.WAITING, Life.HELD)
#: The states of a ticket that moves nothing any more. Handled counts where the effect is not there.
GONE = (Life.LOST, Life.HANDLED)


def life_of(ticket: FromClause, lane: LaneColumns) -> ColumnElement[str]:
    """Where ``ticket`` is; ``dead_at`` among its columns says since when its message is on the dead-letter queue."""
    t = ticket.c
    return case(
        (t.handled_at.is_not(None), word(Life.HANDLED)),
        (t.parked_at.is_not(None), word(Life.PARKED)),
        (t.dispatched_at.is_(None), word(Life.UNDISPATCHED)),
        (t.dead_at.is_not(None), word(Life.DEAD)),
        (_lost(ticket, lane), word(Life.LOST)),
        (t.first_received_at.is_(None), word(Life.WAITING)),
        else_=word(Life.HELD),
    )


def released_at(ticket: FromClause, lane: LaneColumns) -> ColumnElement[datetime]:
    """When a received ticket counts as lost, a consumer being alive: its hold and one visibility time more."""
    return func.coalesce(ticket.c.hold_until, ticket.c.first_received_at) + lane.visibility


def gone_since(ticket: FromClause) -> ColumnElement[datetime]:
    """Since when a ticket that is lost, or handled without an effect, moves nothing any more."""
    t = ticket.c
    return func.coalesce(t.handled_at, t.hold_until, t.first_received_at, t.dispatched_at, t.created_at)


def gone_reads(member: str) -> frozenset[str]:
    """The columns that :func:`gone_since` asks of ``member``."""
    columns = ("handled_at", "hold_until", "first_received_at", "dispatched_at", "created_at")
    return frozenset(f"{member}.{column}" for column in columns)


def _lost(ticket: FromClause, lane: LaneColumns) -> ColumnElement[bool]:
    t = ticket.c
    never = t.first_received_at.is_(None)
    passed_by = or_(t.dispatched_at < lane.empty_before, t.dispatched_at < lane.overtaken_before)
    return and_(
        lane.alive,
        or_(
            and_(~never, released_at(ticket, lane) < NOW),
            t.dispatched_at < NOW - lane.retention,
            and_(never, passed_by, ~_stands_before(ticket, lane)),
        ),
    )


def _stands_before(ticket: FromClause, lane: LaneColumns) -> ColumnElement[bool]:
    """An earlier ticket of the document may still be on the queue, and hold its group up."""
    t = ticket.c
    earlier, dead = outbox.alias("earlier"), dead_letter.alias("earlier_dead")
    settled = exists(
        select(dead.c.id).where(dead.c.ticket_id == earlier.c.id, dead.c.outcome.is_(None)).correlate(earlier)
    )
    return exists(
        select(earlier.c.id)
        .where(
            earlier.c.document_id == t.document_id,
            earlier.c.id < t.id,
            earlier.c.lane == t.lane,
            earlier.c.dispatched_at >= NOW - lane.retention,
            earlier.c.handled_at.is_(None),
            ~settled,
        )
        .correlate(ticket)
    )
