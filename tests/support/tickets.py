"""Tickets in bulk, written by the preparer for tests that need many or odd ones, and documents to hang single ones on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text
from uuid_utils.compat import uuid7

from baton.aws.sending import Entry
from baton.outbox import envelope
from baton.outbox.tickets import Ticket
from support.databases import Database


def new_document(database: Database, *, firm: UUID | None = None) -> tuple[UUID, UUID]:
    """A pending document; returns firm and document."""
    firm, document = firm or uuid4(), uuid7()
    with database.preparer.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type)"
                " VALUES (:id, :firm, gen_random_uuid(), 'a.pdf', 'documents/' || :id, 'application/pdf')"
            ),
            {"id": document, "firm": firm},
        )
    return firm, document


@dataclass(frozen=True, slots=True)
class Bulk:
    """Many tickets of one firm. Their documents are not there: nothing that only sends tickets could tell."""

    count: int
    firm: UUID
    lane: str = "ingest"
    documents: int | None = None
    """How many documents they are of; ``None``: one each."""
    due_ago: float = 1.0
    """Seconds; negative: due in the future. Tickets differ by a microsecond each, in id order."""
    dispatched: bool = False
    handled: bool = False


def fill(database: Database, bulk: Bulk) -> None:
    """Write them."""
    values: Mapping[str, Any] = {
        "count": bulk.count,
        "firm": bulk.firm,
        "documents": bulk.documents or bulk.count,
        "due": bulk.due_ago,
        "event": "document.ingest.requested" if bulk.lane == "ingest" else "document.registration.requested",
        "dispatched": bulk.dispatched,
        "handled": bulk.handled,
        "tag": uuid4().hex,
    }
    with database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))  # no foreign-key checks
        connection.execute(
            text(
                """
                INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,
                       extraction_epoch, extraction_run_id, object_key, content_type, not_before, dispatched_at,
                       message_id, handled_at, outcome)
                SELECT :firm, md5(:tag || 'm')::uuid, md5(:tag || i % :documents)::uuid, :event, :tag || ':' || i, 1,
                       CASE WHEN :event = 'document.ingest.requested' THEN NULL ELSE gen_random_uuid() END,
                       'documents/a.pdf', 'application/pdf',
                       app.clock() - make_interval(secs => :due) + i * interval '1 microsecond',
                       CASE WHEN :dispatched THEN app.clock() - make_interval(secs => :due) END,
                       CASE WHEN :dispatched THEN 'sent-before' END,
                       CASE WHEN :handled THEN app.clock() END, CASE WHEN :handled THEN 'done' END
                  FROM generate_series(0, :count - 1) i ORDER BY i
                """
            ),
            values,
        )


def entry_of(ticket: Ticket) -> Entry:
    """What a relay hands to the queue for a ticket of the ingest lane."""
    body = envelope.write(
        ticket_id=ticket.id,
        idempotency_key=ticket.idempotency_key,
        event_type=ticket.event_type.value,
        firm_id=ticket.firm_id,
        matter_id=ticket.matter_id,
        document_id=ticket.document_id,
        object_key=ticket.object_key,
        content_type=ticket.content_type,
    )
    return Entry(str(ticket.id), body, group=str(ticket.document_id), deduplication=uuid4().hex)


#: SQL: the ticket was sent.
DISPATCHED = "dispatched_at IS NOT NULL"


def count_where(database: Database, condition: str) -> int:
    """How many tickets there are with ``condition`` (SQL)."""
    with database.preparer.connect() as connection:
        statement = text(f"SELECT count(*) FROM ops.document_ingest_outbox WHERE {condition}")
        return int(connection.execute(statement).scalar_one())
