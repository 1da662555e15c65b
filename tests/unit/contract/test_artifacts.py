"""An artifact is taken only when all of it is right, and refused by the first thing that is not."""

import hashlib
import json
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract import errors, limits
from baton.contract.artifacts import (
    EFFECT_OF,
    Effect,
    build_artifact,
    digest,
    dump_effects,
    parse_artifact,
    parse_effects,
)
from baton.contract.classification import (
    AddDate,
    AddParty,
    AddTag,
    Concern,
    ConcernKind,
    DateMeaning,
    DocumentType,
    LinkBy,
    LinkDocument,
    LinkRelation,
    LinkTarget,
    Outcome,
    PartyRole,
    SetName,
    SetType,
    Turn,
    Verdict,
    intent_key,
)
from baton.contract.purposes import SCHEMA_OF, Purpose, SchemaName
from baton.contract.understanding import Brief, BriefPoint, Card, Fact, Section, Sections

RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
CLASSIFICATION = SchemaName.CLASSIFICATION_V1

TURN = Turn(
    intents=(
        SetName(key="set_name", confidence=0.9, name="Supply Agreement"),
        SetType(key="set_type", confidence=1, document_type=DocumentType.CONTRACT),
        AddTag(key=intent_key("add_tag", "payment"), confidence=0.5, tag="payment"),
        AddParty(key="add_party:1", confidence=0.25, name="Παπαδόπουλος", role=PartyRole.CONTRACTING_PARTY),
        AddDate(key="add_date:1", confidence=0.0, day=date(2021, 3, 3), meaning=DateMeaning.DOCUMENT),
        LinkDocument(
            key="link:1",
            confidence=0.7,
            target=LinkTarget(by=LinkBy.REFERENCE, value="Exhibit 12"),
            relation=LinkRelation.REFERS_TO,
        ),
    ),
    verdict=Verdict(outcome=Outcome.NEEDS_REVIEW, note="Marked as privileged."),
    concerns=(Concern(kind=ConcernKind.PRIVILEGE_SUSPICION, note="Marked as privileged.", confidence=0.9, page=1),),
)
EFFECTS: dict[SchemaName, Effect] = {
    CLASSIFICATION: TURN,
    SchemaName.CARD_V1: Card(
        headline="Supply Agreement",
        document_type=DocumentType.CONTRACT,
        facts=(Fact(label="Date", value="2021-03-03", page=1),),
    ),
    SchemaName.SECTIONS_V1: Sections(sections=(Section(heading="1. Terms", first_page=1, last_page=3),)),
    SchemaName.BRIEF_V1: Brief(summary="Goods are sold.\nThey are paid.", points=(BriefPoint(text="Paid late."),)),
}


def _changed(change: Callable[[dict[str, Any]], None], *, reseal: bool = True) -> bytes:
    """The good classification with one change, sealed again unless told otherwise."""
    value = json.loads(build_artifact([TURN], schema=CLASSIFICATION, run_id=RUN))
    change(value)
    if reseal:
        value["digest"] = digest(value.get("effects", []), schema=value["schema"])
    return json.dumps(value).encode()


def _parse(data: bytes) -> Any:
    return parse_artifact(data, expected_schema=CLASSIFICATION, run_id=RUN)


@pytest.mark.parametrize("schema", SchemaName)
def test_what_is_built_is_taken(schema: SchemaName) -> None:
    """Every schema's effect survives the way as the same model, and so does its stored form."""
    effect = EFFECTS[schema]
    artifact = parse_artifact(build_artifact([effect], schema=schema, run_id=RUN), expected_schema=schema, run_id=RUN)
    assert artifact.effects == (effect,)
    assert (artifact.schema_name, artifact.run_id) == (schema, RUN)
    assert parse_effects(json.loads(json.dumps(dump_effects([effect]))), schema=schema) == (effect,)


def test_every_purpose_has_a_schema_and_every_schema_an_effect() -> None:
    """The tables have no holes."""
    assert set(SCHEMA_OF) == set(Purpose)
    assert set(SCHEMA_OF.values()) == set(EFFECT_OF) == set(SchemaName)


def test_the_digest_is_over_the_canonical_form_of_schema_and_effects() -> None:
    """Another implementation can compute it from the standard alone."""
    canonical = '{"effects":[{"a":1,"b":"é","z":[1e+21,0.5]}],"schema":"document.card.v1"}'
    expected = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    assert digest([{"z": [1e21, 0.5], "b": "é", "a": 1.0}], schema="document.card.v1") == expected


def test_spacing_and_order_make_no_difference() -> None:
    """The same effects written differently carry the same digest."""
    value = json.loads(build_artifact([TURN], schema=CLASSIFICATION, run_id=RUN))
    turned = dict(reversed(value.items()))
    turned["effects"] = [dict(reversed(value["effects"][0].items()))]
    assert _parse(json.dumps(turned, indent=3).encode()).effects == (TURN,)


