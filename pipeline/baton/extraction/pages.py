"""Writing what was read: the text of each page, and its search vector beside it.

Both statements take rows as arrays: ``COPY`` is refused under row-level security, and a statement per page would hold the
document's lock for longer. They run in chunks, inside the one transaction that moves the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import ARRAY, Integer, Text, bindparam, delete, text
from sqlalchemy.dialects.postgresql import REAL

from baton.db.connect import Executor
from baton.db.tables import document_search
from baton.extraction.outcomes import Page

#: Characters of one statement's pages: memory on both sides, and the time of one statement.
_CHUNK_CHARS: Final = 2_000_000
_CHUNK_PAGES: Final = 500

#: Bytes of a page's text that go into its vector. Postgres refuses a vector above 1 MiB, and hyphenated words, which are
#: entered whole and in parts, make one about four times as large as their text.
VECTOR_BYTES: Final = 220_000

#: Locks: rows of its own only. Both inserts read the arrays once; keys are checked against ``documents`` by firm and id.
_INSERT = text("""
WITH page AS (
  SELECT * FROM unnest(:numbers, :texts, :sources, :confidences, :cuts)
           AS p (page_number, text, source, confidence, cut)
), written AS (
  INSERT INTO document_page (firm_id, document_id, extraction_run_id, page_number, text, source, confidence)
  SELECT :firm, :document, :pass, page_number, text, source, confidence FROM page
)
INSERT INTO document_search (firm_id, document_id, page_number, vector)
SELECT :firm, :document, page_number, to_tsvector('simple', left(text, cut)) FROM page
""").bindparams(
    bindparam("numbers", type_=ARRAY(Integer)),
    bindparam("texts", type_=ARRAY(Text)),
    bindparam("sources", type_=ARRAY(Text)),
    bindparam("confidences", type_=ARRAY(REAL)),
    bindparam("cuts", type_=ARRAY(Integer)),
)


def replace(executor: Executor, *, firm_id: UUID, document_id: UUID, pass_id: UUID, pages: Sequence[Page]) -> None:
    """Write the pages of a pass, and have the search know these and no older ones. The caller holds the document's lock."""
    forget(executor, firm_id=firm_id, document_id=document_id)
    for chunk in _chunks(pages):
        executor.execute(
            _INSERT,
            {
                "firm": firm_id,
                "document": document_id,
                "pass": pass_id,
                "numbers": [page.number for page in chunk],
                "texts": [page.text for page in chunk],
                "sources": [page.source.value for page in chunk],
                "confidences": [page.confidence for page in chunk],
                "cuts": [searchable(page.text) for page in chunk],
            },
        )


def forget(executor: Executor, *, firm_id: UUID, document_id: UUID) -> None:
    """Have the search know nothing of the document; its pages of older passes stay where they are."""
    executor.execute(
        delete(document_search).where(
            document_search.c.document_id == document_id, document_search.c.firm_id == firm_id
        )
    )


def searchable(page_text: str) -> int:
    """How many characters from the beginning of a page fit into a search vector, whatever words they make."""
    if len(page_text) * 4 <= VECTOR_BYTES:
        return len(page_text)
    encoded = page_text.encode("utf-8", "replace")
    if len(encoded) <= VECTOR_BYTES:
        return len(page_text)
    return len(encoded[:VECTOR_BYTES].decode("utf-8", "ignore"))


def _chunks(pages: Sequence[Page]) -> Iterator[list[Page]]:
    chunk: list[Page] = []
    size = 0
    for page in pages:
        if chunk and (len(chunk) == _CHUNK_PAGES or size + len(page.text) > _CHUNK_CHARS):
            yield chunk
            chunk, size = [], 0
        chunk.append(page)
        size += len(page.text)
    if chunk:
        yield chunk
