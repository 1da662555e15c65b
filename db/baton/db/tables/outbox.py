"""``ops.document_ingest_outbox``: the tickets, each with its whole life (Story 1503)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from baton.db.states import EventType, Outcome, Part
from baton.db.tables.base import instant, metadata, of_document, one_of

outbox = Table(
    "document_ingest_outbox",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("matter_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("event_type", Text, nullable=False),
    Column(
        "lane",
        Text,
        Computed(
            "CASE WHEN event_type = 'document.ingest.requested' THEN 'ingest' ELSE 'registrar' END",
            persisted=True,
        ),
        nullable=False,
    ),
    Column("idempotency_key", Text, nullable=False),
    Column("generation", Integer, nullable=False, server_default="1"),
    Column("redrive_of", BigInteger),  # the first generation
    Column("extraction_epoch", Integer, nullable=False),
    Column("extraction_run_id", Uuid),  # the pass; NULL on the ingest lane
    Column("attempt", Integer, nullable=False, server_default="0"),  # registration or part attempt it was written for
    Column("run_id", Uuid),  # document.artifact.delivered only
    Column("part", Text),  # understanding and resegment only
    Column("request_id", Uuid),  # resegment only: whose explicit request this is
    Column("object_key", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("traceparent", Text),
    instant("created_at", clock=True),
    instant("not_before", clock=True),
    # written by the relay
    Column("attempts", Integer, nullable=False, server_default="0"),  # sends that failed by the entry's own fault
    Column("last_error", Text),
    instant("claimed_at"),
    instant("dispatched_at"),
    Column("message_id", Text),
    instant("parked_at"),
    # written by the consumer
    instant("first_received_at"),
    Column("receive_count", Integer, nullable=False, server_default="0"),
    instant("hold_until"),
    Column(
        "work_attempts", Integer, nullable=False, server_default="0"
    ),  # counted before the work, so that a crash counts
    instant("handled_at"),
    Column("outcome", Text),
    of_document(),
    one_of("event_type", EventType),
    one_of("outcome", Outcome),
    one_of("part", Part),
    CheckConstraint("(handled_at IS NULL) = (outcome IS NULL)", name="handled"),
    CheckConstraint("length(idempotency_key) BETWEEN 1 AND 128", name="idempotency_key"),
    CheckConstraint("generation >= 1 AND (generation = 1) = (redrive_of IS NULL)", name="generation"),
    CheckConstraint("(event_type = 'document.artifact.delivered') = (run_id IS NOT NULL)", name="run"),
    CheckConstraint("event_type = 'document.ingest.requested' OR extraction_run_id IS NOT NULL", name="pass"),
    CheckConstraint(
        "(event_type IN ('document.understanding.requested', 'document.resegment.requested')) = (part IS NOT NULL)",
        name="part_given",
    ),
    CheckConstraint("(event_type = 'document.resegment.requested') = (request_id IS NOT NULL)", name="request"),
    CheckConstraint("parked_at IS NULL OR dispatched_at IS NULL", name="parked"),
    UniqueConstraint("firm_id", "idempotency_key"),
    schema="ops",
    postgresql_with={
        "fillfactor": "85",
        # an empty poll walks dead index entries: vacuum by count, and never skip the indexes
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "500000",
        "autovacuum_analyze_scale_factor": "0.005",
        "vacuum_index_cleanup": "on",
    },
)

_PENDING = text("dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL")
Index("outbox_document", outbox.c.document_id, outbox.c.id)
Index("o_pending", outbox.c.lane, outbox.c.not_before, outbox.c.id, postgresql_where=_PENDING)
Index(
    "o_pending_firm",
    outbox.c.lane,
    outbox.c.firm_id,
    outbox.c.not_before,
    outbox.c.id,
    postgresql_where=_PENDING,
)
Index(
    "o_open",
    outbox.c.lane,
    outbox.c.dispatched_at,
    outbox.c.id,
    postgresql_where=text("dispatched_at IS NOT NULL AND handled_at IS NULL"),
)
Index(
    "o_parked",
    outbox.c.parked_at,
    outbox.c.id,
    postgresql_where=text("parked_at IS NOT NULL AND handled_at IS NULL"),
)
# Received and not handled: few, however long the queue is. What was received and lost is found here.
Index(
    "o_received",
    outbox.c.lane,
    outbox.c.first_received_at,
    outbox.c.id,
    postgresql_where=text("first_received_at IS NOT NULL AND handled_at IS NULL"),
)
# Which tickets were received for the first time lately; rows are written and received in about the same order.
Index(
    "o_received_brin",
    outbox.c.first_received_at,
    postgresql_using="brin",
    postgresql_with={"pages_per_range": "32", "autosummarize": "on"},
)
