"""However often an answer is applied, and by however many at once, each effect happens once. Rows are counted."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from baton.contract.classification import (
    AddTag,
    Concern,
    ConcernKind,
    DocumentType,
    SetName,
    SetType,
)
from baton.db.access import Role
from baton.db.states import Outcome, RegistrationStatus
from baton.outbox.tickets import Ticket, write_next
from baton.record.apply import apply
from support.matters import LIMITS, Matter, review, turn
from support.transactions import Second

NAME = SetName(key="set_name", confidence=0.9, name="Letter before action")
TYPE = SetType(key="set_type", confidence=0.9, document_type=DocumentType.LETTER)
TAG = AddTag(key="add_tag:urgent", confidence=0.9, tag="urgent")
CONFLICT = Concern(kind=ConcernKind.SIDE_CONFLICT, note="The firm acts for both sides.", confidence=0.9)


def effects(matter: Matter) -> dict[str, int]:
    """Everything an apply writes, counted."""
    return {
        "assertions": matter.count("record.assertion"),
        "claims": matter.count("record.intent_claim"),
        "items": matter.count("inbox.item"),
        "parts": matter.count("record.understanding_part"),
        "tickets": matter.count("ops.document_ingest_outbox", "event_type = 'document.understanding.requested'"),
        "transitions": matter.count("ops.document_status_transition", "to_status = 'registered'"),
        "applied": matter.count("agents.agent_effect", "disposition = 'applied'"),
    }


ONCE = {"assertions": 3, "claims": 3, "items": 1, "parts": 1, "tickets": 1, "transitions": 1, "applied": 1}


def delivered(matter: Matter) -> Ticket:
    """A document that waits for the apply of a turn with three intents and a concern."""
    run = matter.dispatch(matter.document())
    return matter.deliver(run, turn(NAME, TYPE, TAG, concerns=[CONFLICT]))


def test_a_delivered_turn_is_applied_whole(matter: Matter) -> None:
    """One apply leaves the values, the item, the verdict, the first part with its ticket, and both marks."""
    ticket = delivered(matter)
    assert matter.apply(ticket) is Outcome.DONE
    document = matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTERED
    assert document.understood_pass == document.extraction_run_id == document.registration_pass
    assert matter.assertions(document.id) == [
        ("name", "Letter before action", "applied"),
        ("type", "letter", "applied"),
        ("tag", "urgent", "applied"),
    ]
    assert effects(matter) == ONCE
    closed = matter.reload(ticket)
    assert closed.outcome is Outcome.DONE
    assert closed.handled_at is not None


def test_of_two_appliers_the_second_waits_in_the_database_and_does_nothing(matter: Matter) -> None:
    """The second blocks on the document's row until the first commits, and wakes to a finished document."""
    ticket = delivered(matter)
    second = Second(matter.database, lambda connection: apply(connection, ticket, limits=LIMITS))
    with matter.registrar() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        second.start()
        second.wait_until_blocked_by(first)
        assert effects(matter) == dict.fromkeys(ONCE, 0), "nothing is seen before the commit"
    assert second.result() is Outcome.ALREADY_DONE
    assert effects(matter) == ONCE


def test_the_second_applier_does_the_work_when_the_first_rolls_back(matter: Matter) -> None:
    """Waiting does not lose the letter: what the first did not commit, the second does."""
    ticket = delivered(matter)
    second = Second(matter.database, lambda connection: apply(connection, ticket, limits=LIMITS))
    with matter.database.engine(Role.REGISTRAR).connect() as first:
        assert apply(first, ticket, limits=LIMITS) is Outcome.DONE
        second.start()
        second.wait_until_blocked_by(first)
        first.rollback()
    assert second.result() is Outcome.DONE
    assert effects(matter) == ONCE


def test_a_replayed_apply_changes_nothing(matter: Matter) -> None:
    """The same ticket ten times over is one apply."""
    ticket = delivered(matter)
    outcomes = [matter.apply(ticket) for _ in range(10)]
    assert outcomes == [Outcome.DONE, *[Outcome.ALREADY_DONE] * 9]
    assert effects(matter) == ONCE
    assert matter.reload(ticket).outcome is Outcome.DONE


def test_a_redriven_ticket_of_an_applied_run_changes_nothing(matter: Matter) -> None:
    """A next generation reaches the handler, and finds the letter opened."""
    ticket = delivered(matter)
    with matter.registrar() as connection:
        connection.execute(
            text("UPDATE ops.document_ingest_outbox SET receive_count = 1 WHERE id = :id"), {"id": ticket.id}
        )
    matter.prepare("UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() WHERE id = :id", id=ticket.id)
    assert matter.apply(ticket) is Outcome.DONE
    with matter.registrar() as connection:
        again = write_next(connection, ticket.subject, pointer=ticket.pointer)
    assert again.generation == 2
    assert matter.apply(again) is Outcome.ALREADY_DONE
    assert effects(matter) == ONCE


