"""What is done to a document after its upload: re-extract, resegment, delete, restore, retry.

Each runs in the caller's transaction under the document's lock, supersedes the pending runs that it makes pointless
(document, then run, then ticket), closes their tickets, writes what is newly asked for, and an audit event.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.exc import NoResultFound

from baton.db.connect import Executor
from baton.db.rows import Document, lock_document
from baton.db.states import EventType, Outcome, Part, PartState, ProcessingStatus, RegistrationStatus, RunState
from baton.db.tables import agent_run, documents
from baton.documents import messages
from baton.documents.audit import AuditEvent, record_event
from baton.documents.errors import DocumentDeleted, NotPossible, UnknownDocument
from baton.documents.machine import move, write
from baton.documents.processing import IN_EXTRACTION, ask_again
from baton.outbox.keys import Subject, subject_of
from baton.outbox.life import close_document
from baton.outbox.tickets import Ticket, newest, pointer_of, write_next
from baton.registration import parts, service

_AT_ONCE = timedelta(0)


def re_extract(executor: Executor, *, document_id: UUID, actor: str) -> Document:
    """Read the document again from its bytes, as a new epoch; what ran for the old one can change nothing any more.

    :raises UnknownDocument, DocumentDeleted, NotPossible: the upload was never finished.
    """
    document = _locked(executor, document_id)
    if document.processing_status is ProcessingStatus.PENDING:
        raise NotPossible("the upload is not finished yet")
    _supersede_runs(executor, document, message=messages.RUN_RE_EXTRACTED)
    close_document(executor, document.id, outcome=Outcome.REPLACED)
    epoch = document.extraction_epoch + 1
    subject = Subject(
        firm_id=document.firm_id,
        document_id=document.id,
        event_type=EventType.INGEST_REQUESTED,
        extraction_epoch=epoch,
    )
    ticket = write_next(executor, subject, pointer=pointer_of(document))
    values = {
        "extraction_epoch": epoch,
        "extraction_run_id": None,
        "extraction_attempt": 0,
        "ingest_ticket_id": ticket.id,
        "processing_message": None,
        "failure_kind": None,
    }
    if document.processing_status is ProcessingStatus.UPLOADED:
        document = write(executor, document, **values)
    else:
        document = move(executor, document, ProcessingStatus.UPLOADED, **values)
    if document.registration_status is not RegistrationStatus.NOT_REQUESTED:
        document = service.supersede(executor, document)
    record_event(executor, document, AuditEvent.RE_EXTRACTED, actor=actor, detail={"extraction_epoch": epoch})
    return document


def resegment(executor: Executor, *, document_id: UUID, request_id: UUID, actor: str) -> Ticket:
    """Ask for the document's sections anew; what stands is shown until the new ones come.

    :param request_id: of this request; asking twice with one id is one request, and its ticket is returned.
    :raises NotPossible: the document is not registered, its sections are being made just now, or the request is about
        another document.
    """
    document = _locked(executor, document_id)
    if document.registration_status is not RegistrationStatus.REGISTERED:
        raise NotPossible("only a registered document has sections")
    subject = subject_of(document, EventType.RESEGMENT_REQUESTED, part=Part.SECTIONS, request_id=request_id)
    if (asked := newest(executor, subject)) is not None:
        return asked
    row = parts.lock_part(executor, document, Part.SECTIONS)
    if row is not None and row.state in (PartState.REQUESTED, PartState.RUNNING):
        raise NotPossible("the sections are being made just now")
    try:
        ticket = parts.ask_again(executor, document, Part.SECTIONS, request_id=request_id)
    except NoResultFound as taken:  # the key stands already, and not for this document
        raise NotPossible(f"the request {request_id} is about another document") from taken
    record_event(executor, document, AuditEvent.RESEGMENTED, actor=actor, detail={"request_id": str(request_id)})
    return ticket


def delete(executor: Executor, *, document_id: UUID, actor: str) -> Document:
    """Delete the document: nothing more is done for it. Deleting again changes nothing."""
    document = _locked(executor, document_id, deleted=True)
    if not document.live:
        return document
    _supersede_runs(executor, document, message=messages.RUN_DELETED)
    close_document(executor, document.id, outcome=Outcome.DOCUMENT_DELETED)
    executor.execute(update(documents).where(documents.c.id == document.id).values(deleted_at=func.app.clock()))
    record_event(executor, document, AuditEvent.DELETED, actor=actor)
    return _locked(executor, document_id, deleted=True)


def restore(executor: Executor, *, document_id: UUID, actor: str) -> Document:
    """Bring a deleted document back and ask for whatever it is missing. Restoring a live one changes nothing."""
    document = _locked(executor, document_id, deleted=True)
    if document.live:
        return document
    executor.execute(update(documents).where(documents.c.id == document.id).values(deleted_at=None))
    document = _locked(executor, document_id)
    _ask_for_what_is_missing(executor, document)
    record_event(executor, document, AuditEvent.RESTORED, actor=actor)
    return _locked(executor, document_id)


def retry_registration(executor: Executor, *, document_id: UUID, actor: str) -> Document:
    """Register again, as a person decided.

    :raises NotPossible: registration neither failed nor waits for a person.
    """
    document = _locked(executor, document_id)
    if service.request(executor, document, explicit=True) is None:
        raise NotPossible(f"registration is {document.registration_status}, there is nothing to retry")
    record_event(executor, document, AuditEvent.RETRIED, actor=actor)
    return _locked(executor, document_id)


def _locked(executor: Executor, document_id: UUID, *, deleted: bool = False) -> Document:
    document = lock_document(executor, document_id)
    if document is None:
        raise UnknownDocument(f"there is no document {document_id}")
    if not document.live and not deleted:
        raise DocumentDeleted(f"document {document_id} is deleted")
    return document


def _supersede_runs(executor: Executor, document: Document, *, message: str) -> None:
    """Settle the pending runs of every purpose; the settler that comes later finds nothing pending."""
    pending = executor.scalars(
        select(agent_run.c.run_id)
        .where(agent_run.c.document_id == document.id, agent_run.c.state == "pending")
        .order_by(agent_run.c.seq)
        .with_for_update(key_share=True)
    ).all()
    if pending:
        executor.execute(
            update(agent_run)
            .where(agent_run.c.run_id.in_(pending), agent_run.c.state == "pending")
            .values(state=RunState.SUPERSEDED.value, settled_at=func.app.clock(), message=message)
        )


def _ask_for_what_is_missing(executor: Executor, document: Document) -> None:
    """A restored document's runs and tickets were closed by its deletion: each open aspect is asked for again."""
    if document.processing_status in IN_EXTRACTION:
        ask_again(executor, document)
        return
    if document.registration_status is RegistrationStatus.REGISTERING:
        service.requeue(executor, document, wait=_AT_ONCE)
    elif document.registration_status is RegistrationStatus.QUEUED:
        service.postpone(executor, document, wait=_AT_ONCE)
    else:
        service.request(executor, document)
    for part in Part:
        row = parts.lock_part(executor, document, part)
        if row is not None and row.state is PartState.RUNNING:
            parts.requeue(executor, document, row, wait=_AT_ONCE)
        elif row is not None and row.state is PartState.REQUESTED:
            parts.postpone(executor, document, row, wait=_AT_ONCE)
