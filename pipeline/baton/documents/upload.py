"""A document comes in: the row when an upload begins, and the hand-over when it is finished (Story 1503)."""

from __future__ import annotations

import re
from typing import Protocol
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from baton.aws.errors import KeyRefused, ObjectMissing
from baton.aws.objects import ObjectHead
from baton.db.connect import Executor
from baton.db.rows import DOCUMENT_COLUMNS, Document, as_document, lock_document, read_document
from baton.db.states import EventType, ProcessingStatus
from baton.db.tables import documents
from baton.documents.audit import AuditEvent, record_event
from baton.documents.errors import DocumentDeleted, ObjectNotUploaded, UnknownDocument
from baton.documents.machine import move
from baton.outbox.keys import subject_of
from baton.outbox.tickets import pointer_of, write_first
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_UNSAFE = re.compile(r"[^\w.\-]+")
_LONGEST_KEY_NAME = 200


class HeadStore(Protocol):
    """The part of an object store that finalizing needs."""

    def head(self, key: str) -> ObjectHead:
        """Look at an object; ``ObjectMissing`` where there is none."""
        ...


def create_document(
    executor: Executor, *, firm_id: UUID, matter_id: UUID, name: str, content_type: str, document_id: UUID | None = None
) -> Document:
    """Write the row of an upload that begins; its ``object_key`` says where the bytes go.

    :param name: as the person knows the file; 1 to 1,024 characters.
    :param document_id: UUIDv7; made here where the caller has none. Where the firm has this document already, its row is
        returned as it stands, so that an upload that broke off can begin again.
    :raises UnknownDocument: the id is taken, and not by a document of this firm.
    """
    identity = document_id or uuid7()
    row = executor.execute(
        insert(documents)
        .values(
            id=identity,
            firm_id=firm_id,
            matter_id=matter_id,
            name=name,
            object_key=object_key(firm_id=firm_id, document_id=identity, name=name),
            content_type=content_type,
        )
        # No index is named: of two inserts at once, the second may meet the first in any unique index that has the id.
        .on_conflict_do_nothing()
        .returning(*DOCUMENT_COLUMNS)
    ).one_or_none()
    if row is not None:
        return as_document(row)
    standing = read_document(executor, identity)
    if standing is None or standing.firm_id != firm_id:
        raise UnknownDocument(f"there is no document {identity}")
    return standing


def object_key(*, firm_id: UUID, document_id: UUID, name: str) -> str:
    """Where a document's bytes lie in the bucket; the name's odd characters are replaced."""
    plain = _UNSAFE.sub("_", name)[-_LONGEST_KEY_NAME:].strip("._") or "file"
    return f"{_place(firm_id, document_id)}{plain}"


def key_of(document: Document) -> str:
    """Where the document's bytes lie, for whoever is about to ask the store.

    The store knows no firms, and whoever works for a firm may write its rows: a key is followed into the document's own
    place only.

    :raises KeyRefused: it leads elsewhere.
    """
    if not document.object_key.startswith(_place(document.firm_id, document.id)):
        raise KeyRefused(f"the object key of document {document.id} leads out of its place")
    return document.object_key


def _place(firm_id: UUID, document_id: UUID) -> str:
    return f"documents/{firm_id}/{document_id}/"


def finalize_upload(executor: Executor, *, document_id: UUID, store: HeadStore, actor: str) -> Document:
    """The upload is finished: the status, its ledger row, the ticket and the audit event, in the caller's transaction.

    Finalizing again changes nothing and returns the row. The object is looked at before any lock is taken.

    :param actor: who did it, for the audit trail.
    :raises UnknownDocument: none such for the transaction's firm.
    :raises DocumentDeleted: it was deleted.
    :raises ObjectNotUploaded: the store has no object at its key.
    :raises StoreUnavailable: the store could not be asked.
    """
    with span(SpanName.UPLOAD_FINALIZE, attributes={Attribute.DOCUMENT: document_id}):
        return _finalize(executor, document_id, store=store, actor=actor)


def _finalize(executor: Executor, document_id: UUID, *, store: HeadStore, actor: str) -> Document:
    seen = read_document(executor, document_id)
    if seen is None:
        raise UnknownDocument(f"there is no document {document_id}")
    if seen.live and seen.processing_status is not ProcessingStatus.PENDING:
        return seen
    try:
        head = store.head(key_of(seen))
    except (ObjectMissing, KeyRefused) as missing:
        raise ObjectNotUploaded(f"the upload of document {document_id} is not in the store") from missing
    document = lock_document(executor, document_id)
    if document is None:
        raise UnknownDocument(f"there is no document {document_id}")
    if not document.live:
        raise DocumentDeleted(f"document {document_id} is deleted")
    if document.processing_status is not ProcessingStatus.PENDING:
        return document
    ticket = write_first(executor, subject_of(document, EventType.INGEST_REQUESTED), pointer=pointer_of(document))
    document = move(executor, document, ProcessingStatus.UPLOADED, ingest_ticket_id=ticket.id, size_bytes=head.size)
    record_event(executor, document, AuditEvent.UPLOADED, actor=actor, detail={"size_bytes": head.size})
    return document
