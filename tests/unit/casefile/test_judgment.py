"""What the reference agent makes of the case file, read for real."""

from pathlib import Path

import pytest

from baton.agent.rules.results import effect_for
from baton.casefile.exhibits import INDEXED, Exhibit, make_case_file
from baton.casefile.matter import OUR_SIDE
from baton.contract.classification import LinkDocument, SetType, Turn
from baton.contract.invocations import Candidate, InvocationContext
from baton.contract.pages import PageText
from baton.contract.purposes import Purpose
from baton.extraction.reading import FileReader

OUTCOMES = {"registered": "registered", "needs_review": "registration_needs_review"}


def judged(reader: FileReader, exhibit: Exhibit, exhibits: tuple[Exhibit, ...]) -> Turn:
    """The agent's turn on one exhibit."""
    reading = reader.read(exhibit.path, content_type=exhibit.content_type, name=exhibit.name)
    pages = [PageText(page.number, page.text) for page in reading.pages]
    others = tuple(Candidate(name=one.name) for one in exhibits if one is not exhibit)
    context = InvocationContext(file_name=exhibit.name, our_side=OUR_SIDE, candidates=others)
    turn = effect_for(Purpose.CLASSIFY, pages=pages, context=context)
    assert isinstance(turn, Turn)
    return turn


@pytest.mark.needs("tesseract")
def test_every_exhibit_is_registered_as_expected(tmp_path: Path) -> None:
    """Privilege and a conflict of sides go to a person, the rest into the Record, links and types included."""
    exhibits = make_case_file(tmp_path, seed=7)
    with FileReader() as reader:
        turns = {one.name: judged(reader, one, exhibits) for one in exhibits if one.expected_processing == INDEXED}
    outcomes = {name: OUTCOMES[turn.verdict.outcome.value] for name, turn in turns.items()}
    assert outcomes == {e.name: e.expected_registration for e in exhibits if e.expected_processing == INDEXED}
    types = {
        name: i.document_type.value for name, turn in turns.items() for i in turn.intents if isinstance(i, SetType)
    }
    assert types["Statement of Claim.pdf"] == "complaint"
    assert types["Court Order.pdf"] == "court_order"
    assert types["Legal notice (Hindi).txt"] == "notice"
    assert "other" not in types.values()
    links = {i.target.value for i in turns["Letter to carrier.txt"].intents if isinstance(i, LinkDocument)}
    assert "Minutes of survey meeting.txt" in links
