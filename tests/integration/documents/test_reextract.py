"""Re-extraction: a new epoch, in which nothing of the old one can change anything."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.db.connect import set_firm
from baton.db.rows import lock_document, read_document
from baton.db.states import EventType, Outcome, Part, ProcessingStatus, RegistrationStatus
from baton.documents import processing
from baton.documents.doors import re_extract
from baton.documents.errors import DocumentDeleted, LostDocument, NotPossible
from baton.outbox.keys import Subject, idempotency_key
from support.matters import Matter
from support.transactions import Second


def again(doors: Any, document: UUID) -> Any:
    """Re-extract in a transaction of its own."""
    with doors.transaction() as connection:
        return re_extract(connection, document_id=document, actor="counsel")


def open_tickets(doors: Any) -> list[tuple[str, int]]:
    """Event and epoch of each open ticket."""
    rows = doors.rows(
        "SELECT event_type, extraction_epoch FROM ops.document_ingest_outbox WHERE handled_at IS NULL ORDER BY id"
    )
    return [(row[0], row[1]) for row in rows]


def test_a_new_epoch_begins(dry: Any) -> None:
    """Epoch, status, pass, registration, ticket with the epoch in its key, and the audit event: together."""
    document = dry.prepared().registered()
    found = again(dry, document)
    assert (found.extraction_epoch, found.extraction_run_id) == (2, None)
    assert found.processing_status is ProcessingStatus.UPLOADED
    assert found.registration_status is RegistrationStatus.NOT_REQUESTED
    assert (found.extraction_attempt, found.registration_attempt, found.registration_run_id) == (0, 0, None)
    (ticket,) = dry.rows("SELECT * FROM ops.document_ingest_outbox WHERE extraction_epoch = 2")
    subject = Subject(firm_id=dry.id, document_id=document, event_type=EventType.INGEST_REQUESTED, extraction_epoch=2)
    assert (ticket.idempotency_key, ticket.id) == (idempotency_key(subject), found.ingest_ticket_id)
    events = [row.event for row in dry.rows("SELECT event FROM ops.audit_event WHERE document_id = :id", id=document)]
    assert "document.re_extracted" in events


@pytest.mark.parametrize("status", ["uploaded", "stored", "extracting", "indexed", "needs_review", "failed"])
def test_from_every_status_after_the_upload(dry: Any, status: str) -> None:
    """Whatever extraction was doing or had found, it begins anew, with one open ticket."""
    document = _taken_to(dry, status)
    found = again(dry, document)
    assert (found.processing_status, found.extraction_epoch) == (ProcessingStatus.UPLOADED, 2)
    assert (found.processing_message, found.failure_kind) == (None, None)
    assert open_tickets(dry) == [("document.ingest.requested", 2)]


def test_what_cannot_be_read_again(dry: Any) -> None:
    """An upload that was never finished, and a deleted document: a typed error, nothing written."""
    matter = dry.prepared()
    document = matter.document()
    dry.prepare("UPDATE documents SET deleted_at = app.clock()")
    with pytest.raises(DocumentDeleted):
        again(dry, document)
    pending = dry.begin(put=False)
    with pytest.raises(NotPossible):
        again(dry, pending.id)
    assert dry.rows("SELECT 1 FROM ops.audit_event") == []


@pytest.mark.parametrize("registration", list(RegistrationStatus))
def test_registration_begins_anew_from_every_status(dry: Any, registration: RegistrationStatus) -> None:
    """The status spoke of a pass that is gone."""
    document = _registration_at(dry.prepared(), registration)
    found = again(dry, document)
    assert found.registration_status is RegistrationStatus.NOT_REQUESTED
    assert (found.next_attempt_at, found.registration_message) == (None, None)
    assert open_tickets(dry) == [("document.ingest.requested", 2)]


def test_runs_of_every_purpose_are_superseded(dry: Any) -> None:
    """The pending run of a part as well as of the registration: a settler that comes later finds nothing pending."""
    matter = dry.prepared()
    registering = matter.document()
    runs = {matter.dispatch(registering)}
    registered = matter.registered()
    runs.add(matter.dispatch_part(registered, Part.CARD))
    for document in (registering, registered):
        again(dry, document)
    states = {row.run_id: row.state for row in dry.rows("SELECT run_id, state FROM agents.agent_run")}
    assert {states[run] for run in runs} == {"superseded"}
    assert dry.rows("SELECT 1 FROM agents.agent_run WHERE state = 'pending'") == []


def test_two_at_once_are_two_epochs(dry: Any) -> None:
    """The second waits for the first; in the end one ticket is open, the newest epoch's."""
    document = dry.prepared().registered()
    second = Second(dry.database, lambda connection: _as_firm(connection, dry, document), role=Role.MEMBER_APP)
    with dry.transaction() as connection:
        re_extract(connection, document_id=document, actor="first")
        second.start()
        second.wait_until_blocked_by(connection)
    assert second.result().extraction_epoch == 3
    assert open_tickets(dry) == [("document.ingest.requested", 3)]


