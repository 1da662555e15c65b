"""The page for builders of agents says what the code does."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from baton.agent.misbehaviour import Misbehaviour
from baton.contract import classification, errors
from baton.contract.artifacts import parse_artifact
from baton.contract.invocations import parse_accepted, parse_invocation
from baton.contract.pages import PAGES_CONTENT_TYPE, parse_pages
from baton.contract.purposes import SCHEMA_OF, Purpose

PAGE = (Path(__file__).parents[3] / "docs" / "agent-contract.md").read_text(encoding="utf-8")
RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def _example(name: str) -> bytes:
    found = re.findall(rf"^```json {name}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, name
    return str(found[0]).encode()


def test_the_examples_of_the_conversation_are_taken_as_they_stand() -> None:
    """Invocation, answer and pages can be copied from the page."""
    # the page shortens its signatures
    assert parse_invocation(_example("invocation").replace("…".encode(), b"x")).run_id == RUN
    assert parse_accepted(_example("accepted"), run_id=RUN).run_id == RUN
    assert len(parse_pages(_example("pages"), content_type=PAGES_CONTENT_TYPE)) == 2


@pytest.mark.parametrize("purpose", Purpose)
def test_the_example_of_each_artifact_is_taken_with_its_digest(purpose: Purpose) -> None:
    """An agent's digest can be tried against the page's."""
    data = _example(f"artifact {purpose}")
    assert parse_artifact(data, expected_schema=SCHEMA_OF[purpose], run_id=RUN).effects


def test_the_example_of_a_classification_shows_every_tool() -> None:
    """No tool is left for the reader to guess."""
    shown = {intent["tool"] for intent in json.loads(_example("artifact classify"))["effects"][0]["intents"]}
    tools = {
        model.model_fields["tool"].default
        for model in (
            classification.SetName,
            classification.SetType,
            classification.AddTag,
            classification.AddParty,
            classification.AddDate,
            classification.LinkDocument,
        )
    }
    assert shown == tools
    assert all(f"| `{tool}` |" in PAGE for tool in tools)


def _leaves(root: type[errors.ArtifactError]) -> list[type[errors.ArtifactError]]:
    below = root.__subclasses__()
    return [leaf for child in below for leaf in _leaves(child)] if below else [root]


def test_every_word_of_the_contract_is_on_the_page() -> None:
    """Each code, each value of each closed set, each way to misbehave."""
    sets = (
        classification.DocumentType,
        classification.PartyRole,
        classification.DateMeaning,
        classification.LinkBy,
        classification.LinkRelation,
        classification.ConcernKind,
        classification.Outcome,
        Misbehaviour,
        Purpose,
    )
    words = [str(member) for closed in sets for member in closed]
    words += [leaf.code for leaf in _leaves(errors.ArtifactError)]
    words += list(SCHEMA_OF.values())
    assert [word for word in words if f"`{word}`" not in PAGE] == []
