"""The hand-over of a finished upload: all of it or nothing, once, and only of what is there."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError
from uuid_utils.compat import uuid7

from baton.aws.errors import FaultKind, StoreUnavailable
from baton.db.access import Role
from baton.db.connect import set_firm
from baton.db.states import ProcessingStatus
from baton.documents.errors import DocumentDeleted, ObjectNotUploaded, UnknownDocument
from baton.documents.upload import create_document, finalize_upload
from support.transactions import Second, end_backend

NOTHING = (0, 0, 0, 0)
ONCE = (1, 1, 1, 1)


def test_two_begin_one_upload_at_once(doors: Any) -> None:
    """Both get the one row, however the two inserts fall: also when each has looked before either has written.

    Which of a table's unique indexes catches the second is chance; thus many rounds, each let go at one moment.
    """
    rounds, both = [uuid7() for _ in range(300)], threading.Barrier(2, timeout=20)

    def begin_all() -> list[Any]:
        got = []
        with doors.engine.connect() as connection:
            for identity in rounds:
                both.wait()
                with connection.begin():
                    set_firm(connection, doors.id)
                    got.append(
                        create_document(
                            connection,
                            firm_id=doors.id,
                            matter_id=doors.matter,
                            name="letter.txt",
                            content_type="text/plain",
                            document_id=identity,
                        )
                    )
        return got

    with ThreadPoolExecutor(2) as pool:
        first, second = (each.result() for each in [pool.submit(begin_all) for _ in range(2)])
    assert first == second
    assert [each.id for each in first] == rounds


def test_everything_is_written_together(doors: Any) -> None:
    """Status, ledger row, ticket with its mark, audit event, and the size as the store knows it."""
    document = doors.uploaded()
    assert document.processing_status is ProcessingStatus.UPLOADED
    assert document.size_bytes == 4
    assert doors.written() == ONCE
    (ticket,) = doors.rows("SELECT * FROM ops.document_ingest_outbox")
    assert (ticket.id, ticket.document_id, ticket.object_key) == (
        document.ingest_ticket_id,
        document.id,
        document.object_key,
    )
    (audit,) = doors.rows("SELECT event, actor, detail FROM ops.audit_event")
    assert tuple(audit) == ("document.uploaded", "counsel", {"size_bytes": 4})


def test_finalizing_again_changes_nothing(doors: Any) -> None:
    """The second call returns the row, also when the object has gone since."""
    document = doors.uploaded()
    doors.store.delete(document.object_key)
    assert doors.finalize(document.id) == document
    assert doors.written() == ONCE


def test_finalizing_twice_at_once_is_once(doors: Any) -> None:
    """The second waits for the first one's lock, and then finds everything done."""
    document = doors.begin()

    def finalize(connection: Connection) -> Any:
        set_firm(connection, doors.id)
        return finalize_upload(connection, document_id=document.id, store=doors.store, actor="second")

    second = Second(doors.database, finalize, role=Role.MEMBER_APP)
    with doors.transaction() as connection:
        first = finalize_upload(connection, document_id=document.id, store=doors.store, actor="first")
        second.start()
        second.wait_until_blocked_by(connection)
    assert second.result() == first
    assert doors.written() == ONCE


def _unknown(doors: Any) -> Any:
    return uuid4()


def _missing(doors: Any) -> Any:
    return doors.begin(put=False).id


def _another_firms(doors: Any) -> Any:
    return doors.other().begin().id


def _leads_to_another_firms_object(doors: Any) -> Any:
    document, theirs = doors.begin(), doors.other().begin()
    doors.prepare("UPDATE documents SET object_key = :key WHERE id = :id", key=theirs.object_key, id=document.id)
    return document.id


def _deleted(doors: Any) -> Any:
    document = doors.begin()
    doors.prepare("UPDATE documents SET deleted_at = app.clock()")
    return document.id


@pytest.mark.parametrize(
    ("prepared", "error"),
    [
        (_unknown, UnknownDocument),
        (_another_firms, UnknownDocument),
        (_missing, ObjectNotUploaded),
        (_leads_to_another_firms_object, ObjectNotUploaded),
        (_deleted, DocumentDeleted),
    ],
)
def test_what_cannot_be_finalized_is_refused(
    doors: Any, prepared: Callable[[Any], Any], error: type[Exception]
) -> None:
    """A typed error for each, and nothing written."""
    document = prepared(doors)
    with pytest.raises(error):
        doors.finalize(document)
    assert doors.written() == NOTHING


def test_another_firms_document_looks_like_none(doors: Any) -> None:
    """The words are the same, so that nobody can find out what another firm has."""
    theirs, none = _another_firms(doors), uuid4()
    words = []
    for document in (theirs, none):
        with pytest.raises(UnknownDocument) as refused:
            doors.finalize(document)
        words.append(str(refused.value).replace(str(document), "X"))
    assert words[0] == words[1]


def test_a_store_that_fails_is_not_taken_for_absence(doors: Any) -> None:
    """The store's error comes through, nothing is written, and later it works."""
    document = doors.begin()

    class Away:
        def head(self, key: str) -> Any:
            raise StoreUnavailable("away", kind=FaultKind.TIMEOUT)

    with pytest.raises(StoreUnavailable):
        doors.finalize(document.id, store=Away())
    assert doors.written() == NOTHING
    doors.finalize(document.id)
    assert doors.written() == ONCE


def test_the_store_is_asked_while_nothing_is_locked(doors: Any) -> None:
    """Another transaction can lock the document while the object is looked at."""
    document = doors.begin()

    class Watching:
        def head(self, key: str) -> Any:
            with doors.database.preparer.begin() as connection:
                connection.execute(text("SELECT 1 FROM documents FOR UPDATE NOWAIT")).one()
            return doors.store.head(key)

    doors.finalize(document.id, store=Watching())
    assert doors.written() == ONCE


def test_a_crash_after_any_statement_leaves_nothing(doors: Any) -> None:
    """The connection dies after the first, the second, … statement: pending still, and never a status without a ticket."""
    document = doors.begin()
    survived = False
    for fatal in range(1, 30):
        try:
            _finalize_dying(doors, document.id, after=fatal)
        except DBAPIError:
            assert doors.written() == NOTHING, f"something was left by a crash after statement {fatal}"
        else:
            survived = True
            break
    assert survived
    assert fatal > 5, "the crashes never reached the writes"
    assert doors.written() == ONCE


def _finalize_dying(doors: Any, document: Any, *, after: int) -> None:
    statements = 0

    def die(connection: Any, *_: Any) -> None:
        nonlocal statements
        statements += 1
        if statements == after:
            end_backend(doors.database, connection)

    event.listen(doors.engine, "after_cursor_execute", die)
    try:
        doors.finalize(document)
    finally:
        event.remove(doors.engine, "after_cursor_execute", die)


def test_beginning_the_same_upload_again(doors: Any) -> None:
    """With its id the row comes back as it stands; with another firm's id there is no such document."""
    document = doors.uploaded()
    again = {"matter_id": uuid4(), "name": "other", "content_type": "text/plain", "document_id": document.id}
    with doors.transaction() as connection:
        assert create_document(connection, firm_id=doors.id, **again) == document
    other = doors.other()
    with pytest.raises(UnknownDocument), other.transaction() as connection:
        create_document(connection, firm_id=other.id, **again)
    assert len(doors.rows("SELECT 1 FROM documents")) == 1
