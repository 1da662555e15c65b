"""``documents``: both axes, their since-times, and the marks that make absence indexable.

The row stays narrow (the search vector lives in :mod:`baton.db.tables.content`): every
transition rewrites it. A *mark* is the id of the ticket or run that the row waits for;
the index of a discrepancy has "the mark is NULL" in its predicate and is empty in health.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from baton.db.states import ProcessingStatus, RegistrationStatus
from baton.db.tables.base import instant, metadata, one_of

documents = Table(
    "documents",
    metadata,
    Column("id", Uuid, primary_key=True),  # UUIDv7, made by the application: keeps key order close to age
    Column("firm_id", Uuid, nullable=False),
    Column("matter_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),  # as uploaded; the registered name is an assertion of the Record
    Column("object_key", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("size_bytes", BigInteger),
    Column("checksum_sha256", Text),
    Column("processing_status", Text, nullable=False, server_default="pending"),
    instant("processing_status_since", clock=True),
    Column("registration_status", Text, nullable=False, server_default="not_requested"),
    instant("registration_status_since", clock=True),
    Column("extraction_epoch", Integer, nullable=False, server_default="1"),
    Column("extraction_attempt", Integer, nullable=False, server_default="0"),
    Column("extraction_run_id", Uuid),  # the pass
    Column("registration_attempt", Integer, nullable=False, server_default="0"),
    Column("registration_run_id", Uuid),  # the run that may win; mark of run_missing
    Column("registration_pass", Uuid),  # the pass that registration_status speaks of
    Column("understood_pass", Uuid),  # the pass whose parts were asked for
    Column("ingest_ticket_id", BigInteger),
    Column("registration_ticket_id", BigInteger),
    instant("next_attempt_at"),  # NULL: not retryable, attempts used up, or a person's decision
    Column("failure_kind", Text),
    Column("processing_message", Text),  # lawyer-safe
    Column("registration_message", Text),  # lawyer-safe
    instant("created_at", clock=True),
    instant("deleted_at"),
    one_of("processing_status", ProcessingStatus),
    one_of("registration_status", RegistrationStatus),
    CheckConstraint("length(name) BETWEEN 1 AND 1024", name="name"),
    CheckConstraint("length(object_key) BETWEEN 1 AND 1024", name="object_key"),
    CheckConstraint("size_bytes >= 0", name="size_bytes"),
    CheckConstraint("extraction_epoch >= 1", name="extraction_epoch"),
    # the registrar reads pages by pass, so text without a pass would be text that nobody can name
    CheckConstraint(
        "processing_status NOT IN ('indexed', 'needs_review') OR extraction_run_id IS NOT NULL",
        name="text_has_pass",
    ),
    CheckConstraint(
        "registration_status = 'not_requested' OR registration_pass IS NOT NULL",
        name="status_has_pass",
    ),
    CheckConstraint(
        "next_attempt_at IS NULL OR registration_status = 'registration_failed'",
        name="next_attempt",
    ),
    UniqueConstraint("firm_id", "id"),
    UniqueConstraint("firm_id", "object_key"),
    postgresql_with={
        "fillfactor": "85",
        "autovacuum_vacuum_scale_factor": "0.01",
        "autovacuum_analyze_scale_factor": "0.005",
    },
)


def _mark(name: str, since: str, where: str) -> None:
    """Index of one discrepancy: (age, id) where the thing is absent. 8 kB in health, whatever the backlog."""
    Index(
        name,
        documents.c[since],
        documents.c.id,
        postgresql_where=text(f"{where} AND deleted_at IS NULL"),
    )


_mark("m_upload_abandoned", "processing_status_since", "processing_status = 'pending'")
_mark(
    "m_ingest_ticket_missing",
    "processing_status_since",
    "processing_status = 'uploaded' AND ingest_ticket_id IS NULL",
)
_mark(
    "m_request_missing",
    "processing_status_since",
    "processing_status = 'indexed' AND registration_status = 'not_requested'",
)
_mark(
    "m_request_ticket_missing",
    "registration_status_since",
    "registration_status = 'queued' AND registration_ticket_id IS NULL",
)
_mark(
    "m_run_missing",
    "registration_status_since",
    "registration_status = 'registering' AND registration_run_id IS NULL",
)
_mark(
    "m_retry",
    "next_attempt_at",
    "registration_status = 'registration_failed' AND next_attempt_at IS NOT NULL",
)
_mark(
    "m_pass_superseded",
    "registration_status_since",
    "registration_status <> 'not_requested' AND registration_pass IS DISTINCT FROM extraction_run_id",
)
_mark(
    "m_fan_out_missing",
    "registration_status_since",
    "registration_status = 'registered' AND understood_pass IS DISTINCT FROM registration_pass",
)
# Wide ones, for metrics and the rotating backstop. Status first, so that the planner never prefers them to a mark's.
Index(
    "doc_open_reg",
    documents.c.registration_status,
    documents.c.registration_status_since,
    documents.c.id,
    postgresql_where=text("registration_status IN ('queued', 'registering') AND deleted_at IS NULL"),
)
Index(
    "doc_open_ing",
    documents.c.processing_status,
    documents.c.processing_status_since,
    documents.c.id,
    postgresql_where=text("processing_status IN ('uploaded', 'stored', 'extracting') AND deleted_at IS NULL"),
)
Index("doc_matter", documents.c.firm_id, documents.c.matter_id, documents.c.id)
Index(
    "doc_checksum",
    documents.c.firm_id,
    documents.c.checksum_sha256,
    postgresql_where=text("checksum_sha256 IS NOT NULL AND deleted_at IS NULL"),
)
