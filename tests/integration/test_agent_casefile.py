"""The reference agent meets the case file as it is read, and judges it as the case file says."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.agent.rules.results import effect_for
from baton.casefile.exhibits import INDEXED, REGISTERED, Exhibit, make_case_file
from baton.casefile.matter import OUR_SIDE
from baton.contract.classification import DocumentType, LinkDocument, Outcome, SetType, Turn
from baton.contract.invocations import Candidate, InvocationContext
from baton.contract.pages import PageText
from baton.contract.purposes import Purpose
from baton.extraction.reading import FileReader

KINDS = {
    "Statement of Claim.pdf": DocumentType.COMPLAINT,
    "Shipment Records.pdf": DocumentType.REPORT,
    "Court Order.pdf": DocumentType.COURT_ORDER,
    "Notice of damage.eml": DocumentType.EMAIL,
    "Reply of carrier.msg": DocumentType.EMAIL,
    "Minutes of survey meeting.txt": DocumentType.MINUTES,
    "Letter to carrier.txt": DocumentType.LETTER,
    "Legal notice (Hindi).txt": DocumentType.NOTICE,
    "Port agent notice (Greek).pdf": DocumentType.NOTICE,
    "Advice of counsel.pdf": DocumentType.LETTER,
    "Litigation support agreement.pdf": DocumentType.CONTRACT,
}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Exhibit, list[PageText]]]]:
    """The readable exhibits and their text."""
    exhibits = make_case_file(tmp_path_factory.mktemp("casefile"), ocr=shutil.which("tesseract") is not None)
    with FileReader() as reader:
        yield {
            exhibit.name: (exhibit, _text(reader, exhibit.path, exhibit))
            for exhibit in exhibits
            if exhibit.expected_processing == INDEXED
        }


def _text(reader: FileReader, path: Path, exhibit: Exhibit) -> list[PageText]:
    reading = reader.read(path, content_type=exhibit.content_type, name=exhibit.name)
    return [PageText(page.number, page.text) for page in reading.pages]


def _turn(read: dict[str, tuple[Exhibit, list[PageText]]], name: str, *, our_side: tuple[str, ...] = OUR_SIDE) -> Turn:
    effect = effect_for(
        Purpose.CLASSIFY,
        pages=read[name][1],
        context=InvocationContext(
            file_name=name, our_side=our_side, candidates=tuple(Candidate(name=other) for other in read)
        ),
    )
    assert isinstance(effect, Turn)
    return effect


@pytest.mark.parametrize("our_side", [OUR_SIDE, ()])
def test_each_exhibit_is_judged_as_the_case_file_expects(
    read: dict[str, tuple[Exhibit, list[PageText]]], our_side: tuple[str, ...]
) -> None:
    """Registered or for a person to see: all as expected, also where nobody says whom the firm acts for."""
    judged = {name: _turn(read, name, our_side=our_side).verdict.outcome for name in read}
    expected = {
        name: Outcome.REGISTERED if exhibit.expected_registration == REGISTERED else Outcome.NEEDS_REVIEW
        for name, (exhibit, _pages) in read.items()
    }
    assert len(judged) >= 12
    assert judged == expected


def test_each_exhibit_is_known_for_what_it_is(read: dict[str, tuple[Exhibit, list[PageText]]]) -> None:
    """The type of every exhibit that was read is the right one."""
    found = {
        name: intent.document_type
        for name in read
        for intent in _turn(read, name).intents
        if isinstance(intent, SetType) and name in KINDS
    }
    assert found == {name: kind for name, kind in KINDS.items() if name in read}


def test_the_letter_is_linked_to_what_it_encloses(read: dict[str, tuple[Exhibit, list[PageText]]]) -> None:
    """The documents that it lists are the targets of its links."""
    links = {
        intent.target.value
        for intent in _turn(read, "Letter to carrier.txt").intents
        if isinstance(intent, LinkDocument)
    }
    contract = next(name for name in read if name.startswith("Carriage Agreement"))
    assert {contract, "Minutes of survey meeting.txt"} <= links
