"""Rows of ``record.understanding_part``: what can happen to one part of a document's understanding, each as one call.

A part (card, sections, brief) belongs to one pass and has a machine of its own, so that a brief that fails leaves the
registration alone. The parts form a chain: one that is ready or has failed for good asks for the next, so that a
document pays for one run at a time. Every function works on the caller's transaction and never commits. The document is locked first,
then the part, then the run, then the ticket. Who calls what:

================================  =============================================================
:func:`request`                   apply, for the first part and then for each next one; a reconciler
:func:`retry`                     a reconciler, once ``next_attempt_at`` has passed
:func:`ask_again`                 a person who wants the part made anew (resegment)
:func:`begin`, :func:`renew`      dispatch, when it mints a run
:func:`requeue`                   dispatch, when the agent never took the run
:func:`postpone`                  dispatch, when no run may be paid for now
:func:`ready`, :func:`fail`       apply; dispatch where it ends badly
:func:`adopt_ticket`,             a reconciler, where a mark is missing and what it should name is there
:func:`adopt_run`
================================  =============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, insert, select, update

from baton.db.connect import Executor
from baton.db.edges import Machine, find
from baton.db.errors import IllegalTransition
from baton.db.rows import Document
from baton.db.states import EventType, Part, PartState
from baton.db.tables import outbox, understanding_part
from baton.outbox.keys import subject_of
from baton.outbox.tickets import (
    TICKET_COLUMNS,
    Ticket,
    as_ticket,
    ask,
    newest,
    pointer_of,
    write_first,
    write_next,
)
from baton.registration.service import backoff, due_in
from baton.settings.agents import Runs


class LostPart(Exception):
    """The part was not as it had been read: whoever moves it does not hold its lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """One row of ``record.understanding_part`` as it was when it was read."""

    firm_id: UUID
    document_id: UUID
    extraction_run_id: UUID
    part: Part
    state: PartState
    state_since: datetime
    attempt: int
    ticket_id: int | None
    run_id: UUID | None
    next_attempt_at: datetime | None
    message: str | None


#: The events that ask for a part.
REQUESTS = (EventType.UNDERSTANDING_REQUESTED, EventType.RESEGMENT_REQUESTED)

PART_COLUMNS = tuple(understanding_part.c[name] for name in PartRow.__dataclass_fields__)


def as_part(row: Row[Any]) -> PartRow:
    """Read a row that was selected by :data:`PART_COLUMNS`."""
    values: dict[str, Any] = dict(zip(PartRow.__dataclass_fields__, row, strict=True))
    values["part"] = Part(values["part"])
    values["state"] = PartState(values["state"])
    return PartRow(**values)


def following(part: Part) -> Part | None:
    """The part that the chain asks for after ``part``; ``None`` after the last."""
    order = tuple(Part)
    rest = order[order.index(part) + 1 :]
    return rest[0] if rest else None


def read_part(executor: Executor, document: Document, part: Part) -> PartRow | None:
    """The part of the document's present pass, or ``None`` where it was never asked for."""
    row = executor.execute(_of_present_pass(document, part)).one_or_none()
    return None if row is None else as_part(row)


def lock_part(executor: Executor, document: Document, part: Part) -> PartRow | None:
    """Lock the part of the present pass until the transaction ends; the caller holds the document's lock."""
    row = executor.execute(_of_present_pass(document, part).with_for_update(key_share=True)).one_or_none()
    return None if row is None else as_part(row)


