"""Links lead to documents of the same firm and matter, or to nobody; an agent can name no other firm's document."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from baton.contract.classification import LinkBy, LinkDocument, LinkRelation, LinkTarget, SetName
from baton.db.access import Role
from baton.db.connect import as_member
from baton.db.states import Outcome
from support.matters import Matter, turn


def link(value: str, *, by: LinkBy = LinkBy.NAME, key: str = "link", confidence: float = 0.95) -> LinkDocument:
    """An intent to link to what the words mean."""
    return LinkDocument(
        key=key, confidence=confidence, target=LinkTarget(by=by, value=value), relation=LinkRelation.REFERS_TO
    )


def linked(matter: Matter, intent: LinkDocument) -> tuple[UUID | None, str, str | None]:
    """Apply the link from a new document: its target, state and reason."""
    document = matter.document("the linking document.pdf")
    assert matter.apply(matter.deliver(matter.dispatch(document), turn(intent))) is Outcome.DONE
    ((target, state, reason),) = matter.rows(
        "SELECT target_document_id, state, detail->>'reason' FROM record.assertion WHERE document_id = :id", id=document
    )
    return target, state, reason


@pytest.mark.parametrize(
    "words",
    [
        "Supply_Agreement-2021.pdf",
        "supply_agreement-2021.PDF",
        "Supply Agreement 2021",
        "  supply agreement (2021) ".strip(),
    ],
)
def test_a_link_by_name_finds_the_document(matter: Matter, words: str) -> None:
    """By the very name, or by it but for case, punctuation and extension."""
    target = matter.document("Supply_Agreement-2021.pdf")
    assert linked(matter, link(words)) == (target, "applied", None)


def test_a_link_by_reference_finds_the_number_within_a_name(matter: Matter) -> None:
    """Exhibit 12 is not exhibit 1, and not exhibit 123."""
    matter.document("Exhibit 1.pdf")
    matter.document("Exhibit 123.pdf")
    target = matter.document("Exhibit 12 - Notice of defects.pdf")
    assert linked(matter, link("Exhibit 12", by=LinkBy.REFERENCE)) == (target, "applied", None)


def test_a_link_finds_the_registered_name(matter: Matter) -> None:
    """People speak of documents by the name they got, not by the name of a file."""
    target = matter.registered(SetName(key="set_name", confidence=0.9, name="Order of 1 March"), name="scan0001.pdf")
    assert linked(matter, link("Order of 1 March")) == (target, "applied", None)


def test_words_that_could_mean_two_documents_mean_none(matter: Matter) -> None:
    """Ambiguity is left to a person: proposed, without a target."""
    matter.document("NDA.pdf")
    matter.document("nda.docx")
    assert linked(matter, link("nda")) == (None, "proposed", "target_ambiguous")


def test_the_very_name_goes_before_a_similar_one(matter: Matter) -> None:
    """Two files that differ in their extension only are told apart by it."""
    target = matter.document("NDA.pdf")
    matter.document("NDA.docx")
    assert linked(matter, link("NDA.pdf")) == (target, "applied", None)


def test_words_that_mean_no_document_are_proposed(matter: Matter) -> None:
    """The mention is kept for the day the document is uploaded."""
    assert linked(matter, link("Missing annex")) == (None, "proposed", "target_unknown")


def test_a_document_does_not_link_to_itself(matter: Matter) -> None:
    """Its own name in its own text is no link."""
    assert linked(matter, link("the linking document.pdf")) == (None, "proposed", "target_unknown")


def test_another_matter_of_the_firm_is_not_looked_at(matter: Matter) -> None:
    """Links stay within the matter."""
    matter.sibling().document("Share purchase agreement.pdf")
    assert linked(matter, link("Share purchase agreement.pdf")) == (None, "proposed", "target_unknown")


def test_a_deleted_document_is_not_linked_to(matter: Matter) -> None:
    """What is deleted cannot be found."""
    gone = matter.document("Gone.pdf")
    matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=gone)
    assert linked(matter, link("Gone.pdf")) == (None, "proposed", "target_unknown")


def test_another_firms_document_is_never_linked_to(matter: Matter) -> None:
    """Though the other firm had put its file into a matter of the same id: it is as if it were not there."""
    stranger = Matter(matter.database, firm=matter.id, id=matter.id)
    stranger.document("Secret memo.pdf")
    assert linked(matter, link("Secret memo.pdf")) == (None, "proposed", "target_unknown")
    assert matter.count("record.assertion", "target_document_id IS NOT NULL") == 0


def test_the_database_refuses_a_link_into_another_firm(matter: Matter) -> None:
    """Behind the look-up stands the key: a target of another firm's cannot be written, by whomever."""
    document = matter.registered(link("Missing annex"))
    foreign = Matter(matter.database, firm=matter.id, id=matter.id).document("Secret memo.pdf")
    statement = (
        "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence,"
        " target_document_id) SELECT firm_id, document_id, extraction_run_id, run_id, 'link', 'x', 'applied', 1, :target"
        " FROM record.assertion WHERE document_id = :id"
    )
    values: dict[str, Any] = {"target": foreign, "id": document}
    with (
        matter.registrar() as connection,
        pytest.raises(DBAPIError, match="foreign key"),
        connection.begin_nested(),
        as_member(connection, matter.firm),
    ):
        connection.execute(text(statement), values)


def test_the_record_is_written_as_the_firm_and_by_nobody_else(matter: Matter) -> None:
    """The registrar itself may not write an assertion, nor may a member write one of another firm's."""
    document = matter.registered(link("Missing annex"))
    statement = text(
        "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence)"
        " SELECT firm_id, id, extraction_run_id, :run, 'tag', 'x', 'applied', 1 FROM documents WHERE id = :id"
    )
    run = matter.rows("SELECT run_id FROM agents.agent_run")[0][0]
    with (
        matter.database.engine(Role.REGISTRAR).connect() as connection,
        pytest.raises(DBAPIError, match="permission denied"),
    ):
        connection.execute(statement, {"id": document, "run": run})
    with matter.registrar() as connection, as_member(connection, matter.id):
        assert connection.execute(statement, {"id": document, "run": run}).rowcount == 0
