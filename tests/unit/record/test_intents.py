"""What an intent becomes, calculated without a database."""

from uuid import uuid4

import pytest

from baton.contract.classification import AddTag, ConcernKind, DocumentType, LinkBy, LinkTarget, SetType
from baton.contract.purposes import SCHEMA_OF, SchemaName
from baton.db.states import Part, Purpose
from baton.db.tables.record import ASSERTION_KINDS, ASSERTION_STATES
from baton.record import links, messages
from baton.record.appliers import APPLIERS
from baton.record.firm_policy import PRODUCT_DEFAULTS, Decision, Kind, Rule
from baton.record.inbox import ItemKind
from baton.record.intents import Draft, Reason, Standing, State, decide, draft_of, fold, identities
from baton.record.links import Directory
from baton.registration import parts

APPLY = Rule(Decision.APPLY, 0.5)


def draft(kind: Kind = Kind.TAG, value: str = "urgent", *, confidence: float = 0.9, **more: object) -> Draft:
    """A draft of one intent."""
    return Draft(key=f"{kind}:{value}", kind=kind, value=value, confidence=confidence, **more)  # type: ignore[arg-type]


def test_every_kind_has_a_default_and_a_place_in_the_database() -> None:
    """The closed sets of the code and of the schema are the same."""
    assert set(Kind) == set(ASSERTION_KINDS) == set(PRODUCT_DEFAULTS)
    assert set(State) <= set(ASSERTION_STATES)
    assert {kind.value for kind in ConcernKind} <= {kind.value for kind in ItemKind}


def test_every_schema_has_an_applier() -> None:
    """A result that may be asked for can be opened."""
    assert set(APPLIERS) == set(SchemaName) == set(SCHEMA_OF.values())


def test_every_part_is_a_purpose() -> None:
    """A run's purpose names its part; the chain visits each part once and ends."""
    assert {part.value for part in Part} == {purpose.value for purpose in Purpose} - {"classify"}
    chain = [Part.CARD]
    while (following := parts.following(chain[-1])) is not None:
        chain.append(following)
    assert chain == list(Part)


@pytest.mark.parametrize("rule", [Rule(decision, floor) for decision in Decision for floor in (0.0, 1.0)])
def test_a_denial_goes_before_everything(rule: Rule) -> None:
    """What a person declined is denied under every rule, whatever its confidence."""
    declined = Standing(declined=set(identities(Kind.TAG, "URGENT", detail={}, target=None)))
    decided = decide(draft(), rule=rule, standing=declined)
    assert decided is not None
    assert (decided.state, decided.reason) == (State.DENIED, Reason.DECLINED_BEFORE)


def test_what_stands_is_not_said_again() -> None:
    """The first of two equal drafts is decided, the second is nothing."""
    standing = Standing()
    assert decide(draft(value="Urgent"), rule=APPLY, standing=standing) is not None
    assert decide(draft(value=" urgent"), rule=APPLY, standing=standing) is None


def test_a_qualifier_tells_two_values_apart() -> None:
    """One party in two roles is two assertions."""
    standing = Standing()
    for role in ("claimant", "sender"):
        found = decide(draft(Kind.PARTY, "Acme", detail={"role": role}), rule=APPLY, standing=standing)
        assert found is not None
        assert found.state is State.APPLIED


def test_two_names_for_one_target_are_one_link() -> None:
    """A document that is mentioned by file name and by number is linked once."""
    standing, target = Standing(), uuid4()
    detail = {"by": "name", "relation": "refers_to"}
    assert decide(draft(Kind.LINK, "NDA.pdf", detail=detail, target=target), rule=APPLY, standing=standing)
    again = draft(Kind.LINK, "Exhibit 12", detail={**detail, "by": "reference"}, target=target)
    assert decide(again, rule=APPLY, standing=standing) is None


def test_a_link_without_a_target_is_never_applied() -> None:
    """The most confident mention still needs a document."""
    decided = decide(
        draft(Kind.LINK, "x", confidence=1.0, unresolved=Reason.TARGET_UNKNOWN), rule=APPLY, standing=Standing()
    )
    assert decided is not None
    assert (decided.state, decided.reason) == (State.PROPOSED, Reason.TARGET_UNKNOWN)


