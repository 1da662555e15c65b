"""Indexes over receipts: what was received and lost, and what was received lately."""

from __future__ import annotations

from alembic import op

from baton.db.migrations.frozen import statements

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INDEXES = ("o_received", "o_received_brin")


def upgrade() -> None:
    """Build the indexes beside live work; what an attempt that broke off left behind is dropped first.

    Building waits for older transactions and stands in nobody's way, so it may wait longer than a lock.
    """
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        patience = connection.exec_driver_sql("SHOW lock_timeout").scalar_one()
        connection.exec_driver_sql("SET lock_timeout = 0")
        try:
            for name in INDEXES:
                connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS ops.{name}")
            for statement in statements("0003_receipts.sql"):
                connection.exec_driver_sql(statement)
        finally:
            connection.exec_driver_sql(f"SET lock_timeout = '{patience}'")
