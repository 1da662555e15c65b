"""What registration produces: assertions of the Record, intent claims, policies, understanding parts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, REAL

from baton.db.states import Part, PartState
from baton.db.tables.base import instant, metadata, of_document, one_of

ASSERTION_KINDS = ("name", "type", "tag", "party", "date", "link")
ASSERTION_STATES = ("applied", "proposed", "denied", "accepted", "declined", "superseded")

#: One claim about a document: applied under the firm's policy, or proposed to a person.
assertion = Table(
    "assertion",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("extraction_run_id", Uuid, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("detail", JSONB, nullable=False, server_default="{}"),
    Column("target_document_id", Uuid),  # links; the composite key keeps them inside the firm
    Column("state", Text, nullable=False),
    Column("confidence", REAL, nullable=False),
    instant("created_at", clock=True),
    instant("decided_at"),
    Column("decided_by", Text),
    of_document(),
    ForeignKeyConstraint(["firm_id", "target_document_id"], ["documents.firm_id", "documents.id"]),
    ForeignKeyConstraint(["firm_id", "run_id"], ["agents.agent_run.firm_id", "agents.agent_run.run_id"]),
    one_of("kind", ASSERTION_KINDS),
    one_of("state", ASSERTION_STATES),
    CheckConstraint("(decided_at IS NOT NULL) = (state IN ('accepted', 'declined'))", name="decided"),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
    CheckConstraint("length(value) BETWEEN 1 AND 2000", name="value"),
    Index("assertion_document", "document_id", "kind", "id"),
    schema="record",
)

#: The innermost of the three guards of exactly-once: one row per intent and pass.
intent_claim = Table(
    "intent_claim",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("extraction_run_id", Uuid, nullable=False),
    Column("intent_key", Text, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("assertion_id", BigInteger),  # NULL: it says what stands already
    instant("claimed_at", clock=True),
    PrimaryKeyConstraint("document_id", "extraction_run_id", "intent_key", "firm_id"),
    of_document(),
    CheckConstraint("length(intent_key) BETWEEN 1 AND 300", name="intent_key"),
    schema="record",
)

#: A firm's rule per intent kind; no row means the product's default.
firm_policy = Table(
    "firm_policy",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("confidence_floor", REAL, nullable=False, server_default="0"),  # below it an apply becomes a proposal
    PrimaryKeyConstraint("firm_id", "kind"),
    one_of("kind", ASSERTION_KINDS),
    one_of("decision", ("apply", "propose", "deny")),
    CheckConstraint("confidence_floor BETWEEN 0 AND 1", name="confidence_floor"),
    schema="record",
)

understanding_part = Table(
    "understanding_part",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("extraction_run_id", Uuid, nullable=False),
    Column("part", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="requested"),
    instant("state_since", clock=True),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("ticket_id", BigInteger),  # mark
    Column("run_id", Uuid),  # mark
    instant("next_attempt_at"),
    Column("message", Text),  # lawyer-safe
    PrimaryKeyConstraint("document_id", "extraction_run_id", "part", "firm_id"),
    of_document(),
    one_of("part", Part),
    one_of("state", PartState),
    CheckConstraint("next_attempt_at IS NULL OR state = 'failed'", name="next_attempt"),
    schema="record",
    postgresql_with={"fillfactor": "85"},
)

Index(
    "part_open",
    understanding_part.c.state_since,
    understanding_part.c.document_id,
    understanding_part.c.part,
    postgresql_where=text("state IN ('requested', 'running')"),
)
Index(
    "part_ticket_missing",
    understanding_part.c.state_since,
    understanding_part.c.document_id,
    understanding_part.c.part,
    postgresql_where=text("state = 'requested' AND ticket_id IS NULL"),
)
Index(
    "part_run_missing",
    understanding_part.c.state_since,
    understanding_part.c.document_id,
    understanding_part.c.part,
    postgresql_where=text("state = 'running' AND run_id IS NULL"),
)
Index(
    "part_retry",
    understanding_part.c.next_attempt_at,
    understanding_part.c.document_id,
    understanding_part.c.part,
    postgresql_where=text("state = 'failed' AND next_attempt_at IS NOT NULL"),
)

part_content = Table(
    "part_content",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("extraction_run_id", Uuid, nullable=False),
    Column("part", Text, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("content", JSONB, nullable=False),
    instant("written_at", clock=True),
    PrimaryKeyConstraint("document_id", "extraction_run_id", "part", "firm_id"),
    of_document(),
    one_of("part", Part),
    schema="record",
)
