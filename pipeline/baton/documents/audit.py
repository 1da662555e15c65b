"""The audit trail of what was done to a document; metadata only, never content."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sqlalchemy import insert

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.tables import audit_event


class AuditEvent(StrEnum):
    """What is recorded."""

    UPLOADED = "document.uploaded"
    RE_EXTRACTED = "document.re_extracted"
    RESEGMENTED = "document.resegmented"
    DELETED = "document.deleted"
    RESTORED = "document.restored"
    RETRIED = "document.registration_retried"


def record_event(
    executor: Executor, document: Document, event: AuditEvent, *, actor: str, detail: Mapping[str, object] | None = None
) -> None:
    """Append one event in the transaction of what it records.

    :param actor: who did it, as the caller names its users.
    """
    executor.execute(
        insert(audit_event).values(
            firm_id=document.firm_id,
            matter_id=document.matter_id,
            document_id=document.id,
            event=event.value,
            actor=actor,
            detail=dict(detail or {}),
        )
    )