def _put(path: str, new: Any) -> Callable[[dict[str, Any]], None]:
    """A change that sets the member at a dotted path."""

    def change(value: Any) -> None:
        *above, last = path.split(".")
        for name in above:
            value = value[int(name) if name.isdigit() else name]
        value[int(last) if last.isdigit() else last] = new

    return change


FIRST = "effects.0.intents.0"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_put("extra", 1), errors.ArtifactMalformed),
        (lambda value: value.pop("effects"), errors.ArtifactMalformed),
        (_put("effects", {"kind": "turn"}), errors.ArtifactMalformed),
        (_put("schema", "document.card.v1"), errors.ArtifactWrongSchema),
        (_put("schema", ["registrar.classification.v1"]), errors.ArtifactWrongSchema),
        (_put("run_id", str(RUN).upper()), errors.ArtifactWrongRun),
        (_put("run_id", None), errors.ArtifactWrongRun),
        (_put("effects", []), errors.InvalidEffect),
        (_put("effects", ["turn"]), errors.InvalidEffect),
        (_put("effects.0.kind", "card"), errors.UnknownEffect),
        (_put("effects.0.kind", 7), errors.UnknownEffect),
        (_put(f"{FIRST}.tool", "delete_document"), errors.UnknownEffect),
        (lambda value: value["effects"].append(value["effects"][0]), errors.InvalidEffect),
        (_put("effects.0.extra", 1), errors.InvalidEffect),
        (_put(f"{FIRST}.extra", 1), errors.InvalidEffect),
        (_put(f"{FIRST}.name", "x" * 301), errors.InvalidEffect),
        (_put(f"{FIRST}.name", ""), errors.InvalidEffect),
        (_put(f"{FIRST}.name", "a\x00b"), errors.InvalidEffect),
        (_put(f"{FIRST}.name", "a\nb"), errors.InvalidEffect),
        (_put(f"{FIRST}.name", "exe\u202efdp"), errors.InvalidEffect),
        (_put(f"{FIRST}.name", 5), errors.InvalidEffect),
        (_put(f"{FIRST}.confidence", 1.01), errors.InvalidEffect),
        (_put(f"{FIRST}.confidence", "0.5"), errors.InvalidEffect),
        (_put(f"{FIRST}.confidence", True), errors.InvalidEffect),
        (_put(f"{FIRST}.key", "Set Name"), errors.InvalidEffect),
        (_put(f"{FIRST}.key", "set_type"), errors.InvalidEffect),
        (_put("effects.0.intents.4.day", "2021-02-30"), errors.InvalidEffect),
        (_put("effects.0.intents.4.day", 18_000), errors.InvalidEffect),
        (_put("effects.0.verdict.note", None), errors.InvalidEffect),
        (_put("effects.0.verdict.outcome", "rejected"), errors.InvalidEffect),
        (
            lambda value: value["effects"][0]["concerns"].append(value["effects"][0]["concerns"][0]),
            errors.InvalidEffect,
        ),
        (_put("document_id", str(RUN)), errors.ArtifactNamesDocument),
        (_put("effects.0.documentId", str(RUN)), errors.ArtifactNamesDocument),
        (_put(f"{FIRST}.Document-ID", str(RUN)), errors.ArtifactNamesDocument),
        (_put(f"{FIRST}.target_document_id", str(RUN)), errors.ArtifactNamesDocument),
        (_put("effects.0.verdict.firm_id", str(RUN)), errors.ArtifactNamesDocument),
        (_put("effects.0.intents.5.target.value", str(RUN)), errors.ArtifactNamesDocument),
        (_put("effects.0.intents.5.target.value", f"{{{str(RUN).upper()}}}"), errors.ArtifactNamesDocument),
    ],
)
def test_each_fault_has_its_own_error(change: Callable[[dict[str, Any]], None], error: type[Exception]) -> None:
    """One thing wrong under a right digest is refused by exactly the error made for it."""
    with pytest.raises(error) as caught:
        _parse(_changed(change))
    assert type(caught.value) is error


def test_effects_that_were_altered_do_not_pass_their_digest() -> None:
    """Any change to the effects after they were sealed is seen."""
    with pytest.raises(errors.ArtifactWrongDigest):
        _parse(_changed(_put(f"{FIRST}.name", "Another name"), reseal=False))
    with pytest.raises(errors.ArtifactWrongDigest):
        _parse(_changed(_put("digest", None), reseal=False))


def test_a_digest_covers_the_schema_too() -> None:
    """Effects sealed under another schema's name are refused."""
    sealed = digest(dump_effects([TURN]), schema="document.card.v1")
    with pytest.raises(errors.ArtifactWrongDigest):
        _parse(_changed(_put("digest", sealed), reseal=False))


