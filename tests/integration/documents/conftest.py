"""The doors of one firm, on a database and a bucket of the test's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, text
from uuid_utils.compat import uuid7

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.db.rows import Document
from baton.documents import upload
from baton.settings.loading import load
from baton.settings.stores import Bucket
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter

_WRITTEN = (
    "SELECT (SELECT count(*) FROM ops.document_ingest_outbox) AS tickets,"
    " (SELECT count(*) FROM ops.document_status_transition) AS transitions,"
    " (SELECT count(*) FROM ops.audit_event) AS events,"
    " (SELECT count(*) FROM documents WHERE processing_status <> 'pending') AS begun"
)


@dataclass
class Doors:
    """One firm, as the platform's code works for it."""

    database: Database
    store: Store
    id: UUID = field(default_factory=uuid7)
    matter: UUID = field(default_factory=uuid4)

    @property
    def engine(self) -> Engine:
        """Of the platform's own role."""
        return self.database.engine(Role.MEMBER_APP)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction of this firm."""
        with firm_transaction(self.engine, self.id) as connection:
            yield connection

    def other(self) -> "Doors":
        """Another firm on the same parts."""
        return Doors(self.database, self.store)

    def prepared(self) -> Matter:
        """A matter of this firm, whose documents the test takes as far as it likes."""
        return Matter(self.database, self.id, self.matter)

    def begin(self, name: str = "letter.txt", *, put: bool = True) -> Document:
        """An upload that is not finished."""
        with self.transaction() as connection:
            document = upload.create_document(
                connection, firm_id=self.id, matter_id=self.matter, name=name, content_type="text/plain"
            )
        if put:
            self.store.put(document.object_key, b"text", content_type="text/plain")
        return document

    def finalize(self, document: UUID, *, store: Any = None) -> Document:
        """Finish it in a transaction of its own."""
        with self.transaction() as connection:
            return upload.finalize_upload(connection, document_id=document, store=store or self.store, actor="counsel")

    def uploaded(self) -> Document:
        """A finished upload."""
        return self.finalize(self.begin().id)

    def written(self) -> tuple[int, int, int, int]:
        """Tickets, transitions, audit events, and documents that are past pending: of every firm."""
        (row,) = self.rows(_WRITTEN)
        return tuple(row)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Look, as the preparer."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text(statement), values))

    def prepare(self, statement: str, **values: Any) -> None:
        """Change something, as the preparer."""
        with self.database.preparer.begin() as connection:
            connection.execute(text(statement), values)


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients in this test's account."""
    made = Clients(load().aws)
    yield made
    made.close()


@pytest.fixture
def doors(database: Database, clients: Clients) -> Doors:
    """A firm with a bucket."""
    store = Store(clients, Bucket(name=f"bucket-{uuid4().hex}"))  # bucket names are everybody's
    store.ensure()
    return Doors(database, store)


@pytest.fixture
def dry(database: Database) -> Any:
    """A firm whose test needs no bucket."""
    return Doors(database, None)  # type: ignore[arg-type]
