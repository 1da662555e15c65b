"""State of the system itself, of no firm: consumers alive, the guard in front of paid runs, the release."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from baton.db.tables.base import instant, metadata, one_of

#: A consumer says that it polls; "lost" and "lane stalled" both ask this table.
consumer_heartbeat = Table(
    "consumer_heartbeat",
    metadata,
    Column("consumer_id", Uuid, primary_key=True),
    Column("queue", Text, nullable=False),  # ingest, registrar, results
    Column("version", Text, nullable=False),
    instant("started_at", clock=True),
    instant("polled_at", clock=True),
    one_of("queue", ("ingest", "registrar", "results")),
    schema="ops",
)

#: One row: how many runs an hour may be paid for, and the breaker that stops dispatch when the agent is dark.
dispatch_guard = Table(
    "dispatch_guard",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default="true"),
    Column("runs_per_hour", Integer),  # NULL: no limit
    Column("breaker", Text, nullable=False, server_default="closed"),
    instant("breaker_since", clock=True),
    instant("retry_at"),  # open: when trial runs begin
    Column("trial_runs_left", Integer, nullable=False, server_default="0"),
    Column("reason", Text),
    CheckConstraint("singleton", name="singleton"),
    one_of("breaker", ("closed", "open", "trial")),
    schema="ops",
)

#: Runs paid for, by minute; written in the transaction that mints the run.
agent_spend = Table(
    "agent_spend",
    metadata,
    instant("minute", required=True),
    Column("runs", Integer, nullable=False),
    PrimaryKeyConstraint("minute"),
    schema="ops",
)

#: One row: the oldest program version that this database still allows.
release = Table(
    "release",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default="true"),
    Column("min_app_version", Text, nullable=False),
    CheckConstraint("singleton", name="singleton"),
    schema="app",
)