def test_size_is_looked_at_first() -> None:
    """One byte too many is too large, whatever the bytes; as many as allowed are read."""
    data = build_artifact([TURN], schema=CLASSIFICATION, run_id=RUN)
    allowed = data + b" " * 10
    artifact = parse_artifact(allowed, expected_schema=CLASSIFICATION, run_id=RUN, max_bytes=len(allowed))
    assert artifact.effects == (TURN,)
    with pytest.raises(errors.ArtifactTooLarge):
        parse_artifact(b"\x00" * 11, expected_schema=CLASSIFICATION, run_id=RUN, max_bytes=10)


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'"x"', b"{}", b'{"a":1,"a":1}', b"\xff", b"[" * 5000])
def test_what_is_no_artifact_is_refused(data: bytes) -> None:
    """Values of every other kind end in an artifact error."""
    with pytest.raises((errors.ArtifactNotJson, errors.ArtifactMalformed)):
        _parse(data)


_WORDS = st.sampled_from(
    ["schema", "run_id", "effects", "digest", "kind", "turn", "intents", "tool", "set_name", "key", "name", str(RUN)]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(max_size=5), inner, max_size=5),
    max_leaves=15,
)


@given(st.binary(max_size=300) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_raises_nothing_but_artifact_errors(data: bytes) -> None:
    """No bytes can raise anything that a settler does not expect."""
    with pytest.raises(errors.ArtifactError):
        _parse(data)


@given(_JSON, st.sampled_from(SchemaName))
def test_sealed_garbage_raises_nothing_but_artifact_errors(effects: Any, schema: SchemaName) -> None:
    """Neither can effects of any form under a right envelope and a right digest."""
    try:
        seal = digest([effects], schema=schema)
    except ValueError:
        seal = "sha256:none"
    value = {"schema": schema, "run_id": str(RUN), "effects": [effects], "digest": seal}
    with pytest.raises(errors.ArtifactError):
        parse_artifact(json.dumps(value).encode(), expected_schema=schema, run_id=RUN)


@given(st.sampled_from(SchemaName), st.data())
def test_a_mutated_artifact_is_the_same_or_refused(schema: SchemaName, data: st.DataObject) -> None:
    """A byte changed anywhere leaves an artifact with the same effects, or none."""
    good = bytearray(build_artifact([EFFECTS[schema]], schema=schema, run_id=RUN))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        artifact = parse_artifact(bytes(good), expected_schema=schema, run_id=RUN)
    except errors.ArtifactError:
        return
    assert artifact.effects == (EFFECTS[schema],)


def _tree(root: type[errors.ContractError]) -> list[type[errors.ContractError]]:
    return [root, *(error for child in root.__subclasses__() for error in _tree(child))]


def test_every_error_can_be_shown_to_a_lawyer_and_told_apart_by_a_machine() -> None:
    """Codes are distinct, messages are whole sentences without words of the trade."""
    kinds = _tree(errors.ContractError)
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.message.endswith(".")
        assert not {"json", "schema", "digest", "artifact", "http"} & set(kind.message.lower().strip(".").split())


def test_details_do_not_repeat_what_the_agent_sent() -> None:
    """A detail is for logs: neither values nor the names of unknown members get into it."""
    for change in (_put(f"{FIRST}.name", "Top secret merger\x00"), _put(f"{FIRST}.Top secret merger", 1)):
        with pytest.raises(errors.ArtifactError) as caught:
            _parse(_changed(change))
        assert "merger" not in f"{caught.value} {caught.value.detail}"


def test_intent_keys_are_stable_and_valid() -> None:
    """The same finding has the same key however it is spelt; another has another."""
    assert intent_key("add_party", "ACME  Ltd", "sender") == intent_key("add_party", "acme ltd", "sender")
    assert intent_key("add_party", "a", "bc") != intent_key("add_party", "ab", "c")
    assert AddTag(key=intent_key("add_tag", "π"), confidence=0.1, tag="π").tag == "π"


def test_the_limits_hold_at_the_largest_turn() -> None:
    """As many intents as allowed fit into the default size; one more is refused."""
    intents = tuple(
        SetName(key=f"k{n}", confidence=0.123456789, name="n" * limits.MAX_NAME) for n in range(limits.MAX_INTENTS)
    )
    turn = Turn(intents=intents, verdict=Verdict(outcome=Outcome.REGISTERED))
    assert _parse(build_artifact([turn], schema=CLASSIFICATION, run_id=RUN)).effects == (turn,)
    crowded = dump_effects([turn])
    crowded[0]["intents"].append({**crowded[0]["intents"][0], "key": "one.more"})
    with pytest.raises(errors.InvalidEffect):
        parse_effects(crowded, schema=CLASSIFICATION)
