"""What consumers write into a ticket's life, all by the database's clock.

*received* for a whole batch in one statement, *held* for as long as the message stays invisible, *work attempts*
counted before the work (so that work which kills its process is counted too), and *handled* with an outcome, in the
transaction of the effect. Each locks only the tickets it names, in id order.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import CTE, ColumnElement, func, select, update

from baton.db.connect import Executor
from baton.db.states import EventType, Outcome
from baton.db.tables import outbox


def mark_received(executor: Executor, ticket_ids: Sequence[int], *, visibility: timedelta) -> None:
    """Say that a consumer holds these tickets' messages until ``visibility`` from now."""
    locked = _in_order(ticket_ids)
    executor.execute(
        update(outbox)
        .where(outbox.c.id == locked.c.id)
        .values(
            first_received_at=func.coalesce(outbox.c.first_received_at, func.app.clock()),
            receive_count=outbox.c.receive_count + 1,
            hold_until=func.app.clock() + visibility,
        )
    )


def extend_hold(executor: Executor, ticket_ids: Sequence[int], *, visibility: timedelta) -> None:
    """Say that the messages' invisibility was extended; zero releases them."""
    locked = _in_order(ticket_ids)
    executor.execute(update(outbox).where(outbox.c.id == locked.c.id).values(hold_until=func.app.clock() + visibility))


def count_work(executor: Executor, ticket_id: int) -> int:
    """Count one more attempt at the work, to be committed before the work begins; returns the count."""
    return int(
        executor.execute(
            update(outbox)
            .where(outbox.c.id == ticket_id)
            .values(work_attempts=outbox.c.work_attempts + 1)
            .returning(outbox.c.work_attempts)
        ).scalar_one()
    )


def forgive_work(executor: Executor, ticket_id: int) -> None:
    """Take one counted attempt back: it ended for want of something that is not the ticket's fault."""
    executor.execute(
        update(outbox)
        .where(outbox.c.id == ticket_id, outbox.c.work_attempts > 0)
        .values(work_attempts=outbox.c.work_attempts - 1)
    )


def mark_handled(executor: Executor, ticket_id: int, *, outcome: Outcome) -> bool:
    """Close the ticket in the transaction of its effect; ``False`` where it was closed before."""
    statement = (
        update(outbox)
        .where(outbox.c.id == ticket_id, outbox.c.handled_at.is_(None))
        .values(handled_at=func.app.clock(), outcome=outcome.value)
        .returning(outbox.c.id)
    )
    return executor.execute(statement).first() is not None


def close_document(
    executor: Executor, document_id: UUID, *, outcome: Outcome, event_types: Sequence[EventType] = tuple(EventType)
) -> int:
    """Close every open ticket of a document; whoever makes tickets pointless closes them. Returns how many."""
    return close_open(
        executor,
        (outbox.c.document_id == document_id) & outbox.c.event_type.in_([event.value for event in event_types]),
        outcome=outcome,
    )


def close_open(executor: Executor, which: ColumnElement[bool], *, outcome: Outcome) -> int:
    """Close the tickets among ``which`` that nobody has handled, undispatched and parked ones too."""
    open_ids = executor.scalars(
        select(outbox.c.id)
        .where(which, outbox.c.handled_at.is_(None))
        .order_by(outbox.c.id)
        .with_for_update(key_share=True)
    ).all()
    if not open_ids:
        return 0
    closed = executor.execute(
        update(outbox)
        .where(outbox.c.id.in_(open_ids), outbox.c.handled_at.is_(None))
        .values(handled_at=func.app.clock(), outcome=outcome.value)
        .returning(outbox.c.id)
    )
    return len(closed.all())


def _in_order(ticket_ids: Sequence[int]) -> CTE:
    """Lock the tickets in id order: an UPDATE by itself takes them as its plan comes upon them, and meets its like."""
    return (
        select(outbox.c.id)
        .where(outbox.c.id.in_(sorted(set(ticket_ids))))
        .order_by(outbox.c.id)
        .with_for_update(key_share=True)
        .cte("locked")
        .prefix_with("MATERIALIZED")
    )
