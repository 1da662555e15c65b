"""Card, sections, brief: asked for one after the other, each on its own, and never on the document's axes."""

from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from baton.contract.artifacts import Effect
from baton.contract.classification import DocumentType
from baton.contract.understanding import Brief, Card, Fact, Section, Sections
from baton.db.errors import IllegalTransition
from baton.db.rows import lock_document
from baton.db.states import Outcome, Part, PartState
from baton.outbox.tickets import Ticket
from baton.record import messages
from baton.record.apply import apply, give_up
from baton.registration import parts
from baton.settings.agents import Runs
from support.matters import LIMITS, Matter
from support.transactions import Second

EFFECTS: dict[Part, Effect] = {
    Part.CARD: Card(
        headline="An order", document_type=DocumentType.COURT_ORDER, facts=(Fact(label="Court", value="X"),)
    ),
    Part.SECTIONS: Sections(sections=(Section(heading="Facts", first_page=1, last_page=2),)),
    Part.BRIEF: Brief(summary="The court orders disclosure."),
}
ONE_ATTEMPT = Runs(max_attempts=1)


def asked(matter: Matter, document: UUID) -> list[tuple[str, str]]:
    """Part and state, in the chain's order."""
    found = matter.rows("SELECT part, state FROM record.understanding_part WHERE document_id = :id", id=document)
    return sorted(((row[0], row[1]) for row in found), key=lambda each: list(Part).index(Part(each[0])))


def axes(matter: Matter, document: UUID) -> Any:
    """Everything of the document, its version included: any UPDATE of the row would show."""
    return matter.rows("SELECT d.xmin::text, d.* FROM documents d WHERE id = :id", id=document)


def brought(matter: Matter, document: UUID, part: Part) -> Ticket:
    """The part's run, delivered."""
    return matter.deliver(matter.dispatch_part(document, part), EFFECTS[part])


def test_the_parts_are_asked_for_one_after_the_other(matter: Matter) -> None:
    """Registered asks for the card, the card for the sections, the sections for the brief; each with one ticket."""
    document = matter.registered()
    before = axes(matter, document)
    for done, part in enumerate(Part):
        waiting = [(each.value, "ready") for each in list(Part)[:done]]
        assert asked(matter, document) == [*waiting, (part.value, "requested")]
        row = matter.part(document, part)
        (ticket,) = matter.rows(
            "SELECT id, event_type, generation FROM ops.document_ingest_outbox WHERE document_id = :id AND part = :part",
            id=document,
            part=part.value,
        )
        assert tuple(ticket) == (row.ticket_id, "document.understanding.requested", 1)
        assert matter.apply(brought(matter, document, part)) is Outcome.DONE
    assert asked(matter, document) == [("card", "ready"), ("sections", "ready"), ("brief", "ready")]
    assert axes(matter, document) == before
    contents = matter.rows(
        "SELECT part, content->>'kind' FROM record.part_content WHERE document_id = :id", id=document
    )
    assert {row[0]: row[1] for row in contents} == {part.value: part.value for part in Part}


def test_a_replayed_part_writes_nothing_twice(matter: Matter) -> None:
    """The second apply finds the part ready, and the chain is asked once."""
    document = matter.registered()
    ticket = brought(matter, document, Part.CARD)
    assert [matter.apply(ticket) for _ in range(3)] == [Outcome.DONE, Outcome.ALREADY_DONE, Outcome.ALREADY_DONE]
    assert matter.count("record.part_content") == 1
    assert matter.count("ops.document_ingest_outbox", "part = 'sections'") == 1


def test_of_two_appliers_of_a_part_the_second_waits(matter: Matter) -> None:
    """The document's lock covers the parts too."""
    document = matter.registered()
    ticket = brought(matter, document, Part.CARD)
    second = Second(matter.database, lambda connection: apply(connection, ticket, limits=LIMITS))
    with matter.registrar() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is Outcome.ALREADY_DONE
    assert matter.count("record.part_content") == 1


@pytest.mark.parametrize("state", ["rejected", "expired"])
def test_a_part_that_failed_waits_for_its_retry(matter: Matter, state: str) -> None:
    """While attempts are left the chain waits; the reason stands on the part and the document is left alone."""
    document = matter.registered()
    before = axes(matter, document)
    ticket = matter.settle(matter.dispatch_part(document, Part.CARD), state, message="The agent's reason.")
    assert matter.apply(ticket) is Outcome.REFUSED
    row = matter.part(document, Part.CARD)
    assert (row.state, row.message, row.next_attempt_at is not None) == ("failed", "The agent's reason.", True)
    assert asked(matter, document) == [("card", "failed")]
    assert axes(matter, document) == before


def test_a_part_that_failed_for_good_lets_the_next_one_go(matter: Matter) -> None:
    """No card is no reason to have no brief."""
    document = matter.registered()
    for part in (Part.CARD, Part.SECTIONS):
        ticket = matter.settle(matter.dispatch_part(document, part), "expired")
        assert matter.apply(ticket, limits=ONE_ATTEMPT) is Outcome.REFUSED
    assert matter.apply(brought(matter, document, Part.BRIEF)) is Outcome.DONE
    assert asked(matter, document) == [("card", "failed"), ("sections", "failed"), ("brief", "ready")]
    assert matter.part(document, Part.CARD).message == messages.EXPIRED


