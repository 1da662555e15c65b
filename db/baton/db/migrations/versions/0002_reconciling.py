"""What reconcile loops remember and share."""

from __future__ import annotations

from alembic import op

from baton.db.migrations.frozen import statements

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; nothing that exists is touched."""
    connection = op.get_bind()
    for statement in statements("0002_reconciling.sql"):
        connection.exec_driver_sql(statement.replace("%", "%%"))
