"""What reconcile loops remember between passes and share between replicas; of no firm."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from baton.db.states import Lane
from baton.db.tables.base import instant, metadata, one_of

#: One look at a queue's depth. One alone is never trusted: several over a time say that a queue was empty.
lane_reading = Table(
    "lane_reading",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("lane", Text, nullable=False),
    instant("at", clock=True),
    Column("visible", Integer, nullable=False),
    Column("in_flight", Integer, nullable=False),
    Column("delayed", Integer, nullable=False),
    one_of("lane", Lane),
    CheckConstraint("visible >= 0 AND in_flight >= 0 AND delayed >= 0", name="depth"),
    Index("lane_reading_at", "lane", "at"),
    schema="ops",
)

#: Cursors and marks by name: where the scrub stands, when the last pass and the last whole scrub ended.
reconcile_state = Table(
    "reconcile_state",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSONB, nullable=False),
    instant("updated_at", clock=True),
    schema="ops",
)

#: Repairs made, by minute; written in the transaction of the repair.
repair_budget = Table(
    "repair_budget",
    metadata,
    instant("minute", required=True),
    Column("repairs", Integer, nullable=False),
    PrimaryKeyConstraint("minute"),
    schema="ops",
)

#: What holds repairs (never scans) back: a suspension with a reason, or a maintenance window.
maintenance = Table(
    "maintenance",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("kind", Text, nullable=False),
    instant("starts_at", clock=True),
    instant("ends_at"),  # NULL: until somebody ends it
    Column("reason", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    instant("lifted_at"),
    one_of("kind", ("suspension", "window")),
    CheckConstraint("length(reason) BETWEEN 1 AND 1000", name="reason"),
    Index("maintenance_open", "starts_at", postgresql_where=text("lifted_at IS NULL")),
    schema="ops",
)

#: One row: which resource works on this database. A second one finds it taken.
owner = Table(
    "owner",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default="true"),
    Column("resource", Text, nullable=False),
    instant("since", clock=True),
    instant("seen_at", clock=True),
    CheckConstraint("singleton", name="singleton"),
    schema="ops",
)

#: A declared redrive: what was asked for by whom and why, how far it is, and what came of it.
redrive = Table(
    "redrive",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("requested_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("selector", JSONB, nullable=False),
    Column("state", Text, nullable=False, server_default="running"),
    Column("cursor", JSONB),
    Column("counts", JSONB, nullable=False, server_default="{}"),
    instant("created_at", clock=True),
    instant("finished_at"),
    one_of("state", ("running", "finished", "stopped")),
    CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
    CheckConstraint("length(reason) BETWEEN 1 AND 1000", name="reason"),
    schema="ops",
)

#: A message found on a dead-letter queue. It is redriven, or kept here with a reason; never dropped.
dead_letter = Table(
    "dead_letter",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("ticket_id", BigInteger),  # NULL: it belongs to no ticket
    Column("body", Text, nullable=False),  # a pointer, as every message
    Column("receive_count", Integer),
    instant("found_at", clock=True),
    instant("settled_at"),
    Column("outcome", Text),
    Column("reason", Text),
    one_of("outcome", ("redriven", "kept", "obsolete")),
    CheckConstraint("(outcome IS NULL) = (settled_at IS NULL)", name="settled"),
    UniqueConstraint("queue", "message_id"),
    Index("dead_letter_ticket", "ticket_id", postgresql_where=text("outcome IS NULL")),
    Index("dead_letter_open", "queue", "id", postgresql_where=text("outcome IS NULL")),
    schema="ops",
)
