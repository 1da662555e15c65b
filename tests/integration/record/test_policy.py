"""What a firm lets the agent do: apply, propose, deny, floors, and what people decided before."""

from typing import Any

import pytest

from baton.contract.classification import (
    AddDate,
    AddParty,
    AddTag,
    DateMeaning,
    DocumentType,
    Intent,
    PartyRole,
    SetName,
    SetType,
)
from baton.db.states import Outcome, RegistrationStatus
from baton.record.firm_policy import PRODUCT_DEFAULTS, Kind
from support.matters import Matter, review, turn


def named(name: str, *, confidence: float = 0.9, key: str = "set_name") -> SetName:
    """An intent to name the document."""
    return SetName(key=key, confidence=confidence, name=name)


def tagged(tag: str, *, confidence: float = 0.9, key: str | None = None) -> AddTag:
    """An intent to tag the document."""
    return AddTag(key=key or f"add_tag:{tag}", confidence=confidence, tag=tag)


def rule(matter: Matter, kind: Kind, decision: str, *, floor: float = 0.0) -> None:
    """Set a rule of the firm's own."""
    matter.prepare(
        "INSERT INTO record.firm_policy (firm_id, kind, decision, confidence_floor) VALUES (:firm, :kind, :to, :floor)"
        " ON CONFLICT (firm_id, kind) DO UPDATE SET decision = excluded.decision,"
        " confidence_floor = excluded.confidence_floor",
        firm=matter.firm,
        kind=kind.value,
        to=decision,
        floor=floor,
    )


def decide(matter: Matter, value: str, state: str) -> None:
    """A person decides on a proposal."""
    matter.prepare(
        "UPDATE record.assertion SET state = :state, decided_at = app.clock(), decided_by = 'counsel'"
        " WHERE firm_id = :firm AND value = :value",
        state=state,
        value=value,
        firm=matter.firm,
    )


def reasons(matter: Matter, document: Any) -> dict[str, str | None]:
    """Why each value was not applied."""
    found = matter.rows("SELECT value, detail->>'reason' FROM record.assertion WHERE document_id = :id", id=document)
    return {row[0]: row[1] for row in found}


@pytest.mark.parametrize(
    ("decided", "confidence", "state", "reason"),
    [
        (("apply", 0.0), 0.0, "applied", None),
        (("apply", 0.6), 0.6, "applied", None),
        (("apply", 0.7), 0.7, "applied", None),
        (("apply", 0.6), 0.59, "proposed", "confidence"),
        (("apply", 1.0), 0.99, "proposed", "confidence"),
        (("propose", 0.0), 1.0, "proposed", "policy"),
        (("deny", 0.0), 1.0, "denied", "policy"),
    ],
)
def test_the_firms_rule_decides(
    matter: Matter, decided: tuple[str, float], confidence: float, state: str, reason: str | None
) -> None:
    """Each decision and both sides of the floor; a confidence at the floor is enough."""
    decision, floor = decided
    rule(matter, Kind.TAG, decision, floor=floor)
    document = matter.registered(tagged("urgent", confidence=confidence))
    assert matter.assertions(document) == [("tag", "urgent", state)]
    assert reasons(matter, document) == {"urgent": reason}
    assert matter.count("record.intent_claim", "assertion_id IS NOT NULL") == 1


def test_without_a_rule_the_products_default_decides(matter: Matter) -> None:
    """One below the default's floor is proposed, one at it applied."""
    floor = PRODUCT_DEFAULTS[Kind.TAG].confidence_floor
    document = matter.registered(tagged("sure", confidence=floor), tagged("unsure", confidence=floor - 0.01))
    assert matter.assertions(document) == [("tag", "sure", "applied"), ("tag", "unsure", "proposed")]


def test_another_firms_rule_decides_nothing(matter: Matter) -> None:
    """Policies are read as the firm's member."""
    stranger = matter.sibling(firm=matter.id)
    rule(stranger, Kind.TAG, "deny")
    assert matter.assertions(matter.registered(tagged("urgent"))) == [("tag", "urgent", "applied")]


def test_every_kind_of_intent_reaches_the_record(matter: Matter) -> None:
    """Names, types, tags, parties and dates, each with what qualifies it."""
    intents: list[Intent] = [
        named("Order"),
        SetType(key="set_type", confidence=0.9, document_type=DocumentType.COURT_ORDER),
        tagged("urgent"),
        AddParty(key="p1", confidence=0.9, name="Acme Ltd", role=PartyRole.CLAIMANT),
        AddParty(key="p2", confidence=0.9, name="Acme Ltd", role=PartyRole.SENDER),
        AddDate.model_validate_json('{"key": "d1", "confidence": 0.9, "day": "2026-03-01", "meaning": "hearing"}'),
    ]
    document = matter.registered(*intents)
    found = matter.rows(
        "SELECT kind, value, detail, state FROM record.assertion WHERE document_id = :id ORDER BY id", id=document
    )
    assert [tuple(row) for row in found] == [
        ("name", "Order", {}, "applied"),
        ("type", "court_order", {}, "applied"),
        ("tag", "urgent", {}, "applied"),
        ("party", "Acme Ltd", {"role": "claimant"}, "applied"),
        ("party", "Acme Ltd", {"role": "sender"}, "applied"),
        ("date", "2026-03-01", {"meaning": DateMeaning.HEARING.value}, "applied"),
    ]


