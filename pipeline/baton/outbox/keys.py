"""What a ticket is about, and the idempotency key that follows from it.

The first request of an aspect has exactly the plain key, so that asking twice is one ticket. A retry is a new row with
its generation inside the hash: the plain key would be swallowed by the outbox's own unique key, by the five-minute
window of a FIFO queue, and by a consumer that remembers keys.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.db.rows import Document
from baton.db.states import EventType, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a ticket asks for. Two requests with one subject are the same request.

    ``extraction_run_id`` is the pass (absent on the ingest lane); ``run_id`` is for delivered artifacts only, ``part``
    for understanding and resegment, ``request_id`` for resegment.
    """

    firm_id: UUID
    document_id: UUID
    event_type: EventType
    extraction_epoch: int
    extraction_run_id: UUID | None = None
    run_id: UUID | None = None
    part: Part | None = None
    request_id: UUID | None = None


def subject_of(document: Document, event_type: EventType, **more: Any) -> Subject:
    """What a ticket of ``event_type`` for the document's present epoch and pass asks for.

    :param more: the fields of :class:`Subject` that this event type needs besides (``part``, ``run_id``, ``request_id``).
    """
    return Subject(
        firm_id=document.firm_id,
        document_id=document.id,
        event_type=event_type,
        extraction_epoch=document.extraction_epoch,
        extraction_run_id=None if event_type is EventType.INGEST_REQUESTED else document.extraction_run_id,
        **more,
    )


def idempotency_key(subject: Subject, generation: int = 1) -> str:
    """The key of one generation of ``subject``; at most 128 characters, safe as an SQS deduplication id."""
    match subject.event_type:
        case EventType.INGEST_REQUESTED:
            anchor: list[object] = [subject.firm_id, subject.document_id]
            # a later generation of the first epoch names the epoch too, or it would read like the plain key of epoch 2
            if subject.extraction_epoch > 1 or generation > 1:
                anchor.append(subject.extraction_epoch)
            return "document_ingest:" + _sha256(*anchor, generation=generation)
        case EventType.REGISTRATION_REQUESTED:
            anchor = [subject.firm_id, subject.document_id, subject.extraction_run_id]
            return "document_registration:" + _sha256(*anchor, generation=generation)
        case EventType.UNDERSTANDING_REQUESTED:
            anchor = [subject.firm_id, subject.document_id, subject.extraction_run_id, subject.part]
            return "document_understanding:" + _sha256(*anchor, generation=generation)
        case EventType.RESEGMENT_REQUESTED:
            return f"document_resegment:{subject.request_id}{_suffix(generation)}"
        case EventType.ARTIFACT_DELIVERED:
            return f"document_artifact:{subject.run_id}{_suffix(generation)}"


def _suffix(generation: int) -> str:
    return "" if generation == 1 else f":{generation}"


def _sha256(*anchor: object, generation: int) -> str:
    plain = ":".join(str(each) for each in anchor) + _suffix(generation)
    return hashlib.sha256(plain.encode()).hexdigest()
