"""docs/security.md says what is granted and what is asked."""

from pathlib import Path

import pytest

from baton.aws import reference as aws_reference
from baton.aws.permissions import SETUP, WORK, Action, Place, Workload
from baton.db import reference as db_reference
from baton.settings.reference import rewritten

PAGE = Path(__file__).parents[3] / "docs" / "security.md"


@pytest.mark.check
def test_the_page_holds_the_generated_tables() -> None:
    """Both blocks are what the modules write."""
    text = PAGE.read_text(encoding="utf-8")
    assert rewritten(text, block=db_reference.BLOCK, body=db_reference.matrix()) == text
    assert rewritten(text, block=aws_reference.BLOCK, body=aws_reference.matrix()) == text


def test_a_page_without_the_block_is_refused() -> None:
    """Nothing is written into a page that has no place for it."""
    with pytest.raises(ValueError, match="no block tables"):
        rewritten("# A page\n", block="tables", body="x")


def test_only_relays_may_send() -> None:
    """The documented matrix itself: no other workload, day by day or when it creates what is missing."""
    senders = {
        workload
        for matrix in (WORK, SETUP)
        for workload, places in matrix.items()
        for actions in places.values()
        if Action.SEND in actions
    }
    assert senders == {Workload.RELAY_INGEST, Workload.RELAY_REGISTRAR}


def test_only_platform_and_extractor_may_touch_uploads() -> None:
    """Neither registrar nor settler can fetch a document's bytes."""
    assert {each for each in Workload if Place.DOCUMENTS in WORK[each]} == {Workload.PLATFORM, Workload.EXTRACTOR}


def test_the_agent_has_no_credentials() -> None:
    """It works by signed addresses."""
    assert WORK[Workload.AGENT] == {}
    assert SETUP[Workload.AGENT] == {}
