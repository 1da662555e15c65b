"""How many statements a ticket and a document cost at each stage: one more is one more round trip for every document."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, event
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.db.states import Lane
from baton.documents.upload import create_document, finalize_upload
from baton.outbox.relay import Relay
from baton.settings.work import Relay as RelaySettings
from support.databases import Database
from support.draining import NullSender
from support.producing import NullStore
from support.tickets import Bulk, fill

pytestmark = pytest.mark.check


@contextmanager
def counted(engine: Engine) -> Iterator[Counter[str]]:
    """The statements of an engine within a block, by their first word; what a transaction says about itself aside."""
    found: Counter[str] = Counter()

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found[statement.split(maxsplit=1)[0].upper()] += 1

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("tickets", [1, 100])
def test_a_batch_costs_the_relay_two_statements(database: Database, tickets: int) -> None:
    """However many tickets it holds: one claim and one settlement, in one transaction."""
    said: list[str] = []

    class Noting(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
            said.append(str(query).split()[0].upper())
            return super().execute(query, *arguments, **options)

    fill(database, Bulk(count=tickets, firm=uuid4()))
    engine = database.engine(Role.RELAY)

    @event.listens_for(engine, "connect")
    def note(connection: Any, _record: Any) -> None:
        connection.cursor_factory = Noting

    relay = Relay(engine, lane=Lane.INGEST, sender=NullSender(), config=RelaySettings(batch_size=100))
    relay.run_once()
    fill(database, Bulk(count=tickets, firm=uuid4()))
    said.clear()
    assert relay.run_once().dispatched == tickets
    relay.close()
    assert said == ["WITH", "UPDATE"]


def test_a_finalized_upload_costs_six_statements(database: Database) -> None:
    """Say whose firm it is, look, lock, and write the ticket, the status and the audit event."""
    engine, firm = database.engine(Role.MEMBER_APP), uuid4()
    with firm_transaction(engine, firm) as connection:
        document = create_document(connection, firm_id=firm, matter_id=uuid7(), name="a.txt", content_type="text/plain")
    with counted(engine) as said, firm_transaction(engine, firm) as connection:
        finalize_upload(connection, document_id=document.id, store=NullStore(), actor="counsel")
    assert said == {"SELECT": 3, "INSERT": 2, "UPDATE": 1}
