"""The summary, for machines and for people."""

import io
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from rich.console import Console

from baton.casefile.exhibits import Exhibit
from baton.db.states import ProcessingStatus as P
from baton.db.states import RegistrationStatus as R
from baton.demo.arrivals import Filed
from baton.demo.blows import Blow
from baton.demo.once import Count
from baton.demo.sights import Sight
from baton.demo.telling import tell
from baton.demo.verdicts import Summary, as_json, summarise

_LETTER, _LOCKED = UUID(int=1), UUID(int=2)
_REGISTERED = Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=3, runs=4, applied=4)
_FAILED = Sight(processing=P.FAILED, message="The file is protected by a password.")


def _filed(identity: UUID, name: str, processing: P, registration: R, *, batch: int = 1) -> Filed:
    exhibit = Exhibit(
        name=name,
        path=Path(name),
        kind="PDF",
        content_type="application/pdf",
        expected_processing=processing.value,
        expected_registration=registration.value,
        why="an example",
    )
    return Filed(id=identity, exhibit=exhibit, batch=batch)


FILED = (
    _filed(_LETTER, "Letter.pdf", P.INDEXED, R.REGISTERED),
    _filed(_LOCKED, "Locked.pdf", P.FAILED, R.NOT_REQUESTED, batch=2),
)


def summary(**changes: Sight) -> Summary:
    """Two documents, both where they must be unless a change says otherwise."""
    seen = {_LETTER: changes.get("letter", _REGISTERED), _LOCKED: changes.get("locked", _FAILED)}
    return summarise(
        FILED,
        seen,
        counts=(Count(what="tickets, by key", rows=9, too_many=0),),
        blows=(Blow(name="extractor", doing="a document was being read", pid=7, at_work=True),),
        starts={"extractor": 2},
        seconds=41.26,
        recogniser=True,
        finished=True,
    )


def _told(given: Summary) -> str:
    out = io.StringIO()
    tell(given, Console(file=out, width=60))
    return out.getvalue()


def test_machines_get_counts_and_every_document() -> None:
    """Counts for each status; for each document name, statuses, expectation, message, runs and effects."""
    given = as_json(summary())
    assert given["ok"] is True
    assert given["statuses"] == {
        "processing": {"indexed": 1, "failed": 1},
        "registration": {"registered": 1, "not_requested": 1},
    }
    letter, locked = given["documents"]
    assert letter["name"] == "Letter.pdf"
    assert (letter["runs"], letter["applied_effects"], letter["message"]) == (4, 4, None)
    assert locked["message"] == "The file is protected by a password."
    assert locked["expected"]["processing_status"] == "failed"
    assert given["killed"] == [{"process": "extractor", "while": "a document was being read", "seen_at_work": True}]


@pytest.mark.parametrize(
    "wrong",
    [
        summary(letter=replace(_REGISTERED, registration=R.REGISTRATION_FAILED)),
        summary(locked=replace(_FAILED, open_tickets=1)),
        summary(letter=replace(_REGISTERED, parts_ready=2, parts_failed=1)),
        replace(summary(), counts=(Count(what="agent runs", rows=5, too_many=1),)),
        replace(summary(), finished=False),
        summarise(FILED, {}, counts=(), blows=(), starts={}, seconds=1.0, recogniser=True, finished=True),
    ],
    ids=["elsewhere", "open ticket", "failed part", "twice", "time ran out", "never seen"],
)
def test_one_thing_wrong_makes_everything_wrong(wrong: Summary) -> None:
    """One document elsewhere, one effect too many, or too little time: the demo did not succeed, and says what."""
    assert not wrong.right
    assert as_json(wrong)["ok"] is False
    assert "Not as it must be" in _told(wrong)


def test_people_are_told_each_reason_on_a_line_of_its_own() -> None:
    """Whatever the width, a line is a line: it can be searched for."""
    lines = _told(summary()).splitlines()
    assert [line for line in lines if line.startswith("ok   Letter.pdf")]
    assert [line for line in lines if line.strip() == "The file is protected by a password."]
    assert lines[-1].startswith("2 documents, each at the verdict")


def test_without_a_recogniser_people_are_told() -> None:
    """Scans that end with a person have a reason that the demo gives."""
    assert "tesseract is not installed" in _told(replace(summary(), recogniser=False))
    assert "tesseract" not in _told(summary())