def test_the_claims_hold_though_lock_and_fence_were_gone(matter: Matter) -> None:
    """A document put back to registering by hand, with the same run, gets no effect a second time."""
    ticket = delivered(matter)
    assert matter.apply(ticket) is Outcome.DONE
    with matter.database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))  # past the trigger
        connection.execute(
            text("UPDATE documents SET registration_status = 'registering' WHERE id = :id"), {"id": ticket.document_id}
        )
    assert matter.apply(ticket) is Outcome.DONE
    assert matter.count("record.assertion") == 3
    assert matter.count("record.intent_claim") == 3
    assert matter.count("inbox.item") == 1
    assert matter.count("record.understanding_part") == 1


@pytest.mark.parametrize("older", ["delivered", "rejected", "expired"])
@pytest.mark.parametrize("newer", ["delivered", "expired"])
@pytest.mark.parametrize("order", ["older first", "newer first"])
def test_an_older_run_neither_wins_nor_fails_the_document(matter: Matter, older: str, newer: str, order: str) -> None:
    """Whichever ticket comes first, the document ends as the newer run says."""
    document = matter.document()
    run = matter.dispatch(document)
    late = matter.deliver(run, turn(TAG)) if older == "delivered" else matter.settle(run, older, message="Old.")
    current = matter.take_over(document)
    fresh = (
        matter.deliver(current, turn(NAME)) if newer == "delivered" else matter.settle(current, newer, message="New.")
    )
    pair = [late, fresh] if order == "older first" else [fresh, late]
    outcomes = {ticket.run_id: matter.apply(ticket) for ticket in pair}
    found = matter.read(document)
    assert outcomes[run] is Outcome.STALE
    if newer == "delivered":
        assert outcomes[current] is Outcome.DONE
        assert found.registration_status is RegistrationStatus.REGISTERED
        assert matter.assertions(document) == [("name", "Letter before action", "applied")]
    else:
        assert outcomes[current] is Outcome.REFUSED
        assert found.registration_status is RegistrationStatus.REGISTRATION_FAILED
        assert found.registration_message == "New."
        assert matter.assertions(document) == []
    if older == "delivered":
        assert matter.count("agents.agent_effect", "run_id = :run AND disposition = 'stale'", run=run) == 1


def test_an_answer_about_an_older_pass_changes_nothing(matter: Matter) -> None:
    """Re-extraction takes the pass away; the answer about it finds nobody waiting."""
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn(NAME))
    matter.prepare(
        "UPDATE documents SET extraction_epoch = extraction_epoch + 1, processing_status = 'uploaded',"
        " extraction_run_id = NULL, registration_status = 'not_requested' WHERE id = :id",
        id=document,
    )
    assert matter.apply(ticket) is Outcome.STALE
    assert matter.count("record.assertion") == 0
    assert matter.read(document).registration_status is RegistrationStatus.NOT_REQUESTED


def test_an_answer_about_another_pass_than_the_documents_changes_nothing(matter: Matter) -> None:
    """Though the status still waits for this very run: what it read is no longer the document's text."""
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn(NAME))
    matter.prepare("UPDATE documents SET extraction_run_id = gen_random_uuid() WHERE id = :id", id=document)
    assert matter.apply(ticket) is Outcome.STALE
    assert matter.count("record.assertion") == 0
    assert matter.read(document).registration_status is RegistrationStatus.REGISTERING


def test_a_run_of_another_document_opens_nothing(matter: Matter) -> None:
    """Though a document waited for it by a wrong mark, a run acts on the document that it was minted for, or on none."""
    document, other = matter.document(), matter.document("other.pdf")
    own = matter.deliver(matter.dispatch(document), turn(NAME))
    foreign = matter.deliver(matter.dispatch(other), turn(TAG))
    matter.prepare("UPDATE documents SET registration_run_id = :run WHERE id = :id", id=document, run=foreign.run_id)
    assert matter.apply(replace(own, run_id=foreign.run_id)) is Outcome.STALE
    assert matter.count("record.assertion") == 0
    assert matter.read(document).registration_status is RegistrationStatus.REGISTERING
    assert matter.count("agents.agent_effect", "disposition = 'verified'") == 2, "nor is it marked for its own document"


def test_what_was_stale_for_want_of_a_mark_is_applied_once_the_mark_is_back(matter: Matter) -> None:
    """And its effects say so: what is applied is told from what is not by that word."""
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn(NAME))
    matter.prepare("UPDATE documents SET registration_run_id = NULL WHERE id = :id", id=document)
    assert matter.apply(ticket) is Outcome.STALE
    assert matter.count("agents.agent_effect", "disposition = 'stale'") == 1
    matter.prepare("UPDATE documents SET registration_run_id = :run WHERE id = :id", id=document, run=ticket.run_id)
    assert matter.apply(ticket) is Outcome.DONE
    assert matter.count("agents.agent_effect", "disposition = 'applied' AND applied_at IS NOT NULL") == 1


def test_needs_review_is_concluded_with_its_note(matter: Matter) -> None:
    """The verdict's note stands on the document, and nothing is asked of the agent until a person decides."""
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn(NAME, verdict=review("Which of two dates holds?")))
    assert matter.apply(ticket) is Outcome.DONE
    found = matter.read(document)
    assert found.registration_status is RegistrationStatus.REGISTRATION_NEEDS_REVIEW
    assert found.registration_message == "Which of two dates holds?"
    assert found.understood_pass is None
    assert matter.count("record.understanding_part") == 0
