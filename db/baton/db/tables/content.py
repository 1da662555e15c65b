"""What extraction read: text per page and pass, and the search vectors beside it."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import REAL

from baton.db.tables.base import TSVector, metadata, of_document, one_of

document_page = Table(
    "document_page",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("extraction_run_id", Uuid, nullable=False),
    Column("page_number", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("confidence", REAL),  # 0..100, OCR only
    PrimaryKeyConstraint("document_id", "extraction_run_id", "page_number", "firm_id"),
    of_document(),
    one_of("source", ("native", "ocr")),
    CheckConstraint("page_number >= 1", name="page_number"),
)

#: One row per page of the *current* pass: a vector of a whole 300-page document can pass Postgres' 1 MB limit.
document_search = Table(
    "document_search",
    metadata,
    Column("firm_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("page_number", Integer, nullable=False),
    Column("vector", TSVector(), nullable=False),
    PrimaryKeyConstraint("document_id", "page_number", "firm_id"),
    of_document(),
    # the firm first (btree_gin): a word that every firm uses is looked up among one firm's pages only
    Index("document_search_vector", "firm_id", "vector", postgresql_using="gin"),
)
