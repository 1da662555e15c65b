"""Reading one document, and locking it.

The lock is always the first one taken, and always ``FOR NO KEY UPDATE``: a plain ``FOR UPDATE`` would stand in the way
of every foreign-key check against the row, while between two holders of this one there is no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select

from baton.db.connect import Executor
from baton.db.states import ProcessingStatus, RegistrationStatus
from baton.db.tables import documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One row of ``documents`` as it was when it was read."""

    id: UUID
    firm_id: UUID
    matter_id: UUID
    name: str
    object_key: str
    content_type: str
    size_bytes: int | None
    checksum_sha256: str | None
    processing_status: ProcessingStatus
    processing_status_since: datetime
    registration_status: RegistrationStatus
    registration_status_since: datetime
    extraction_epoch: int
    extraction_attempt: int
    extraction_run_id: UUID | None
    registration_attempt: int
    registration_run_id: UUID | None
    registration_pass: UUID | None
    understood_pass: UUID | None
    ingest_ticket_id: int | None
    registration_ticket_id: int | None
    next_attempt_at: datetime | None
    failure_kind: str | None
    processing_message: str | None
    registration_message: str | None
    created_at: datetime
    deleted_at: datetime | None

    @property
    def live(self) -> bool:
        """Whether the document is not deleted."""
        return self.deleted_at is None


DOCUMENT_COLUMNS = tuple(documents.c[name] for name in Document.__dataclass_fields__)


def as_document(row: Row[Any]) -> Document:
    """Read a row that was selected by :data:`DOCUMENT_COLUMNS`."""
    values: dict[str, Any] = dict(zip(Document.__dataclass_fields__, row, strict=True))
    values["processing_status"] = ProcessingStatus(values["processing_status"])
    values["registration_status"] = RegistrationStatus(values["registration_status"])
    return Document(**values)


def read_document(executor: Executor, document_id: UUID) -> Document | None:
    """The document, or ``None`` where there is none or the executor's role may not see it."""
    row = executor.execute(select(*DOCUMENT_COLUMNS).where(documents.c.id == document_id)).one_or_none()
    return None if row is None else as_document(row)


def lock_document(executor: Executor, document_id: UUID) -> Document | None:
    """Lock the document until the transaction ends, and read it as it then is."""
    row = executor.execute(
        select(*DOCUMENT_COLUMNS).where(documents.c.id == document_id).with_for_update(key_share=True)
    ).one_or_none()
    return None if row is None else as_document(row)
