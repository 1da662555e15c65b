"""Deletion and re-extraction against an apply: the document's lock decides, whichever was first."""

from uuid import UUID

from sqlalchemy import Connection

from baton.contract.classification import AddTag
from baton.db.access import Role
from baton.db.connect import set_firm
from baton.db.states import Outcome, ProcessingStatus, RegistrationStatus
from baton.documents import doors
from baton.outbox.tickets import Ticket
from baton.record.apply import apply
from support.matters import LIMITS, Matter, turn
from support.transactions import Second

TAG = AddTag(key="add_tag", confidence=0.9, tag="urgent")


def delivered(matter: Matter) -> Ticket:
    """An answer that waits for its apply."""
    return matter.deliver(matter.dispatch(matter.document()), turn(TAG))


def deleting(connection: Connection, matter: Matter, document: UUID) -> None:
    """Delete, as the firm's own code does."""
    set_firm(connection, matter.firm)
    doors.delete(connection, document_id=document, actor="counsel")


def rereading(connection: Connection, matter: Matter, document: UUID) -> None:
    """Extract again, as the firm's own code does."""
    set_firm(connection, matter.firm)
    doors.re_extract(connection, document_id=document, actor="counsel")


def test_a_deleted_documents_answer_is_acknowledged(matter: Matter) -> None:
    """Nothing of it is applied, nothing on the document changes, and the ticket says why."""
    ticket = delivered(matter)
    matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=ticket.document_id)
    assert matter.apply(ticket) is Outcome.DOCUMENT_DELETED
    assert matter.reload(ticket).outcome is Outcome.DOCUMENT_DELETED
    assert matter.count("record.assertion") == 0
    assert matter.count("agents.agent_effect", "disposition = 'verified'") == 1, "a restored document may yet use it"


def test_an_apply_that_waits_for_a_deletion_does_nothing(matter: Matter) -> None:
    """The applier blocks on the deleter, and wakes to a deleted document."""
    ticket = delivered(matter)
    second = Second(matter.database, lambda connection: apply(connection, ticket, limits=LIMITS))
    with matter.database.engine(Role.MEMBER_APP).begin() as first:
        deleting(first, matter, ticket.document_id)
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is Outcome.DOCUMENT_DELETED
    assert matter.count("record.assertion") == 0


def test_a_deletion_that_waits_for_an_apply_deletes_a_registered_document(matter: Matter) -> None:
    """The other order: the apply is whole, then the document is deleted, and its open tickets are closed."""
    ticket = delivered(matter)
    second = Second(
        matter.database, lambda connection: deleting(connection, matter, ticket.document_id), role=Role.MEMBER_APP
    )
    with matter.registrar() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        second.start()
        second.wait_until_blocked_by(first)
    second.result()
    document = matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTERED
    assert not document.live
    assert matter.count("ops.document_ingest_outbox", "handled_at IS NULL") == 0


def test_an_apply_that_waits_for_a_re_extraction_does_nothing(matter: Matter) -> None:
    """The pass is gone when the applier wakes."""
    ticket = delivered(matter)
    second = Second(matter.database, lambda connection: apply(connection, ticket, limits=LIMITS))
    with matter.database.engine(Role.MEMBER_APP).begin() as first:
        rereading(first, matter, ticket.document_id)
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is Outcome.STALE
    document = matter.read(ticket.document_id)
    assert document.processing_status is ProcessingStatus.UPLOADED
    assert document.registration_status is RegistrationStatus.NOT_REQUESTED
    assert matter.count("record.assertion") == 0


def test_a_re_extraction_that_waits_for_an_apply_starts_from_a_registered_document(matter: Matter) -> None:
    """The other order: what the old pass applied stands until the new one speaks."""
    ticket = delivered(matter)
    second = Second(
        matter.database, lambda connection: rereading(connection, matter, ticket.document_id), role=Role.MEMBER_APP
    )
    with matter.registrar() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        second.start()
        second.wait_until_blocked_by(first)
    second.result()
    document = matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.NOT_REQUESTED
    assert document.extraction_run_id is None
    assert matter.assertions(document.id) == [("tag", "urgent", "applied")]


def test_a_child_row_is_written_while_an_apply_holds_the_document(matter: Matter) -> None:
    """The settler's foreign key check does not wait for the apply: the lock is no FOR UPDATE."""
    ticket = delivered(matter)
    with matter.registrar() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        matter.prepare(
            "INSERT INTO agents.agent_effect (firm_id, document_id, run_id, ordinal, schema_name, data)"
            " SELECT :firm, :document, :run, 9, 's', '{}' FROM set_config('lock_timeout', '2s', true)",
            firm=matter.firm,
            document=ticket.document_id,
            run=ticket.run_id,
        )