def newest_ticket(executor: Executor, document: Document, part: Part) -> Ticket | None:
    """The newest request for the part in the present pass: an understanding's or a resegment's."""
    row = executor.execute(
        select(*TICKET_COLUMNS)
        .where(
            outbox.c.document_id == document.id,
            outbox.c.event_type.in_([each.value for each in REQUESTS]),
            outbox.c.extraction_run_id == document.extraction_run_id,
            outbox.c.part == part.value,
        )
        .order_by(outbox.c.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else as_ticket(row)


def concerns(row: PartRow, ticket: Ticket) -> bool:
    """Whether an understanding or resegment ticket is about this part as it now stands.

    As with a document's registration the mark decides, and where there is none the attempt does.
    """
    if (ticket.extraction_run_id, ticket.part) != (row.extraction_run_id, row.part):
        return False
    if row.ticket_id is not None:
        return ticket.id == row.ticket_id
    return ticket.attempt == row.attempt


def request(executor: Executor, document: Document, part: Part, *, not_before: datetime | None = None) -> Ticket | None:
    """Ask for a part that the present pass does not have yet, with its ticket; ``None`` where it stands already."""
    if read_part(executor, document, part) is not None:
        return None
    subject = subject_of(document, EventType.UNDERSTANDING_REQUESTED, part=part)
    ticket = ask(executor, subject, pointer=pointer_of(document), attempt=1, not_before=not_before)
    _insert(executor, document, part, ticket=ticket)
    return ticket


def retry(executor: Executor, document: Document, row: PartRow, *, not_before: datetime | None = None) -> Ticket:
    """Failed → requested: one more attempt.

    :raises IllegalTransition: the part is under way.
    """
    attempt = row.attempt + 1
    _legal(row, PartState.REQUESTED)
    subject = subject_of(document, EventType.UNDERSTANDING_REQUESTED, part=row.part)
    ticket = ask(executor, subject, pointer=pointer_of(document), attempt=attempt, not_before=not_before)
    _move(executor, row, PartState.REQUESTED, ticket_id=ticket.id, attempt=attempt, message=None)
    return ticket


def ask_again(executor: Executor, document: Document, part: Part, *, request_id: UUID) -> Ticket:
    """A person wants the part made anew: its row is requested with a ticket of that request's own.

    Attempts begin at 1 again; what the part held stands until the new content comes. The same request asked twice
    is one ticket.

    :raises IllegalTransition: the part is requested or running already.
    """
    subject = subject_of(document, EventType.RESEGMENT_REQUESTED, part=part, request_id=request_id)
    asked = newest(executor, subject)
    if asked is not None:
        return asked
    row = lock_part(executor, document, part)
    if row is not None:
        _legal(row, PartState.REQUESTED)
    ticket = write_first(executor, subject, pointer=pointer_of(document), attempt=1)
    if row is None:
        _insert(executor, document, part, ticket=ticket)
    else:
        _move(executor, row, PartState.REQUESTED, ticket_id=ticket.id, attempt=1, message=None)
    return ticket


def begin(executor: Executor, row: PartRow, *, run_id: UUID) -> PartRow:
    """Requested → running, with the run whose answer will count."""
    return _move(executor, row, PartState.RUNNING, run_id=run_id, message=None)


def renew(executor: Executor, row: PartRow, *, run_id: UUID) -> PartRow:
    """A new run takes over from one that lapsed: an attempt is spent, the part stays at running."""
    return _save(executor, row, run_id=run_id, attempt=row.attempt + 1)


def requeue(
    executor: Executor, document: Document, row: PartRow, *, wait: timedelta, ticket: Ticket | None = None
) -> Ticket:
    """Running → requested: the agent never took the run. No attempt is spent; the next ticket waits ``wait``.

    :param ticket: the one that was being served; ``None`` where it is not known.
    """
    _legal(row, PartState.REQUESTED)
    again = _next_of(executor, document, row, wait=wait, ticket=ticket)
    _move(executor, row, PartState.REQUESTED, ticket_id=again.id)
    return again


def postpone(
    executor: Executor, document: Document, row: PartRow, *, wait: timedelta, ticket: Ticket | None = None
) -> Ticket:
    """A requested part's ticket cannot be served now (budget, breaker): its next generation waits ``wait``."""
    again = _next_of(executor, document, row, wait=wait, ticket=ticket)
    _save(executor, row, ticket_id=again.id)
    return again


def ready(executor: Executor, document: Document, row: PartRow) -> PartRow:
    """Running → ready: the content is written in this transaction. The next part of the chain is asked for."""
    moved = _move(executor, row, PartState.READY, message=None)
    _continue(executor, document, row.part)
    return moved


def fail(
    executor: Executor, document: Document, row: PartRow, *, message: str, retryable: bool, limits: Runs
) -> PartRow:
    """Running → failed, with a lawyer-safe reason.

    ``next_attempt_at`` is set where asking again can help and attempts are left. Without it the part has failed for good,
    and the next part of the chain is asked for: a card that cannot be made must not cost the brief.
    """
    again = retryable and row.attempt < limits.max_attempts
    wait = backoff(row.attempt, limits=limits)
    moved = _move(
        executor, row, PartState.FAILED, message=message, next_attempt_at=due_in(executor, wait) if again else None
    )
    if not again:
        _continue(executor, document, row.part)
    return moved


def adopt_ticket(executor: Executor, row: PartRow, ticket_id: int) -> PartRow:
    """Write the mark of a request that stands already."""
    return _save(executor, row, ticket_id=ticket_id)


def adopt_run(executor: Executor, row: PartRow, run_id: UUID) -> PartRow:
    """Write the mark of a run that stands already: its answer counts."""
    return _save(executor, row, run_id=run_id)


def _continue(executor: Executor, document: Document, part: Part) -> None:
    following_part = following(part)
    if following_part is not None:
        request(executor, document, following_part)


def _of_present_pass(document: Document, part: Part) -> Select[Any]:
    return select(*PART_COLUMNS).where(
        understanding_part.c.document_id == document.id,
        understanding_part.c.extraction_run_id == document.extraction_run_id,
        understanding_part.c.part == part.value,
    )


def _next_of(executor: Executor, document: Document, row: PartRow, *, wait: timedelta, ticket: Ticket | None) -> Ticket:
    """The next generation of what the ticket asks for: a resegment stays one, with its request's id."""
    subject = ticket.subject if ticket else subject_of(document, EventType.UNDERSTANDING_REQUESTED, part=row.part)
    return write_next(
        executor,
        subject,
        pointer=pointer_of(document),
        attempt=row.attempt,
        not_before=due_in(executor, wait) if wait else None,
    )


def _insert(executor: Executor, document: Document, part: Part, *, ticket: Ticket) -> None:
    executor.execute(
        insert(understanding_part).values(
            firm_id=document.firm_id,
            document_id=document.id,
            extraction_run_id=document.extraction_run_id,
            part=part.value,
            state=PartState.REQUESTED.value,
            attempt=1,
            ticket_id=ticket.id,
        )
    )


def _legal(row: PartRow, target: PartState) -> None:
    if find(Machine.PART, source=row.state, target=target) is None:
        raise IllegalTransition(f"part status cannot go from {row.state} to {target}", constraint="part_status_edge")


def _move(executor: Executor, row: PartRow, target: PartState, **values: Any) -> PartRow:
    _legal(row, target)
    return _save(executor, row, state=target.value, **values)


def _save(executor: Executor, row: PartRow, **values: Any) -> PartRow:
    moved = executor.execute(
        update(understanding_part)
        .where(
            understanding_part.c.document_id == row.document_id,
            understanding_part.c.extraction_run_id == row.extraction_run_id,
            understanding_part.c.part == row.part.value,
            understanding_part.c.state == row.state.value,
        )
        .values(**values)
        .returning(*PART_COLUMNS)
    ).one_or_none()
    if moved is None:
        raise LostPart(f"part {row.part} of document {row.document_id} is no longer {row.state}")
    return as_part(moved)
