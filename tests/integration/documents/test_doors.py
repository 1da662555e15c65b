"""Delete and restore, a person's retry, and sections asked for anew."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.db.states import EventType, Outcome, Part, ProcessingStatus, RegistrationStatus
from baton.documents import doors as door
from baton.documents.errors import DocumentDeleted, NotPossible, UnknownDocument
from baton.settings.agents import Runs
from support.matters import Matter, review, turn


def through(doors: Any, work: Any, document: UUID, **more: Any) -> Any:
    """Use one of the doors in a transaction of its own."""
    with doors.transaction() as connection:
        return work(connection, document_id=document, actor="counsel", **more)


def open_events(doors: Any, document: UUID) -> list[tuple[str, int]]:
    """Event and generation of each open ticket of the document."""
    rows = doors.rows(
        "SELECT event_type, generation FROM ops.document_ingest_outbox"
        " WHERE handled_at IS NULL AND document_id = :id ORDER BY id",
        id=document,
    )
    return [(row[0], row[1]) for row in rows]


def events(doors: Any, document: UUID) -> list[str]:
    """The audit trail."""
    return [
        row[0]
        for row in doors.rows("SELECT event FROM ops.audit_event WHERE document_id = :id ORDER BY id", id=document)
    ]


def test_deleting_ends_what_was_under_way(dry: Any) -> None:
    """Runs superseded, tickets closed as of a deleted document, statuses as they were; again changes nothing."""
    matter = dry.prepared()
    document = matter.document()
    run = matter.dispatch(document)
    first = through(dry, door.delete, document)
    assert first.deleted_at is not None
    assert first.registration_status is RegistrationStatus.REGISTERING
    (row,) = dry.rows("SELECT state, message FROM agents.agent_run WHERE run_id = :run", run=run)
    assert row.state == "superseded"
    assert row.message
    assert {row[0] for row in dry.rows("SELECT outcome FROM ops.document_ingest_outbox")} == {Outcome.DOCUMENT_DELETED}
    assert through(dry, door.delete, document) == first
    assert events(dry, document).count("document.deleted") == 1


def test_an_answer_to_a_deleted_document_changes_nothing(dry: Any) -> None:
    """Delivered before the deletion, applied after it."""
    matter = dry.prepared()
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn())
    through(dry, door.delete, document)
    matter.apply(ticket)
    assert matter.read(document).registration_status is RegistrationStatus.REGISTERING
    assert matter.assertions(document) == []


def test_restoring_asks_for_the_reading(doors: Any) -> None:
    """Deleted before it was read: the next generation of its ingest ticket, with the mark."""
    document = doors.uploaded().id
    through(doors, door.delete, document)
    restored = through(doors, door.restore, document)
    assert restored.live
    assert open_events(doors, document) == [("document.ingest.requested", 2)]
    (ticket,) = doors.rows("SELECT id FROM ops.document_ingest_outbox WHERE handled_at IS NULL")
    assert restored.ingest_ticket_id == ticket.id
    assert through(doors, door.restore, document) == restored
    assert events(doors, document) == ["document.uploaded", "document.deleted", "document.restored"]


@pytest.mark.parametrize("registering", [False, True])
def test_restoring_asks_for_the_registration(dry: Any, *, registering: bool) -> None:
    """Deleted while it waited for registration, or while its run was out: it is queued, with a ticket it is marked with."""
    matter = dry.prepared()
    document = matter.document()
    matter.dispatch(document)
    if not registering:
        matter.prepare("UPDATE documents SET registration_status = 'queued'")
    through(dry, door.delete, document)
    restored = through(dry, door.restore, document)
    assert restored.registration_status is RegistrationStatus.QUEUED
    assert open_events(dry, document) == [("document.registration.requested", 2)]
    (ticket,) = dry.rows("SELECT id, attempt FROM ops.document_ingest_outbox WHERE handled_at IS NULL")
    assert (restored.registration_ticket_id, restored.registration_attempt) == (ticket.id, ticket.attempt)


def test_restoring_what_was_never_asked_for(dry: Any) -> None:
    """Indexed and nothing more: registration is requested for the first time."""
    document = dry.prepared().document()
    through(dry, door.delete, document)
    assert through(dry, door.restore, document).registration_status is RegistrationStatus.QUEUED
    assert open_events(dry, document) == [("document.registration.requested", 1)]


def test_restoring_asks_for_the_part_that_was_under_way(dry: Any) -> None:
    """A registered document whose card was being made: the card is asked for again, the registration stands."""
    matter = dry.prepared()
    document = matter.registered()
    matter.dispatch_part(document, Part.CARD)
    through(dry, door.delete, document)
    restored = through(dry, door.restore, document)
    assert restored.registration_status is RegistrationStatus.REGISTERED
    assert matter.part(document, Part.CARD).state == "requested"
    assert open_events(dry, document) == [("document.understanding.requested", 2)]


@pytest.mark.parametrize("decided", ["registered", "registration_failed", "registration_needs_review"])
def test_restoring_leaves_what_was_decided(dry: Any, decided: str) -> None:
    """A verdict, a failure, and above all a person's decision are not asked for again by bringing the document back."""
    matter = dry.prepared()
    document = matter.document()
    run = matter.dispatch(document)
    answers = {"registered": turn(), "registration_needs_review": turn(verdict=review())}
    ticket = (
        matter.deliver(run, answers[decided])
        if decided in answers
        else matter.settle(run, "expired", message="Nobody answered.")
    )
    matter.apply(ticket)
    through(dry, door.delete, document)
    assert through(dry, door.restore, document).registration_status == decided
    assert "document.registration.requested" not in [event for event, _ in open_events(dry, document)]


