"""A script says what goes wrong, where and how often; a spoiled artifact has exactly one fault."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from baton.agent.misbehaviour import ANSWERING, Misbehaviour, Rule, Script, parse_rule
from baton.agent.rules.results import effect_for
from baton.agent.spoiling import artifact_for
from baton.contract import errors
from baton.contract.artifacts import parse_artifact
from baton.contract.invocations import InputKind, InputPointer, Invocation, InvocationContext, ResultDelivery
from baton.contract.pages import PageText
from baton.contract.purposes import SCHEMA_OF, Purpose

RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def _invocation(purpose: Purpose = Purpose.CLASSIFY, *, file_name: str = "a.pdf") -> Invocation:
    return Invocation(
        run_id=RUN,
        purpose=purpose,
        inputs=(InputPointer(kind=InputKind.TEXT, url="http://store/x", content_type="text/plain"),),
        context=InvocationContext(file_name=file_name),
        result_delivery=ResultDelivery(
            url="http://store/y",
            headers={"If-None-Match": "*"},
            schema=SCHEMA_OF[purpose],
            deadline=datetime(2030, 1, 1, tzinfo=UTC),
            max_bytes=20_000,
        ),
    )


def test_rules_hold_for_what_they_name_and_as_often_as_they_say() -> None:
    """The first rule that matches wins, until its times are used up."""
    never = Rule(act=Misbehaviour.NEVER, purpose=Purpose.CARD)
    once = Rule(act=Misbehaviour.TWICE, file_name="a.pdf", times=1)
    refuse = Rule(act=Misbehaviour.REFUSE, status=429, times=2)
    script = Script([never, once])
    script.add(refuse)
    assert script.for_work(_invocation(Purpose.CARD)) == never
    assert script.for_work(_invocation(file_name="b.pdf")) is None
    assert [script.for_work(_invocation()) for _ in range(2)] == [once, None]
    assert [script.for_answer(_invocation()) for _ in range(3)] == [refuse, refuse, None]
    script.clear()
    assert script.for_work(_invocation(Purpose.CARD)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"act":"explode"}',
        b'{"act":"late"}',
        b'{"act":"never","seconds":3}',
        b'{"act":"refuse","status":200}',
        b'{"act":"refuse","status":502}',
        b'{"act":"server_error","status":404}',
        b'{"act":"twice","times":0}',
        b'{"act":"twice","extra":0}',
    ],
)
def test_a_rule_without_sense_is_refused(body: bytes) -> None:
    """A rule that could never hold as meant is an error."""
    with pytest.raises(ValueError, match=r"."):
        parse_rule(body)


def test_a_rule_is_read_from_json() -> None:
    """What is sent to the server is the rule."""
    rule = Rule(act=Misbehaviour.LATE, seconds=2.5, purpose=Purpose.BRIEF, run_id=RUN, times=3)
    assert parse_rule(rule.model_dump_json().encode()) == rule


SPOILED = {
    Misbehaviour.WRONG_DIGEST: errors.ArtifactWrongDigest,
    Misbehaviour.WRONG_SCHEMA: errors.ArtifactWrongSchema,
    Misbehaviour.OTHER_RUN: errors.ArtifactWrongRun,
    Misbehaviour.UNKNOWN_EFFECT: errors.UnknownEffect,
    Misbehaviour.NAMES_DOCUMENT: errors.ArtifactNamesDocument,
    Misbehaviour.NOT_JSON: errors.ArtifactNotJson,
    Misbehaviour.HUGE: errors.ArtifactTooLarge,
}


@pytest.mark.parametrize("act", [act for act in Misbehaviour if act not in ANSWERING])
@pytest.mark.parametrize("purpose", Purpose)
def test_each_spoiled_artifact_has_the_fault_it_is_named_for(act: Misbehaviour, purpose: Purpose) -> None:
    """One fault and nothing else wrong, for every purpose; the others leave the artifact as it should be."""
    invocation = _invocation(purpose)
    effect = effect_for(purpose, pages=[PageText(1, "ORDER\nIt is ordered.")], context=invocation.context)
    data = artifact_for(invocation, effect=effect, act=act)
    delivery = invocation.result_delivery
    if act not in SPOILED:
        artifact = parse_artifact(data, expected_schema=delivery.schema_name, run_id=RUN, max_bytes=delivery.max_bytes)
        assert artifact.effects == (effect,)
        return
    with pytest.raises(SPOILED[act]):
        parse_artifact(data, expected_schema=delivery.schema_name, run_id=RUN, max_bytes=delivery.max_bytes)
    if act is Misbehaviour.HUGE:
        assert len(data) == delivery.max_bytes + 1
        assert json.loads(data)["run_id"] == str(RUN)
