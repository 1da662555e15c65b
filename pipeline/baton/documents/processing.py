"""ProcessingService: the moves of the Mode-1 axis that the extraction worker makes, and asking for its work again.

Each takes a document that the caller has read in this transaction, moves the status in one UPDATE that demands the epoch
it was read with, and never commits. The last moves, and asking again, are called under the document's lock.
"""

from __future__ import annotations

from uuid import UUID

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import EventType, FailureKind, ProcessingStatus
from baton.documents.machine import move, write
from baton.outbox.keys import subject_of
from baton.outbox.tickets import Ticket, pointer_of, write_next

#: Statuses in which extraction still owes the document an answer.
IN_EXTRACTION = (ProcessingStatus.UPLOADED, ProcessingStatus.STORED, ProcessingStatus.EXTRACTING)


def store(executor: Executor, document: Document, *, checksum_sha256: str, size_bytes: int) -> Document:
    """Uploaded → stored: the bytes were fetched, hashed and found clean.

    :param checksum_sha256: hex.
    """
    return move(executor, document, ProcessingStatus.STORED, checksum_sha256=checksum_sha256, size_bytes=size_bytes)


def restate_bytes(executor: Executor, document: Document, *, checksum_sha256: str, size_bytes: int) -> Document:
    """Write which bytes are worked on, where the object was replaced since they were written down; no move.

    :param checksum_sha256: hex.
    """
    if (document.checksum_sha256, document.size_bytes) == (checksum_sha256, size_bytes):
        return document
    return write(executor, document, checksum_sha256=checksum_sha256, size_bytes=size_bytes)


def begin_extraction(executor: Executor, document: Document) -> Document:
    """Stored → extracting: a reading begins, one more of this epoch."""
    return move(executor, document, ProcessingStatus.EXTRACTING, extraction_attempt=document.extraction_attempt + 1)


def finish(
    executor: Executor,
    document: Document,
    *,
    verdict: ProcessingStatus,
    extraction_run_id: UUID,
    message: str | None,
    content_type: str | None = None,
) -> Document:
    """Extracting → indexed or needs review, with the pass stamped where there is none yet.

    :param message: lawyer-safe; why a person should look.
    :param content_type: what the bytes turned out to be, where that differs from what was said.
    """
    if verdict not in (ProcessingStatus.INDEXED, ProcessingStatus.NEEDS_REVIEW):
        raise ValueError(f"{verdict} is not a verdict that carries text")
    return move(
        executor,
        document,
        verdict,
        extraction_run_id=document.extraction_run_id or extraction_run_id,
        processing_message=message,
        failure_kind=None,
        content_type=content_type or document.content_type,
    )


def fail(executor: Executor, document: Document, *, kind: FailureKind, message: str) -> Document:
    """Any status in extraction → failed: the file can never be read, and counsel is told why."""
    return move(executor, document, ProcessingStatus.FAILED, failure_kind=kind.value, processing_message=message)


def ask_again(executor: Executor, document: Document) -> Ticket:
    """Ask for the extraction of the present epoch again: the next generation of its ticket, and its mark."""
    ticket = write_next(executor, subject_of(document, EventType.INGEST_REQUESTED), pointer=pointer_of(document))
    write(executor, document, ingest_ticket_id=ticket.id)
    return ticket


def adopt_ticket(executor: Executor, document: Document, ticket_id: int) -> Document:
    """Write the mark of a ticket that stands already."""
    return write(executor, document, ingest_ticket_id=ticket_id)
