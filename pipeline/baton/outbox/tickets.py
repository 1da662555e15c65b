"""Writing tickets on the caller's open transaction, and reading them back.

A ticket commits with the status change that it announces, or neither does (Story 1503). Nothing here commits. The
caller holds the document's lock wherever the ticket belongs to a status change; locks go document, run, ticket.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import EventType, Outcome, Part
from baton.db.tables import outbox
from baton.outbox import wake
from baton.outbox.keys import Subject, idempotency_key
from baton.outbox.life import close_open
from baton.telemetry.metrics import TICKETS_WRITTEN
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import current_traceparent, span


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Where the document's bytes are. A ticket is a pointer: never bytes, never content."""

    matter_id: UUID
    object_key: str
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One row of the outbox, as far as a consumer or a writer needs it."""

    id: int
    firm_id: UUID
    matter_id: UUID
    document_id: UUID
    event_type: EventType
    idempotency_key: str
    generation: int
    redrive_of: int | None
    extraction_epoch: int
    extraction_run_id: UUID | None
    attempt: int
    run_id: UUID | None
    part: Part | None
    request_id: UUID | None
    object_key: str
    content_type: str
    traceparent: str | None
    not_before: datetime
    dispatched_at: datetime | None
    parked_at: datetime | None
    work_attempts: int
    handled_at: datetime | None
    outcome: Outcome | None

    @property
    def subject(self) -> Subject:
        """What the ticket asks for."""
        return Subject(
            firm_id=self.firm_id,
            document_id=self.document_id,
            event_type=self.event_type,
            extraction_epoch=self.extraction_epoch,
            extraction_run_id=self.extraction_run_id,
            run_id=self.run_id,
            part=self.part,
            request_id=self.request_id,
        )

    @property
    def pointer(self) -> Pointer:
        """Where the document's bytes are."""
        return Pointer(matter_id=self.matter_id, object_key=self.object_key, content_type=self.content_type)

    @property
    def undispatched(self) -> bool:
        """Whether the relay still has it before it."""
        return self.dispatched_at is None and self.parked_at is None and self.handled_at is None


def pointer_of(document: Document) -> Pointer:
    """Where the document's bytes are."""
    return Pointer(matter_id=document.matter_id, object_key=document.object_key, content_type=document.content_type)


#: The columns of :class:`Ticket`, in its order.
TICKET_COLUMNS = tuple(outbox.c[name] for name in Ticket.__dataclass_fields__)


def as_ticket(row: Row[Any]) -> Ticket:
    """Read a row that was selected by :data:`TICKET_COLUMNS`."""
    values = row._asdict()
    values["event_type"] = EventType(values["event_type"])
    values["part"] = None if values["part"] is None else Part(values["part"])
    values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
    return Ticket(**values)


def load(executor: Executor, *, ticket_id: int, key: str) -> Ticket | None:
    """The ticket that a message names, or ``None`` where id and key do not belong together.

    Everything else about the work comes from this row: a message is never believed.
    """
    row = executor.execute(select(*TICKET_COLUMNS).where(outbox.c.id == ticket_id)).one_or_none()
    ticket = None if row is None else as_ticket(row)
    return ticket if ticket is not None and ticket.idempotency_key == key else None


def newest(executor: Executor, subject: Subject) -> Ticket | None:
    """The newest generation for ``subject``. Found by document: a key looked up under RLS has no index."""
    statement = select(*TICKET_COLUMNS).where(_about(subject)).order_by(outbox.c.generation.desc()).limit(1)
    row = executor.execute(statement).one_or_none()
    return None if row is None else as_ticket(row)


def write_first(
    executor: Executor,
    subject: Subject,
    *,
    pointer: Pointer,
    attempt: int = 0,
    not_before: datetime | None = None,
) -> Ticket:
    """Write the first ticket for ``subject``; where it stands already, return that row and write nothing.

    :param not_before: by the database's clock; ``None`` means due now.
    """
    return _insert(executor, subject, pointer=pointer, attempt=attempt, not_before=not_before, generation=1, first=None)


