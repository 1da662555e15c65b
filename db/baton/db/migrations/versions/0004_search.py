"""A search whose places are not taken by what cannot be shown."""

from __future__ import annotations

from alembic import op

from baton.db.migrations.frozen import statements

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replace the function's body; who may call it, and as whom it runs, stays."""
    connection = op.get_bind()
    for statement in statements("0004_search.sql"):
        connection.exec_driver_sql(statement.replace("%", "%%"))