def test_a_document_gets_one_name_from_one_turn(matter: Matter) -> None:
    """The first is applied, a second one is left to a person."""
    document = matter.registered(named("Order"), named("Judgment", key="set_name:2"))
    assert matter.assertions(document) == [("name", "Order", "applied"), ("name", "Judgment", "proposed")]
    assert reasons(matter, document)["Judgment"] == "already_set"


def test_two_intents_that_say_the_same_are_one_assertion(matter: Matter) -> None:
    """Case and blanks make no difference; both intents are claimed."""
    document = matter.registered(tagged("Urgent", key="a"), tagged("urgent", key="b"))
    assert matter.assertions(document) == [("tag", "Urgent", "applied")]
    assert matter.count("record.intent_claim") == 2


def retried(matter: Matter, document: Any, *intents: Intent) -> None:
    """A person asks again within the pass, and another run answers."""
    ticket = matter.deliver(matter.dispatch(document, explicit=True), turn(*intents))
    assert matter.apply(ticket) is Outcome.DONE


def test_a_retry_replaces_proposals_that_nobody_decided_on(matter: Matter) -> None:
    """Of the same key or of none in the new turn, an open proposal gives way; what was applied stands, once."""
    document = matter.document()
    first = turn(named("Order"), tagged("maybe", confidence=0.1), tagged("gone", confidence=0.1), verdict=review())
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    retried(matter, document, named("Another name"), tagged("maybe", confidence=0.9))
    assert matter.assertions(document) == [
        ("name", "Order", "applied"),
        ("tag", "maybe", "superseded"),
        ("tag", "gone", "superseded"),
        ("tag", "maybe", "applied"),
    ]
    assert matter.read(document).registration_status is RegistrationStatus.REGISTERED
    assert matter.count("record.intent_claim") == 3


def test_what_a_person_decided_stands(matter: Matter) -> None:
    """Accepted and declined survive a retry; what was declined is not proposed again, under whatever key."""
    document = matter.document()
    rule(matter, Kind.TAG, "propose")
    rule(matter, Kind.NAME, "propose")
    first = turn(tagged("yes"), tagged("no"), tagged("open"), named("Chosen"), verdict=review())
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    decide(matter, "yes", "accepted")
    decide(matter, "no", "declined")
    decide(matter, "Chosen", "accepted")
    rule(matter, Kind.TAG, "apply")
    rule(matter, Kind.NAME, "apply")
    retried(
        matter,
        document,
        tagged("yes"),
        tagged("no"),
        tagged("open"),
        tagged("NO", key="add_tag:other"),
        named("Mine", key="set_name:2"),
    )
    assert matter.assertions(document) == [
        ("tag", "yes", "accepted"),
        ("tag", "no", "declined"),
        ("tag", "open", "superseded"),
        ("name", "Chosen", "accepted"),
        ("tag", "open", "applied"),
        ("tag", "NO", "denied"),
        ("name", "Mine", "proposed"),
    ]
    assert reasons(matter, document)["NO"] == "declined_before"


def test_a_new_pass_replaces_what_the_agent_applied_and_keeps_what_people_decided(matter: Matter) -> None:
    """After re-extraction the new reading speaks; a name stands until the new pass has one to apply."""
    document = matter.registered(named("Old"), tagged("old"), tagged("kept", confidence=0.1))
    decide(matter, "kept", "accepted")
    matter.prepare(
        "UPDATE documents SET extraction_epoch = extraction_epoch + 1, processing_status = 'uploaded',"
        " extraction_run_id = NULL, registration_status = 'not_requested' WHERE id = :id",
        id=document,
    )
    matter.index(document)
    first = turn(named("Unsure", confidence=0.1), tagged("new"), verdict=review())
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    assert matter.assertions(document)[:3] == [
        ("name", "Old", "applied"),
        ("tag", "old", "superseded"),
        ("tag", "kept", "accepted"),
    ]
    retried(matter, document, named("New"), tagged("new"), tagged("kept"))
    assert matter.assertions(document) == [
        ("name", "Old", "superseded"),
        ("tag", "old", "superseded"),
        ("tag", "kept", "accepted"),
        ("name", "Unsure", "superseded"),
        ("tag", "new", "applied"),
        ("name", "New", "applied"),
    ]


def test_the_smallest_doubtful_number_is_a_proposal_like_any_other(matter: Matter) -> None:
    """A confidence that JSON can write and the database's column cannot hold does not cost the whole result."""
    document = matter.document()
    assert (
        matter.apply(matter.deliver(matter.dispatch(document), turn(tagged("urgent", confidence=1e-60))))
        is Outcome.DONE
    )
    assert matter.assertions(document) == [("tag", "urgent", "proposed")]
