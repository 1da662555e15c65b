"""Inbox items (IB-3): what a lawyer must look at, once per document, kind and pass.

The dedup key is the last of the guards against doing it twice: it holds though every lock before it were missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from baton.contract.classification import Concern, Outcome, Turn
from baton.db.rows import Document
from baton.db.tables import inbox_item
from baton.record import messages


class ItemKind(StrEnum):
    """Why somebody must look: the agent's concerns, and what an apply finds out by itself."""

    SIDE_CONFLICT = "side_conflict"
    PRIVILEGE_SUSPICION = "privilege_suspicion"
    WRONG_MATTER = "wrong_matter"
    ILLEGIBLE = "illegible"
    OTHER = "other"
    REVIEW = "registration_review"
    DUPLICATE_CONTENT = "duplicate_content"


#: Another copy of which this document is the one to be named: so of several copies each but the first is named, once.
#: An older copy counts when its bytes are known. So does a newer one that was registered before they were: it found no
#: copy to be told of. Served by ``doc_checksum`` and ``item_document``.
_OTHER_COPY = text("""
SELECT matter_id FROM documents other
WHERE firm_id = :firm AND checksum_sha256 = :checksum AND deleted_at IS NULL AND id <> :document
  AND (id < :document
       OR (registration_status IN ('registered', 'registration_needs_review')
           AND NOT EXISTS (SELECT FROM inbox.item raised
                            WHERE raised.document_id = other.id AND raised.kind = 'duplicate_content')))
ORDER BY (matter_id = :matter) DESC LIMIT 1
""")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at; ``summary`` is shown to the lawyer as it stands."""

    kind: ItemKind
    summary: str


def items_of(turn: Turn) -> tuple[Item, ...]:
    """What a turn raises. A verdict of needs review raises an item of its own where no concern says why."""
    items = tuple(Item(ItemKind(concern.kind.value), _summary(concern)) for concern in turn.concerns)
    if not items and turn.verdict.outcome is Outcome.NEEDS_REVIEW:
        return (Item(ItemKind.REVIEW, turn.verdict.note or messages.REVIEW),)
    return items


def duplicates_of(connection: Connection, document: Document) -> tuple[Item, ...]:
    """An item where the firm has the same file already; read as its member.

    It says whether the other copy is of the same matter, and no more: not everybody in a firm may see every matter.
    """
    if document.checksum_sha256 is None:
        return ()
    matter_id = connection.scalar(
        _OTHER_COPY,
        {
            "firm": document.firm_id,
            "checksum": document.checksum_sha256,
            "document": document.id,
            "matter": document.matter_id,
        },
    )
    if matter_id is None:
        return ()
    same = matter_id == document.matter_id
    return (Item(ItemKind.DUPLICATE_CONTENT, messages.DUPLICATE_IN_MATTER if same else messages.DUPLICATE_IN_FIRM),)


def raise_items(
    connection: Connection, document: Document, items: Iterable[Item], *, run_id: UUID
) -> Sequence[ItemKind]:
    """Mint the items, as the firm's member; returns the kinds that are new.

    A kind that is still open for the document from an earlier pass is not raised a second time.
    """
    still_open = set(
        connection.scalars(
            select(inbox_item.c.kind).where(inbox_item.c.document_id == document.id, inbox_item.c.resolved_at.is_(None))
        )
    )
    rows = [
        {
            "id": uuid7(),
            "firm_id": document.firm_id,
            "matter_id": document.matter_id,
            "document_id": document.id,
            "kind": item.kind.value,
            "dedup_key": dedup_key(document, item.kind),
            "summary": item.summary,
            "run_id": run_id,
        }
        for item in items
        if item.kind.value not in still_open
    ]
    if not rows:
        return ()
    statement = (
        insert(inbox_item)
        .values(rows)
        .on_conflict_do_nothing(index_elements=["firm_id", "dedup_key"])
        .returning(inbox_item.c.kind)
    )
    return tuple(ItemKind(kind) for kind in connection.scalars(statement))


def dedup_key(document: Document, kind: ItemKind) -> str:
    """The same for every run of one pass; a new pass may raise again what was resolved."""
    return f"{kind}:{document.id}:{document.extraction_run_id}"


def _summary(concern: Concern) -> str:
    return concern.note if concern.page is None else f"{concern.note} (page {concern.page})"
