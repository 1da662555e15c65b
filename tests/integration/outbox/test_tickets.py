"""Writing tickets: with their status change or not at all, once for each request, and anew when asked again."""

import json
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError
from uuid_utils.compat import uuid7

from baton.aws.queues import Queue
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.db.states import EventType, Lane, Outcome, Part
from baton.outbox import envelope, life, tickets
from baton.outbox.keys import Subject
from baton.outbox.tickets import Pointer, Ticket
from integration.outbox.conftest import Relays, sender_of
from support.databases import Database
from support.tickets import count_where, new_document
from support.transactions import Second, end_backend
from support.waiting import wait_until

POINTER = Pointer(matter_id=uuid7(), object_key="documents/a.pdf", content_type="application/pdf")


def _ingest(firm: UUID, document: UUID, *, epoch: int = 1) -> Subject:
    return Subject(firm_id=firm, document_id=document, event_type=EventType.INGEST_REQUESTED, extraction_epoch=epoch)


def _registration(firm: UUID, document: UUID, *, extraction: UUID) -> Subject:
    return Subject(
        firm_id=firm,
        document_id=document,
        event_type=EventType.REGISTRATION_REQUESTED,
        extraction_epoch=1,
        extraction_run_id=extraction,
    )


@pytest.fixture
def member(database: Database) -> Engine:
    """The engine of the platform's own code."""
    return database.engine("baton_member_app")


def _finalize(connection: Connection, firm: UUID, document: UUID) -> Ticket:
    connection.execute(text("UPDATE documents SET processing_status = 'uploaded' WHERE id = :id"), {"id": document})
    ticket = tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
    connection.execute(
        text("UPDATE documents SET ingest_ticket_id = :ticket WHERE id = :id"), {"id": document, "ticket": ticket.id}
    )
    return ticket


def _status(database: Database, document: UUID) -> str:
    with database.preparer.connect() as connection:
        return str(
            connection.execute(
                text("SELECT processing_status FROM documents WHERE id = :id"), {"id": document}
            ).scalar_one()
        )


@pytest.mark.parametrize("statement", range(5))
def test_a_crash_between_status_and_ticket_leaves_neither(database: Database, member: Engine, statement: int) -> None:
    """The session dies before any one of the transaction's statements, or before its commit: nothing of it is left."""
    firm, document = new_document(database)
    seen = 0

    def kill(connection: Connection, *_: object) -> None:
        nonlocal seen
        if seen == statement:
            end_backend(database, connection)
        seen += 1

    event.listen(member, "before_cursor_execute", kill)
    event.listen(member, "commit", kill)
    with pytest.raises(DBAPIError), firm_transaction(member, firm) as connection:
        _finalize(connection, firm, document)
    assert _status(database, document) == "pending"
    assert count_where(database, "true") == 0


def test_a_commit_leaves_both(database: Database, member: Engine) -> None:
    """With nothing in its way the same transaction leaves status and ticket."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        _finalize(connection, firm, document)
    assert _status(database, document) == "uploaded"
    assert count_where(database, "true") == 1


def test_two_concurrent_requests_get_one_ticket(database: Database, member: Engine) -> None:
    """Two writers of the same request at once: the second waits for the first's commit and gets its row."""
    for _ in range(10):
        firm, document = new_document(database)
        both = threading.Barrier(2)
        got: list[int] = []

        def write(firm: UUID = firm, document: UUID = document, both: threading.Barrier = both) -> None:
            with firm_transaction(member, firm) as connection:
                both.wait(10)
                got.append(tickets.write_first(connection, _ingest(firm, document), pointer=POINTER).id)  # noqa: B023

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(got) == 2
        assert len(set(got)) == 1
        assert count_where(database, f"document_id = '{document}'") == 1


