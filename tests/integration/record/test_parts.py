"""A part's row as dispatch uses it: begun, renewed, put back, put off; always by the ticket that it is marked with."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Connection
from uuid_utils.compat import uuid7

from baton.db.errors import IllegalTransition
from baton.db.rows import Document, lock_document
from baton.db.states import EventType, Outcome, Part, PartState
from baton.outbox.keys import subject_of
from baton.outbox.tickets import Ticket, newest
from baton.registration import parts
from baton.registration.parts import LostPart, PartRow
from support.matters import LIMITS, Matter
from support.transactions import Second

WAIT = timedelta(minutes=2)


def locked(connection: Connection, document: UUID, part: Part = Part.CARD) -> tuple[Document, PartRow]:
    """Document and part, locked in their order."""
    found = lock_document(connection, document)
    assert found is not None
    row = parts.lock_part(connection, found, part)
    assert row is not None
    return found, row


def sent(matter: Matter, ticket_id: int | None) -> None:
    """The relay has sent the ticket."""
    matter.prepare("UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() WHERE id = :id", id=ticket_id)


def ticket_of(connection: Connection, document: Document, part: Part = Part.CARD) -> Ticket:
    """The newest understanding ticket of the part."""
    found = newest(connection, subject_of(document, EventType.UNDERSTANDING_REQUESTED, part=part))
    assert found is not None
    return found


def test_the_mark_says_which_ticket_counts(matter: Matter) -> None:
    """The ticket in the mark is the one; without a mark the attempt decides; another part's never does."""
    document = matter.registered()
    with matter.registrar() as connection:
        found, row = locked(connection, document)
        ticket = ticket_of(connection, found)
        assert parts.concerns(row, ticket)
        assert not parts.concerns(replace(row, ticket_id=ticket.id + 1), ticket)
        assert parts.concerns(replace(row, ticket_id=None), ticket)
        assert not parts.concerns(replace(row, ticket_id=None, attempt=2), ticket)
        assert not parts.concerns(replace(row, part=Part.BRIEF), ticket)
        assert not parts.concerns(replace(row, extraction_run_id=uuid7()), ticket)


def test_a_part_that_could_not_be_dispatched_goes_back_with_its_next_ticket(matter: Matter) -> None:
    """No attempt is spent, the ticket that was served is closed as replaced, and the next one waits."""
    document = matter.registered()
    sent(matter, matter.part(document, Part.CARD).ticket_id)
    run = uuid7()
    with matter.registrar() as connection:
        found, row = locked(connection, document)
        ticket = ticket_of(connection, found)
        running = parts.begin(connection, row, run_id=run)
        assert (running.state, running.run_id, running.ticket_id) == (PartState.RUNNING, run, ticket.id)
        again = parts.requeue(connection, found, running, wait=WAIT, ticket=ticket)
    row = matter.part(document, Part.CARD)
    assert (row.state, row.run_id, row.attempt, row.ticket_id) == ("requested", None, 1, again.id)
    assert (again.generation, again.attempt) == (2, 1)
    assert again.not_before > matter.reload(ticket).not_before + WAIT - timedelta(seconds=1)
    assert matter.reload(ticket).outcome is Outcome.REPLACED


def test_a_part_that_may_not_be_paid_for_now_is_put_off(matter: Matter) -> None:
    """It stays requested, with the next ticket and the mark; nothing of its attempts is spent."""
    document = matter.registered()
    sent(matter, matter.part(document, Part.CARD).ticket_id)
    with matter.registrar() as connection:
        found, row = locked(connection, document)
        again = parts.postpone(connection, found, row, wait=WAIT)
    row = matter.part(document, Part.CARD)
    assert (row.state, row.attempt, row.ticket_id) == ("requested", 1, again.id)
    assert again.generation == 2


def test_sections_asked_for_anew_keep_their_request_when_they_are_put_back(matter: Matter) -> None:
    """The next ticket of a resegment is a resegment, with the request's id."""
    document = matter.registered()
    request = uuid7()
    with matter.registrar() as connection:
        found = lock_document(connection, document)
        assert found is not None
        ticket = parts.ask_again(connection, found, Part.SECTIONS, request_id=request)
    sent(matter, ticket.id)
    with matter.registrar() as connection:
        found, row = locked(connection, document, Part.SECTIONS)
        running = parts.begin(connection, row, run_id=uuid7())
        again = parts.requeue(connection, found, running, wait=WAIT, ticket=ticket)
    assert (again.event_type, again.request_id, again.generation) == (EventType.RESEGMENT_REQUESTED, request, 2)
    assert matter.part(document, Part.SECTIONS).ticket_id == again.id


def test_a_takeover_spends_an_attempt(matter: Matter) -> None:
    """The part stays at running, with the new run."""
    document = matter.registered()
    run = uuid7()
    with matter.registrar() as connection:
        found, row = locked(connection, document)
        row = parts.begin(connection, row, run_id=uuid7())
        row = parts.renew(connection, row, run_id=run)
        assert (row.state, row.run_id, row.attempt) == (PartState.RUNNING, run, 2)
        with pytest.raises(IllegalTransition):
            parts.begin(connection, row, run_id=uuid7())
        failed = parts.fail(connection, found, row, message="No.", retryable=True, limits=LIMITS)
        with pytest.raises(IllegalTransition):
            parts.ready(connection, found, failed)


@pytest.mark.parametrize(
    "move",
    [
        lambda connection, row: parts.begin(connection, row, run_id=uuid7()),
        lambda connection, row: parts.renew(connection, replace(row, state=PartState.RUNNING), run_id=uuid7()),
    ],
)
def test_a_part_that_changed_under_its_reader_is_not_moved(
    matter: Matter, move: Callable[[Connection, PartRow], object]
) -> None:
    """Whoever moves it without its lock is told."""
    document = matter.registered()
    with matter.registrar() as connection:
        _, row = locked(connection, document)
    matter.prepare("UPDATE record.understanding_part SET state = 'running'")
    matter.prepare("UPDATE record.understanding_part SET state = 'failed'")
    with matter.registrar() as connection, pytest.raises(LostPart):
        move(connection, row)


def test_two_that_ask_for_one_part_write_one_ticket(matter: Matter) -> None:
    """The second waits for the document, and finds the part asked for."""
    document = matter.registered()

    def ask(connection: Connection) -> Ticket | None:
        found = lock_document(connection, document)
        assert found is not None
        return parts.request(connection, found, Part.BRIEF)

    second = Second(matter.database, ask)
    with matter.registrar() as first:
        assert ask(first) is not None
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is None
    assert matter.count("ops.document_ingest_outbox", "part = 'brief'") == 1
    assert matter.count("record.understanding_part", "part = 'brief'") == 1