def test_a_proposed_name_leaves_room_for_a_better_one() -> None:
    """Only what was applied takes the one place there is."""
    standing = Standing()
    first = decide(draft(Kind.NAME, "Unsure", confidence=0.1), rule=APPLY, standing=standing)
    second = decide(draft(Kind.NAME, "Sure"), rule=APPLY, standing=standing)
    third = decide(draft(Kind.NAME, "Also sure"), rule=APPLY, standing=standing)
    assert [each and each.state for each in (first, second, third)] == [State.PROPOSED, State.APPLIED, State.PROPOSED]


def test_intents_keep_their_key_and_confidence() -> None:
    """The draft is claimed by the agent's own key."""
    intents = (
        SetType(key="set_type", confidence=0.4, document_type=DocumentType.LETTER),
        AddTag(key="add_tag:x", confidence=0.3, tag="x"),
    )
    found = [draft_of(intent) for intent in intents]
    assert [(each.key, each.kind, each.value, each.confidence) for each in found] == [
        ("set_type", Kind.TYPE, "letter", 0.4),
        ("add_tag:x", Kind.TAG, "x", 0.3),
    ]


@pytest.mark.parametrize("left", ["Straße 1", "\uff33TRASSE\u3000\uff11", " strasse  1 "])
def test_folding_makes_equal_what_reads_alike(left: str) -> None:
    """Case, width and blanks."""
    assert fold(left) == "strasse 1"


def test_a_matter_too_large_to_look_through_leaves_links_to_a_person() -> None:
    """Half a directory could take an ambiguous name for a plain one."""
    directory = Directory([(uuid4(), "NDA.pdf", None)], complete=False)
    found = directory.find(LinkTarget(by=LinkBy.NAME, value="NDA.pdf"))
    assert found == links.Found(reason=Reason.TARGET_AMBIGUOUS)


def test_references_of_common_words_are_looked_for_so_far_and_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer full of words that every name has cannot hold its document's lock: what is too much is a person's."""
    monkeypatch.setattr(links, "MAX_COMPARISONS", 100)
    last = uuid4()
    names = [*((uuid4(), f"Notes on the lease of a harbour {number}.pdf", None) for number in range(39))]
    directory = Directory([*names, (last, "Notes on the lease of a harbour, exhibit 7.pdf", None)])

    def reason(words: str) -> links.Found:
        return directory.find(LinkTarget(by=LinkBy.REFERENCE, value=words))

    assert reason("harbour of lease").reason is Reason.TARGET_UNKNOWN
    assert reason("harbour exhibit 7") == links.Found(target=last), "its rarest word is in two names only"
    assert reason("a harbour").reason is Reason.TARGET_AMBIGUOUS
    assert reason("harbour of lease").reason is Reason.TARGET_AMBIGUOUS, "120 names and more would have been looked at"


@pytest.mark.parametrize("words", ["...", "---", "(.)"])
def test_words_without_a_letter_mean_nothing(words: str) -> None:
    """A reference of punctuation is in every name, and so in none."""
    directory = Directory([(uuid4(), "NDA.pdf", None), (uuid4(), "...pdf", None)])
    for by in LinkBy:
        assert directory.find(LinkTarget(by=by, value=words)).reason is Reason.TARGET_UNKNOWN


def test_every_message_is_one_sentence_for_a_lawyer() -> None:
    """One sentence, no ids, nothing of the program's."""
    for name in (
        "REJECTED",
        "EXPIRED",
        "UNAPPLIABLE",
        "OUTRUN",
        "GIVEN_UP",
        "DUPLICATE_IN_MATTER",
        "DUPLICATE_IN_FIRM",
        "REVIEW",
    ):
        message = getattr(messages, name)
        assert message.endswith(".")
        assert message.count(". ") == 0
        assert not any(word in message.lower() for word in ("error", "exception", "run", "ticket", "json", "schema"))
