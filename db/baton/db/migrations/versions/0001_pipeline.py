"""The pipeline's tables, routines, policies and grants."""

from __future__ import annotations

from alembic import op

from baton.db.migrations.frozen import statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything in an empty database."""
    connection = op.get_bind()
    for statement in statements("0001_pipeline.sql"):
        connection.exec_driver_sql(statement.replace("%", "%%"))