def test_a_worker_of_the_old_epoch_changes_nothing(dry: Any) -> None:
    """It read the document before, and would finish after: its final update finds another epoch."""
    document = _taken_to(dry, "extracting")
    engine = dry.database.engine(Role.EXTRACTOR)
    with engine.begin() as connection:
        seen = read_document(connection, document)
    assert seen is not None
    found = again(dry, document)
    with pytest.raises(LostDocument), engine.begin() as connection:
        processing.finish(connection, seen, verdict=ProcessingStatus.INDEXED, extraction_run_id=uuid7(), message=None)
    assert dry.prepared().read(document) == found


def test_a_worker_that_caught_up_with_the_status_changes_nothing(dry: Any) -> None:
    """The new epoch is extracting, too: the epoch alone keeps the old worker out."""
    document = _taken_to(dry, "extracting")
    engine = dry.database.engine(Role.EXTRACTOR)
    with engine.begin() as connection:
        seen = read_document(connection, document)
    assert seen is not None
    again(dry, document)
    for status in ("stored", "extracting"):
        dry.prepare("UPDATE documents SET processing_status = :to", to=status)
    with pytest.raises(LostDocument), engine.begin() as connection:
        processing.finish(connection, seen, verdict=ProcessingStatus.INDEXED, extraction_run_id=uuid7(), message=None)


def test_before_the_apply_the_answer_is_stale(dry: Any) -> None:
    """Delivered and not yet applied: the answer to the old pass is closed with its ticket, and applies to nothing."""
    matter = dry.prepared()
    document = matter.document()
    ticket = matter.settle(matter.dispatch(document), "expired", message="Nobody answered.")
    again(dry, document)
    assert matter.reload(ticket).outcome is Outcome.REPLACED
    matter.apply(ticket)
    assert matter.read(document).registration_status is RegistrationStatus.NOT_REQUESTED


def test_during_the_apply_it_waits(dry: Any) -> None:
    """An apply that holds the document finishes; then the new epoch begins, and nothing is left between the two."""
    matter = dry.prepared()
    document = matter.document()
    matter.dispatch(document)
    second = Second(dry.database, lambda connection: _as_firm(connection, dry, document), role=Role.MEMBER_APP)
    with matter.registrar() as connection:
        assert lock_document(connection, document) is not None
        second.start()
        second.wait_until_blocked_by(connection)
    assert second.result().extraction_epoch == 2
    assert dry.rows("SELECT 1 FROM agents.agent_run WHERE state = 'pending'") == []


def _as_firm(connection: Connection, doors: Any, document: UUID) -> Any:
    set_firm(connection, doors.id)
    return re_extract(connection, document_id=document, actor="second")


def _taken_to(doors: Any, status: str) -> UUID:
    document: UUID = doors.begin(put=False).id
    steps = {"failed": ("uploaded", "failed")}.get(status) or _until(
        ("uploaded", "stored", "extracting", status if status in ("indexed", "needs_review") else "indexed"), status
    )
    for step in steps:
        marks = ", extraction_run_id = gen_random_uuid()" if step in ("indexed", "needs_review") else ""
        reason = ", processing_message = 'It is damaged.', failure_kind = 'unreadable'" if step == "failed" else ""
        doors.prepare(
            f"UPDATE documents SET processing_status = :to{marks}{reason} WHERE id = :id", id=document, to=step
        )
    return document


def _until(steps: tuple[str, ...], last: str) -> tuple[str, ...]:
    return steps[: steps.index(last) + 1]


def _registration_at(matter: Matter, status: RegistrationStatus) -> UUID:
    document = matter.document()
    match status:
        case RegistrationStatus.NOT_REQUESTED:
            pass
        case RegistrationStatus.QUEUED:
            matter.dispatch(document)
            matter.prepare("UPDATE documents SET registration_status = 'queued' WHERE id = :id", id=document)
        case RegistrationStatus.REGISTERING:
            matter.dispatch(document)
        case RegistrationStatus.REGISTERED:
            return matter.registered()
        case RegistrationStatus.REGISTRATION_FAILED:
            matter.apply(matter.settle(matter.dispatch(document), "expired", message="Nobody answered."))
        case RegistrationStatus.REGISTRATION_NEEDS_REVIEW:
            matter.dispatch(document)
            matter.prepare(
                "UPDATE documents SET registration_status = 'registration_needs_review' WHERE id = :id", id=document
            )
    return document
