"""Alembic's entry point; :mod:`baton.db.migrate` hands over an open connection and holds the lock."""

from alembic import context

from baton.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="alembic_version",
    version_table_schema="app",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
