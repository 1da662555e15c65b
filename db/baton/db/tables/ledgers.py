"""Append-only history: transitions, audit events, repairs. Nobody, not even the owner, rewrites a row."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from baton.db.tables.base import instant, metadata, of_document, one_of

#: Written by the trigger on ``documents``, so that raw SQL leaves its row too.
status_transition = Table(
    "document_status_transition",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("axis", Text, nullable=False),
    Column("from_status", Text, nullable=False),
    Column("to_status", Text, nullable=False),
    instant("at", clock=True),
    Column("extraction_epoch", Integer, nullable=False),
    Column("extraction_run_id", Uuid),
    Column("registration_attempt", Integer, nullable=False),
    Column("registration_run_id", Uuid),
    Column("failure_kind", Text),
    Column("message", Text),
    Column("actor", Text, nullable=False),  # the login role
    Column("application", Text, nullable=False),  # application_name of the session
    of_document(),
    one_of("axis", ("processing", "registration")),
    Index("transition_document", "document_id", "id"),
    schema="ops",
)

audit_event = Table(
    "audit_event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("matter_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("event", Text, nullable=False),  # e.g. document.uploaded
    Column("actor", Text, nullable=False),
    instant("at", clock=True),
    Column("detail", JSONB, nullable=False, server_default="{}"),  # metadata only, never content
    of_document(),
    Index("audit_document", "document_id", "id"),
    schema="ops",
)

registration_repair = Table(
    "registration_repair",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("aspect", Text, nullable=False),
    Column("discrepancy", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text),
    Column("extraction_run_id", Uuid),
    Column("ticket_id", BigInteger),
    Column("run_id", Uuid),
    Column("requested_by", Text, nullable=False),
    Column("detail", JSONB, nullable=False, server_default="{}"),
    instant("at", clock=True),
    of_document(),
    Index("repair_document", "document_id", "at"),
    Index("repair_at", "at"),
    schema="ops",
)
