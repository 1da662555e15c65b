"""A firm that uploads, and workers that extract what was uploaded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, select, text

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.db.access import Role
from baton.db.connect import database_engine, firm_transaction
from baton.db.rows import Document, read_document
from baton.db.states import EventType
from baton.db.tables import outbox
from baton.documents import doors, upload
from baton.documents.doors import re_extract
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Page, Reading, ReasonCode, Source, Verdict, verdict_of
from baton.extraction.reading import FileReader
from baton.extraction.scanner import NoScanner
from baton.extraction.scratch import Scratch
from baton.extraction.worker import ExtractionWorker
from baton.outbox.tickets import TICKET_COLUMNS, Ticket, as_ticket
from baton.settings.loading import load
from baton.settings.stores import Bucket
from support.aws_accounts import AwsAccount
from support.databases import Database


@dataclass
class StubReader:
    """Reads nothing, and says what the test wants; the real one has tests of its own."""

    text: str = "Statement of claim concerning the harbour."
    reason: ReasonCode | None = None
    pages: tuple[Page, ...] | None = None
    before: Callable[[], None] = lambda: None
    reads: int = 0

    def read(self, path: Path | str, *, content_type: str, name: str, limits: Limits | None = None) -> Reading:
        """The outcome that was arranged."""
        self.reads += 1
        assert Path(path).stat().st_size > 0
        self.before()
        verdict = verdict_of(self.reason)
        pages = self.pages or (Page(1, self.text, Source.NATIVE, None),)
        return Reading(
            verdict=verdict,
            kind=Kind.TEXT,
            reason_code=self.reason,
            pages=() if verdict is Verdict.FAILED else pages,
        )


class Firm:
    """One firm with its uploads, on one database and one bucket."""

    def __init__(self, database: Database, store: Store, scratch: Scratch, engine: Engine, firm: UUID) -> None:
        self.database = database
        self.store = store
        self.scratch = scratch
        self.engine = engine
        self.id = firm
        self.matter = uuid4()

    def other(self) -> "Firm":
        """Another firm on the same database."""
        return Firm(self.database, self.store, self.scratch, self.engine, uuid4())

    def upload(self, body: bytes = b"text", *, name: str = "letter.txt", put: bool = True) -> Ticket:
        """A finished upload; returns its ingest ticket."""
        with firm_transaction(self.database.engine(Role.MEMBER_APP), self.id) as connection:
            document = upload.create_document(
                connection, firm_id=self.id, matter_id=self.matter, name=name, content_type="text/plain"
            )
        self.store.put(document.object_key, body, content_type="text/plain")
        with firm_transaction(self.database.engine(Role.MEMBER_APP), self.id) as connection:
            upload.finalize_upload(connection, document_id=document.id, store=self.store, actor="counsel")
        if not put:
            self.store.delete(document.object_key)
        return self.ticket(document.id)

    def ticket(self, document: UUID, event: EventType = EventType.INGEST_REQUESTED) -> Ticket:
        """The newest ticket of an event type."""
        return self.tickets(document, event)[-1]

    def tickets(self, document: UUID, event: EventType) -> list[Ticket]:
        """Every ticket of an event type."""
        statement = (
            select(*TICKET_COLUMNS)
            .where(outbox.c.document_id == document, outbox.c.event_type == event.value)
            .order_by(outbox.c.id)
        )
        with self.database.preparer.connect() as connection:
            return [as_ticket(row) for row in connection.execute(statement)]

    def document(self, ticket: Ticket) -> Document:
        """The document of a ticket as it is."""
        with self.database.preparer.connect() as connection:
            found = read_document(connection, ticket.document_id)
        assert found is not None
        return found

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Look, as the preparer."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text(statement), values))

    def prepare(self, statement: str, **values: Any) -> None:
        """Change something, as the preparer."""
        with self.database.preparer.begin() as connection:
            connection.execute(text(statement), values)

    def passes(self, ticket: Ticket) -> set[UUID]:
        """The passes that have text."""
        statement = "SELECT DISTINCT extraction_run_id FROM document_page WHERE document_id = :id"
        return {row[0] for row in self.rows(statement, id=ticket.document_id)}

    def read_again(self, ticket: Ticket) -> Ticket:
        """Re-extract; returns the new epoch's ticket."""
        with firm_transaction(self.database.engine(Role.MEMBER_APP), self.id) as connection:
            re_extract(connection, document_id=ticket.document_id, actor="counsel")
        return self.ticket(ticket.document_id)

    def delete(self, ticket: Ticket) -> None:
        """Delete the ticket's document."""
        with firm_transaction(self.database.engine(Role.MEMBER_APP), self.id) as connection:
            doors.delete(connection, document_id=ticket.document_id, actor="counsel")

    def search(self, words: str, *, most: int = 50) -> list[Any]:
        """What a member of the firm finds."""
        values = {"words": words, "most": most}
        with firm_transaction(self.database.engine(Role.MEMBER_APP), self.id) as connection:
            return list(connection.execute(text("SELECT * FROM app.search(:words, :most)"), values))

    def worker(self, reader: Any = None, **changes: Any) -> ExtractionWorker:
        """A worker of the extractor's role, with a reader that reads nothing unless another is given."""
        options: dict[str, Any] = {
            "engine": self.engine,
            "store": self.store,
            "scanner": NoScanner(),
            "scratch": self.scratch,
            "limits": Limits(),
            "max_bytes": 10_000_000,
        }
        return ExtractionWorker(reader=reader or StubReader(), **options | changes)


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients in this test's account."""
    made = Clients(load().aws)
    yield made
    made.close()


@pytest.fixture
def firm(database: Database, clients: Clients, tmp_path: Path) -> Iterator[Firm]:
    """A firm."""
    store = Store(clients, Bucket(name=f"bucket-{uuid4().hex}"))  # bucket names are everybody's
    store.ensure()
    scratch = Scratch(tmp_path)
    engine = database_engine(database.url(Role.EXTRACTOR), application="test-extractor", pool_size=12)
    yield Firm(database, store, scratch, engine, uuid4())
    assert list(scratch.folder.iterdir()) == [], "a temporary file was left behind"
    scratch.close()
    engine.dispose()


@pytest.fixture
def stub() -> StubReader:
    """A reader."""
    return StubReader()


@pytest.fixture(scope="session")
def reader() -> Iterator[FileReader]:
    """The real reader."""
    with FileReader() as made:
        yield made
