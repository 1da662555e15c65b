"""What a person decides at the command line, with real parts behind it."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from baton.db.states import Part
from baton.settings.agents import Runs
from support.command_line import CommandLine
from support.matters import Matter


@pytest.fixture
def matter(desk: CommandLine) -> Matter:
    """A matter of the same firm, whose documents are already read."""
    return Matter(desk.database, desk.firm, uuid7())


def _status(desk: CommandLine, document: UUID) -> tuple[str, str, int]:
    (row,) = desk.rows(
        "SELECT processing_status, registration_status, extraction_epoch FROM documents WHERE id = :id", id=document
    )
    return row.processing_status, row.registration_status, row.extraction_epoch


def test_reextract_begins_a_new_epoch(desk: CommandLine, matter: Matter) -> None:
    """Both axes begin again, and each document is told."""
    document = matter.registered()
    ran = desk.run("reextract", document, "--json")
    assert ran.code == 0, ran.err
    (told,) = ran.json["documents"]
    assert (told["ok"], told["now"]["processing_status"]) == (True, "uploaded")
    assert _status(desk, document) == ("uploaded", "not_requested", 2)


def test_one_that_is_refused_does_not_stop_the_others(desk: CommandLine, matter: Matter) -> None:
    """An unknown document before a good one: the good one is done, the exit code says that one was not."""
    document, unknown = matter.registered(), uuid4()
    ran = desk.run("reextract", unknown, document)
    assert ran.code == 1
    assert f"{unknown}: there is no document" in ran.err
    assert f"to be read again {document}" in ran.out
    assert _status(desk, document)[2] == 2


def test_retry_is_for_what_failed(desk: CommandLine, matter: Matter) -> None:
    """A failed registration is queued again; a registered one is refused in one line."""
    document = matter.document()
    matter.apply(matter.settle(matter.dispatch(document), "expired", message="Nobody answered."))
    assert _status(desk, document)[1] == "registration_failed"
    assert desk.run("retry", document).code == 0
    assert _status(desk, document)[1] == "queued"
    ran = desk.run("retry", matter.registered())
    assert ran.code == 1
    assert "nothing to retry" in ran.err


def test_resegment_once_per_request(desk: CommandLine, matter: Matter) -> None:
    """The same request twice is one ticket; without an id each call is a request of its own."""
    document, request = matter.registered(), uuid4()
    _finish_sections(matter, document)
    for _ in range(2):
        ran = desk.run("resegment", document, "--request-id", request)
        assert ran.code == 0, ran.err
    assert (
        len(desk.rows("SELECT 1 FROM ops.document_ingest_outbox WHERE event_type = 'document.resegment.requested'"))
        == 1
    )
    assert desk.run("resegment", document, uuid4(), "--request-id", request).code == 2
    ran = desk.run("resegment", document)
    assert ran.code == 1
    assert "being made just now" in ran.err


def test_delete_asks_and_restore_brings_back(desk: CommandLine, letter: Path, matter: Matter) -> None:
    """Without an answer nothing is deleted; with --yes it is, and restoring asks for the reading anew."""
    (document,) = desk.upload(letter)
    assert desk.run("delete", document).code == 130
    assert desk.rows("SELECT 1 FROM documents WHERE deleted_at IS NULL")
    assert desk.run("delete", document, "--yes").code == 0
    assert desk.run("status", "--json").json["total"] == 0
    assert "deleted" in desk.run("show", document).out
    assert desk.run("reextract", document).code == 1
    assert desk.run("restore", document).code == 0
    assert _status(desk, document) == ("uploaded", "not_requested", 1)
    events = [row.event for row in desk.rows("SELECT event FROM ops.audit_event ORDER BY id")]
    assert events == ["document.uploaded", "document.deleted", "document.restored"]
    open_tickets = desk.rows("SELECT generation FROM ops.document_ingest_outbox WHERE handled_at IS NULL")
    assert [row.generation for row in open_tickets] == [2]


def test_search_finds_pages_with_their_words(desk: CommandLine, matter: Matter) -> None:
    """A phrase is found with its page and snippet, in its matter only, and never by another firm."""
    document = matter.registered()
    desk.prepare(
        "INSERT INTO document_page (firm_id, document_id, extraction_run_id, page_number, text, source)"
        " SELECT firm_id, id, extraction_run_id, 3, 'the notice of termination came late', 'native' FROM documents"
        " WHERE id = :id",
        id=document,
    )
    desk.prepare(
        "INSERT INTO document_search SELECT firm_id, document_id, page_number, to_tsvector('simple', text)"
        " FROM document_page WHERE document_id = :id",
        id=document,
    )
    (hit,) = desk.run("search", '"notice of termination"', "--json").json["pages"]
    assert (hit["document"], hit["page"]) == (str(document), 3)
    assert "notice of termination" in hit["snippet"]
    assert "notice of termination came late" in desk.run("search", "late", "notice").out
    assert desk.run("search", "notice", "--matter", matter.id, "--json").json["pages"]
    assert desk.run("search", "notice", "--matter", "another", "--json").json["pages"] == []
    assert desk.run("search", "notice", "--firm", uuid4(), "--json").json["pages"] == []
    assert desk.run("search", "notice", "-late", "--json").code == 2, "a word that looks like an option needs --"
    assert desk.run("search", "--json", "--", "notice", "-late").json["pages"] == []
    assert desk.run("search", *["notice"] * 142, "--json").json["pages"]
    told = desk.run("search", *["notice"] * 20_000)
    assert (told.code, "at most 1,000 characters" in told.err) == (2, True), "more than the server's stack can hold"


def test_show_has_the_record_and_the_understanding(desk: CommandLine, matter: Matter) -> None:
    """Parts with what they say, runs and tickets on request, text page by page."""
    document = matter.registered()
    _finish_sections(matter, document)
    desk.prepare(
        "INSERT INTO document_page (firm_id, document_id, extraction_run_id, page_number, text, source)"
        " SELECT firm_id, id, extraction_run_id, 1, 'Dear Ms Roe,', 'native' FROM documents WHERE id = :id",
        id=document,
    )
    told = desk.run("show", document, "--json").json
    assert {each["part"]: each["state"] for each in told["parts"]} == {
        "card": "failed",
        "sections": "failed",
        "brief": "requested",
    }
    assert [each["state"] for each in told["runs"]] == ["delivered", "rejected", "rejected"]
    people = desk.run("show", document, "--all").out
    for words in ("registered since", "No card.", "document.artifact.delivered", "not_requested → queued"):
        assert words in people
    assert "Dear Ms Roe," in desk.run("show", document, "--text").out


def _finish_sections(matter: Matter, document: UUID) -> None:
    """Card and sections fail for good, so that the sections may be asked for again."""
    for part, message in ((Part.CARD, "No card."), (Part.SECTIONS, "No sections.")):
        ticket = matter.settle(matter.dispatch_part(document, part), "rejected", message=message)
        matter.apply(ticket, limits=Runs(max_attempts=1))