def write_next(
    executor: Executor,
    subject: Subject,
    *,
    pointer: Pointer,
    attempt: int = 0,
    not_before: datetime | None = None,
) -> Ticket:
    """Ask again for ``subject``: the next generation, a new row that every layer of deduplication lets through.

    While the newest generation is still before the relay, that one is the answer and nothing is written. Open earlier
    generations are closed as replaced. The caller holds the document's lock (or, for an artifact, the run's).
    """
    last = newest(executor, subject)
    if last is None:
        return write_first(executor, subject, pointer=pointer, attempt=attempt, not_before=not_before)
    if last.undispatched:
        return last
    close_open(executor, _about(subject), outcome=Outcome.REPLACED)
    return _insert(
        executor,
        subject,
        pointer=pointer,
        attempt=attempt,
        not_before=not_before,
        generation=last.generation + 1,
        first=last.redrive_of or last.id,
    )


def ask(
    executor: Executor,
    subject: Subject,
    *,
    pointer: Pointer,
    attempt: int,
    not_before: datetime | None = None,
) -> Ticket:
    """Ask for ``subject``, whether or not it was asked for before: the first ticket, or after one that went out the next."""
    ticket = write_first(executor, subject, pointer=pointer, attempt=attempt, not_before=not_before)
    if ticket.undispatched:
        return ticket
    return write_next(executor, subject, pointer=pointer, attempt=attempt, not_before=not_before)


def _insert(
    executor: Executor,
    subject: Subject,
    *,
    pointer: Pointer,
    attempt: int,
    not_before: datetime | None,
    generation: int,
    first: int | None,
) -> Ticket:
    key = idempotency_key(subject, generation)
    with span(
        SpanName.OUTBOX_ENQUEUE,
        attributes={
            Attribute.FIRM: subject.firm_id,
            Attribute.MATTER: pointer.matter_id,
            Attribute.EVENT_TYPE: subject.event_type,
            Attribute.GENERATION: generation,
        },
    ):
        statement = (
            insert(outbox)
            .values(
                firm_id=subject.firm_id,
                matter_id=pointer.matter_id,
                document_id=subject.document_id,
                event_type=subject.event_type.value,
                idempotency_key=key,
                generation=generation,
                redrive_of=first,
                extraction_epoch=subject.extraction_epoch,
                extraction_run_id=subject.extraction_run_id,
                attempt=attempt,
                run_id=subject.run_id,
                part=subject.part,
                request_id=subject.request_id,
                object_key=pointer.object_key,
                content_type=pointer.content_type,
                traceparent=current_traceparent(),
                not_before=func.app.clock() if not_before is None else not_before,
            )
            .on_conflict_do_nothing(index_elements=["firm_id", "idempotency_key"])
            .returning(*TICKET_COLUMNS)
        )
        row = executor.execute(statement).one_or_none()
        if row is not None:
            ticket = as_ticket(row)
            TICKETS_WRITTEN.add(event_type=ticket.event_type)
            wake.after_commit(executor, ticket.event_type)
            return ticket
        # A statement of its own: under READ COMMITTED its snapshot sees what the conflict waited for.
        existing = executor.execute(
            select(*TICKET_COLUMNS).where(_about(subject), outbox.c.idempotency_key == key)
        ).one()
        return as_ticket(existing)


def _about(subject: Subject) -> ColumnElement[bool]:
    """SQL: the row is a generation of ``subject``; served by ``outbox_document``."""
    conditions = [
        outbox.c.document_id == subject.document_id,
        outbox.c.firm_id == subject.firm_id,
        outbox.c.event_type == subject.event_type.value,
    ]
    match subject.event_type:
        case EventType.INGEST_REQUESTED:
            conditions.append(outbox.c.extraction_epoch == subject.extraction_epoch)
        case EventType.REGISTRATION_REQUESTED:
            conditions.append(outbox.c.extraction_run_id == subject.extraction_run_id)
        case EventType.UNDERSTANDING_REQUESTED:
            conditions += [outbox.c.extraction_run_id == subject.extraction_run_id, outbox.c.part == subject.part]
        case EventType.RESEGMENT_REQUESTED:
            conditions.append(outbox.c.request_id == subject.request_id)
        case EventType.ARTIFACT_DELIVERED:
            conditions.append(outbox.c.run_id == subject.run_id)
    return and_(*conditions)
