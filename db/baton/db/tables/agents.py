"""Agent runs and the verified effects that they delivered."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from baton.db.states import Purpose, RunState
from baton.db.tables.base import instant, metadata, of_document, one_of

agent_run = Table(
    "agent_run",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("seq", BigInteger, Identity(always=True), nullable=False),  # order of minting: "newer run" means higher seq
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),  # the artifact never names its document; this row does
    Column("extraction_run_id", Uuid, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("result_schema", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="pending"),
    Column("ticket_id", BigInteger),  # the ticket it was dispatched for
    Column("traceparent", Text),
    Column("invoke_count", Integer, nullable=False, server_default="0"),  # committed before each POST
    instant("created_at", clock=True),
    instant("accepted_at"),
    instant("deadline_at", required=True),
    instant("settled_at"),
    Column("result_key", Text, nullable=False),
    Column("result_digest", Text),
    Column("message", Text),  # lawyer-safe
    Column("artifact_ticket_id", BigInteger),  # mark: written by the settler together with the ticket
    of_document(),
    one_of("purpose", Purpose),
    one_of("state", RunState),
    CheckConstraint("(state = 'pending') = (settled_at IS NULL)", name="settled"),
    UniqueConstraint("firm_id", "run_id"),
    schema="agents",
    postgresql_with={"fillfactor": "85"},
)

Index(
    "run_one_pending",
    agent_run.c.document_id,
    agent_run.c.purpose,
    agent_run.c.firm_id,
    unique=True,
    postgresql_where=text("state = 'pending'"),
)
Index("run_document", agent_run.c.document_id, agent_run.c.purpose, agent_run.c.seq)
Index(
    "run_deadline",
    agent_run.c.deadline_at,
    agent_run.c.run_id,
    postgresql_where=text("state = 'pending'"),
)
Index(
    "m_artifact_unopened",
    agent_run.c.settled_at,
    agent_run.c.run_id,
    postgresql_where=text("state IN ('delivered', 'rejected', 'expired') AND artifact_ticket_id IS NULL"),
)
Index(
    "run_settled_brin",
    agent_run.c.settled_at,
    postgresql_using="brin",
    postgresql_with={"pages_per_range": "32", "autosummarize": "on"},
)

agent_effect = Table(
    "agent_effect",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("ordinal", Integer, nullable=False),  # position in the artifact
    Column("schema_name", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("disposition", Text, nullable=False, server_default="verified"),
    instant("created_at", clock=True),
    instant("applied_at"),
    of_document(),
    ForeignKeyConstraint(["firm_id", "run_id"], ["agents.agent_run.firm_id", "agents.agent_run.run_id"]),
    one_of("disposition", ("verified", "applied", "stale")),
    UniqueConstraint("firm_id", "run_id", "ordinal"),
    Index("effect_document", "document_id", "schema_name", "id"),
    schema="agents",
)
