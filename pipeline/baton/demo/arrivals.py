"""Documents come in through the upload door, as the platform's own code would bring them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine
from uuid_utils.compat import uuid7

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.casefile.exhibits import Exhibit
from baton.db.access import Role
from baton.db.connect import database_engine, firm_transaction
from baton.demo.stage import ACCOUNT, Stage
from baton.documents.upload import create_document, finalize_upload
from baton.settings.loading import load

_ACTOR = "demo"


@dataclass(frozen=True, slots=True)
class Filed:
    """A document that was uploaded, and what must become of it."""

    id: UUID
    exhibit: Exhibit
    batch: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Firm:
    """One firm at the platform's door: its id, its member's connection, its bucket."""

    id: UUID
    engine: Engine
    """Logs in as the platform's own role."""
    store: Store

    def upload(self, exhibits: Sequence[Exhibit], *, batch: int) -> tuple[Filed, ...]:
        """Upload the exhibits as one matter and finish the uploads, all in one commit.

        Each is finished twice, as an impatient client does; the second time changes nothing.
        """
        matter = uuid7()
        filed = []
        with firm_transaction(self.engine, self.id) as connection:
            documents = [
                create_document(
                    connection,
                    firm_id=self.id,
                    matter_id=matter,
                    name=exhibit.name,
                    content_type=exhibit.content_type,
                )
                for exhibit in exhibits
            ]
        for exhibit, document in zip(exhibits, documents, strict=True):
            with exhibit.path.open("rb") as file:
                self.store.put(document.object_key, file, content_type=exhibit.content_type)
            filed.append(Filed(id=document.id, exhibit=exhibit, batch=batch))
        for _ in range(2):
            with firm_transaction(self.engine, self.id) as connection:
                for document in documents:
                    finalize_upload(connection, document_id=document.id, store=self.store, actor=_ACTOR)
        return tuple(filed)


@contextmanager
def open_firm(stage: Stage) -> Iterator[Firm]:
    """A firm that nobody has heard of before, its transactions as the platform's code makes them."""
    engine = database_engine(
        stage.database_url(Role.MEMBER_APP).reveal(), application="baton-demo", pool_size=3, prepare=True
    )
    clients = Clients(load(stage.aws.environ(ACCOUNT)).aws)
    try:
        store = Store(clients, stage.bucket)
        store.ensure()
        yield Firm(id=uuid7(), engine=engine, store=store)
    finally:
        clients.close()
        engine.dispose()