def test_a_deleted_document_takes_nothing_else(dry: Any) -> None:
    """Every other door is closed until it is restored."""
    document = dry.prepared().registered()
    through(dry, door.delete, document)
    for work, more in (
        (door.re_extract, {}),
        (door.retry_registration, {}),
        (door.resegment, {"request_id": uuid4()}),
    ):
        with pytest.raises(DocumentDeleted):
            through(dry, work, document, **more)


def test_another_firm_finds_every_door_without_a_document(dry: Any) -> None:
    """As though there were none, and nothing is written."""
    document = dry.prepared().registered()
    before = dry.written()
    for work in (door.re_extract, door.retry_registration, door.delete, door.restore):
        with pytest.raises(UnknownDocument):
            through(dry.other(), work, document)
    with pytest.raises(UnknownDocument):
        through(dry.other(), door.resegment, document, request_id=uuid4())
    assert dry.written() == before


def test_a_persons_retry_is_one_more_attempt(dry: Any) -> None:
    """From failed and from needs review to queued: a new generation, and the message is gone; never from elsewhere."""
    matter = dry.prepared()
    for number, failed in enumerate((True, False), start=1):
        document = matter.document()
        run = matter.dispatch(document)
        matter.apply(matter.settle(run, "expired") if failed else matter.deliver(run, turn(verdict=review())))
        matter.prepare(
            "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock(), handled_at = app.clock(), outcome = 'done'"
            " WHERE event_type = 'document.registration.requested' AND handled_at IS NULL"
        )
        found = through(dry, door.retry_registration, document)
        assert (found.registration_status, found.registration_attempt) == (RegistrationStatus.QUEUED, 2)
        assert found.registration_message is None
        assert (EventType.REGISTRATION_REQUESTED, 2) in open_events(dry, document)
        with pytest.raises(NotPossible):
            through(dry, door.retry_registration, document)
        assert events(dry, document).count("document.registration_retried") == 1
        assert len(matter.rows("SELECT 1 FROM ops.audit_event WHERE event = 'document.registration_retried'")) == number


def _sectioned(matter: Matter) -> UUID:
    document = matter.registered()
    for part in (Part.CARD, Part.SECTIONS):
        matter.apply(matter.settle(matter.dispatch_part(document, part), "rejected"), limits=Runs(max_attempts=1))
    return document


def test_resegment_is_one_request_however_often_it_is_sent(dry: Any) -> None:
    """One ticket, one audit event; the part is requested with that ticket."""
    matter = dry.prepared()
    document, request = _sectioned(matter), uuid4()
    first = through(dry, door.resegment, document, request_id=request)
    assert through(dry, door.resegment, document, request_id=request).id == first.id
    row = matter.part(document, Part.SECTIONS)
    assert (row.state, row.ticket_id, row.attempt) == ("requested", first.id, 1)
    assert events(dry, document).count("document.resegmented") == 1


def test_resegment_does_not_disturb_what_is_being_made(dry: Any) -> None:
    """Asked for or running already: refused, and nothing is written."""
    matter = dry.prepared()
    document = _sectioned(matter)
    through(dry, door.resegment, document, request_id=uuid4())
    before = dry.written()
    for _ in ("requested", "running"):
        with pytest.raises(NotPossible):
            through(dry, door.resegment, document, request_id=uuid4())
        if matter.part(document, Part.SECTIONS).state == "requested":
            matter.dispatch_part(document, Part.SECTIONS)
    assert dry.written() == before


def test_resegment_before_the_chain_came_to_it(dry: Any) -> None:
    """The card is still to be made and there is no row of the sections: it is written."""
    matter = dry.prepared()
    document = matter.registered()
    ticket = through(dry, door.resegment, document, request_id=uuid4())
    assert matter.part(document, Part.SECTIONS).ticket_id == ticket.id


def test_a_request_is_about_one_document(dry: Any) -> None:
    """The same request for another document is refused, not taken for the first one's."""
    matter = dry.prepared()
    first, second, request = _sectioned(matter), _sectioned(matter), uuid4()
    through(dry, door.resegment, first, request_id=request)
    with pytest.raises(NotPossible):
        through(dry, door.resegment, second, request_id=request)
    assert matter.part(second, Part.SECTIONS).state == "failed"


def test_only_registered_documents_have_sections(dry: Any) -> None:
    """Refused in every other status."""
    document = dry.prepared().document()
    with pytest.raises(NotPossible):
        through(dry, door.resegment, document, request_id=uuid4())
    assert dry.prepared().read(document).processing_status is ProcessingStatus.INDEXED
