"""``inbox.item``: what a lawyer must look at (IB-3)."""

from __future__ import annotations

from sqlalchemy import Column, Index, Table, Text, UniqueConstraint, Uuid, text

from baton.db.tables.base import instant, metadata, of_document

inbox_item = Table(
    "item",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("firm_id", Uuid, nullable=False),
    Column("matter_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dedup_key", Text, nullable=False),
    Column("summary", Text, nullable=False),  # lawyer-safe
    Column("run_id", Uuid),
    instant("created_at", clock=True),
    instant("resolved_at"),
    Column("resolved_by", Text),
    of_document(),
    UniqueConstraint("firm_id", "dedup_key"),
    Index("item_open", "firm_id", "created_at", "id", postgresql_where=text("resolved_at IS NULL")),
    Index("item_document", "document_id"),
    schema="inbox",
)