def test_asking_again_before_dispatch_is_the_same_ticket(database: Database, member: Engine) -> None:
    """While the newest generation is undispatched, it is the answer."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        first = tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
        assert tickets.write_next(connection, _ingest(firm, document), pointer=POINTER) == first


def test_a_redrive_reaches_the_queue_three_times_within_five_minutes(
    database: Database, member: Engine, relays: Relays, queue: Queue
) -> None:
    """Neither the outbox's key nor a FIFO queue's memory swallows a generation; each names the first, and closes the last."""
    firm, document = new_document(database)
    extraction = uuid7()
    subject = _registration(firm, document, extraction=extraction)
    relay = relays.make(sender_of(queue), lane=Lane.REGISTRAR)
    with firm_transaction(member, firm) as connection:
        first = tickets.write_first(connection, subject, pointer=POINTER)
    assert relay.run_once().dispatched == 1
    for generation in (2, 3, 4):
        with firm_transaction(member, firm) as connection:
            again = tickets.write_next(connection, subject, pointer=POINTER)
        assert (again.generation, again.redrive_of) == (generation, first.id)
        assert relay.run_once().dispatched == 1
    got: list[int] = []

    def arrived() -> bool:
        messages = queue.receive(wait=1)
        if messages:  # a FIFO group gives the next only when this one is gone
            queue.delete_batch([message.receipt for message in messages])
        got.extend(envelope.parse(message.body).ticket_id for message in messages)
        return len(got) >= 4

    wait_until(arrived, 30)
    assert len(set(got)) == 4
    assert count_where(database, "outcome = 'replaced'") == 3


def test_a_registration_ticket_is_never_on_the_ingest_queue(
    database: Database, member: Engine, relays: Relays, queue: Queue
) -> None:
    """Every event type but the ingest request belongs to the registrar's lane, by the table itself."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
        tickets.write_first(connection, _registration(firm, document, extraction=uuid7()), pointer=POINTER)
        more = {"extraction_epoch": 1, "extraction_run_id": uuid7(), "firm_id": firm, "document_id": document}
        for subject in (
            Subject(event_type=EventType.UNDERSTANDING_REQUESTED, part=Part.CARD, **more),  # type: ignore[arg-type]
            Subject(event_type=EventType.RESEGMENT_REQUESTED, part=Part.SECTIONS, request_id=uuid7(), **more),  # type: ignore[arg-type]
            Subject(event_type=EventType.ARTIFACT_DELIVERED, run_id=uuid7(), **more),  # type: ignore[arg-type]
        ):
            tickets.write_first(connection, subject, pointer=POINTER)
    assert relays.make(sender_of(queue), lane=Lane.INGEST).run_once().dispatched == 1
    (message,) = queue.receive(wait=1)
    assert json.loads(message.body)["event_type"] == "document.ingest.requested"
    assert count_where(database, "lane = 'registrar' AND dispatched_at IS NULL") == 4


def test_a_message_is_believed_only_with_its_key(database: Database, member: Engine) -> None:
    """An id with another ticket's key finds nothing; so does one that does not exist."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        ticket = tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
        assert tickets.load(connection, ticket_id=ticket.id, key=ticket.idempotency_key) == ticket
        assert tickets.load(connection, ticket_id=ticket.id, key="document_ingest:other") is None
        assert tickets.load(connection, ticket_id=ticket.id + 1000, key=ticket.idempotency_key) is None


def test_another_firm_sees_no_ticket(database: Database, member: Engine) -> None:
    """A member of another firm finds neither row nor key."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        ticket = tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
    with firm_transaction(member, uuid4()) as connection:
        assert tickets.load(connection, ticket_id=ticket.id, key=ticket.idempotency_key) is None


def test_a_closed_ticket_is_not_sent(database: Database, member: Engine, relays: Relays, queue: Queue) -> None:
    """What was closed before its turn stays where it is."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)
        assert life.close_document(connection, document, outcome=Outcome.DOCUMENT_DELETED) == 1
    assert relays.make(sender_of(queue)).run_once().claimed == 0


@pytest.fixture
def written(database: Database, member: Engine) -> Ticket:
    """One ticket."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        return tickets.write_first(connection, _ingest(firm, document), pointer=POINTER)


def test_a_tickets_life_is_kept_by_the_databases_clock(database: Database, written: Ticket) -> None:
    """First receipt, count, hold and end are what the database saw, whatever this machine's clock says."""
    database.move_clock(3600)
    worker = database.engine("baton_extractor")
    with worker.begin() as connection:
        life.mark_received(connection, [written.id], visibility=_seconds(30))
        life.mark_received(connection, [written.id], visibility=_seconds(60))
        assert life.count_work(connection, written.id) == 1
        assert life.mark_handled(connection, written.id, outcome=Outcome.DONE)
        assert not life.mark_handled(connection, written.id, outcome=Outcome.STALE)
    assert (
        count_where(
            database,
            "receive_count = 2 AND work_attempts = 1 AND outcome = 'done' AND first_received_at > now() + '59 min'"
            " AND hold_until > first_received_at + '59 s' AND handled_at >= first_received_at",
        )
        == 1
    )


@pytest.mark.parametrize("write", [life.mark_received, life.extend_hold])
def test_a_batch_is_locked_in_the_order_of_its_tickets(database: Database, member: Engine, write: Any) -> None:
    """Wherever their rows lie: of two that lock the same tickets in different orders, one would be ended by the database."""
    firm, document = new_document(database)
    with firm_transaction(member, firm) as connection:
        first, last = (
            tickets.write_first(connection, _ingest(firm, document, epoch=epoch), pointer=POINTER).id
            for epoch in (1, 2)
        )
    with database.preparer.begin() as connection:  # the row of the first now lies behind that of the last
        connection.execute(text("UPDATE ops.document_ingest_outbox SET attempts = 0 WHERE id = :id"), {"id": first})
        connection.execute(text("ANALYZE ops.document_ingest_outbox"))  # a small table is read from its beginning
    second = Second(
        database, lambda connection: write(connection, [last, first], visibility=_seconds(30)), role=Role.EXTRACTOR
    )
    with database.preparer.begin() as holder:
        holder.execute(text("SELECT 1 FROM ops.document_ingest_outbox WHERE id = :id FOR UPDATE"), {"id": first})
        second.start()
        second.wait_until_blocked_by(holder)
        holder.execute(text("SELECT 1 FROM ops.document_ingest_outbox WHERE id = :id FOR UPDATE NOWAIT"), {"id": last})
    second.result()
    assert count_where(database, "hold_until > now()") == 2


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)