def test_a_result_that_cannot_be_applied_fails_its_part(matter: Matter) -> None:
    """Another purpose's effect ends on the part, and the next part is asked for."""
    document = matter.registered()
    ticket = matter.deliver(matter.dispatch_part(document, Part.CARD), EFFECTS[Part.BRIEF])
    assert matter.apply(ticket) is Outcome.REFUSED
    assert asked(matter, document) == [("card", "failed"), ("sections", "requested")]
    assert matter.part(document, Part.CARD).message
    assert matter.count("record.part_content") == 0


def test_giving_up_fails_the_part(matter: Matter) -> None:
    """A part's apply that was tried too often ends visibly, and the chain goes on."""
    document = matter.registered()
    ticket = brought(matter, document, Part.CARD)
    with matter.registrar() as connection:
        give_up(connection, ticket, limits=LIMITS)
    assert asked(matter, document) == [("card", "failed"), ("sections", "requested")]
    assert matter.part(document, Part.CARD).message == messages.GIVEN_UP


def retry(matter: Matter, document: UUID, part: Part) -> Ticket:
    """Ask for a failed part again, as the reconciler does."""
    with matter.registrar() as connection:
        found = lock_document(connection, document)
        assert found is not None
        row = parts.lock_part(connection, found, part)
        assert row is not None
        return parts.retry(connection, found, row)


def test_a_retried_part_is_a_new_ticket_and_one_attempt_more(matter: Matter) -> None:
    """The next generation, with the mark, until attempts are used up."""
    document = matter.registered()
    first = matter.part(document, Part.CARD).ticket_id
    matter.prepare("UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() WHERE id = :id", id=first)
    matter.apply(matter.settle(matter.dispatch_part(document, Part.CARD), "expired"))
    ticket = retry(matter, document, Part.CARD)
    row = matter.part(document, Part.CARD)
    assert (ticket.generation, ticket.attempt, ticket.redrive_of) == (2, 2, first)
    assert (row.state, row.attempt, row.ticket_id, row.run_id, row.message) == ("requested", 2, ticket.id, None, None)
    assert matter.apply(
        matter.settle(matter.dispatch_part(document, Part.CARD), "expired"), limits=Runs(max_attempts=2)
    )
    assert matter.part(document, Part.CARD).next_attempt_at is None
    assert asked(matter, document) == [("card", "failed"), ("sections", "requested")]


def test_an_older_run_of_a_part_changes_nothing(matter: Matter) -> None:
    """A late answer meets a part that runs with another run."""
    document = matter.registered()
    late = brought(matter, document, Part.CARD)
    run = uuid7()
    matter.prepare("UPDATE record.understanding_part SET run_id = :run WHERE document_id = :id", id=document, run=run)
    assert matter.apply(late) is Outcome.STALE
    assert asked(matter, document) == [("card", "running")]
    assert matter.count("record.part_content") == 0


def test_a_part_of_an_older_pass_changes_nothing(matter: Matter) -> None:
    """Re-extraction leaves the old pass's part behind; its answer comes too late."""
    document = matter.registered()
    late = brought(matter, document, Part.CARD)
    matter.prepare(
        "UPDATE documents SET extraction_epoch = extraction_epoch + 1, processing_status = 'uploaded',"
        " extraction_run_id = NULL, registration_status = 'not_requested' WHERE id = :id",
        id=document,
    )
    assert matter.apply(late) is Outcome.STALE
    assert matter.count("record.part_content") == 0


def ask_again(matter: Matter, document: UUID, request: UUID) -> Ticket:
    """Ask for the sections anew, as a person does."""
    with matter.registrar() as connection:
        found = lock_document(connection, document)
        assert found is not None
        return parts.ask_again(connection, found, Part.SECTIONS, request_id=request)


def test_sections_made_anew_replace_the_old_ones(matter: Matter) -> None:
    """The old ones are shown until the new ones come; the rest of the chain is not asked for again."""
    document = matter.registered()
    for part in Part:
        assert matter.apply(brought(matter, document, part)) is Outcome.DONE
    request = uuid7()
    ticket = ask_again(matter, document, request)
    assert ask_again(matter, document, request).id == ticket.id
    assert matter.part(document, Part.SECTIONS).ticket_id == ticket.id
    assert matter.count("record.part_content", "part = 'sections'") == 1
    run = matter.dispatch_part(document, Part.SECTIONS)
    fresh = Sections(sections=(Section(heading="Anew", first_page=1, last_page=1),))
    assert matter.apply(matter.deliver(run, fresh)) is Outcome.DONE
    ((heading, written_by),) = matter.rows(
        "SELECT content->'sections'->0->>'heading', run_id FROM record.part_content WHERE part = 'sections'"
    )
    assert (heading, written_by) == ("Anew", run)
    assert matter.count("ops.document_ingest_outbox", "part = 'brief'") == 1


def test_sections_under_way_are_not_asked_for_anew(matter: Matter) -> None:
    """A request while they are made is refused by the machine."""
    document = matter.registered()
    assert matter.apply(brought(matter, document, Part.CARD)) is Outcome.DONE
    with pytest.raises(IllegalTransition):
        ask_again(matter, document, uuid7())
    assert matter.part(document, Part.SECTIONS).state == PartState.REQUESTED


def test_sections_asked_for_before_their_turn_do_not_stop_the_chain(matter: Matter) -> None:
    """A person may ask before the card is there: the chain later finds them asked for, and goes on from them."""
    document = matter.registered()
    ask_again(matter, document, uuid7())
    assert matter.apply(brought(matter, document, Part.SECTIONS)) is Outcome.DONE
    assert matter.apply(brought(matter, document, Part.CARD)) is Outcome.DONE
    assert asked(matter, document) == [("card", "ready"), ("sections", "ready"), ("brief", "requested")]
