"""What the relay's statements touch, as its own role, under generic plans."""

import json
import re
from collections.abc import Iterator, Mapping
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import text

from baton.db.states import Lane
from baton.outbox import claim
from baton.outbox.sessions import Driver, own_session
from integration.outbox.conftest import Recorder, Relays
from support.databases import Database
from support.tickets import Bulk, count_where, fill

pytestmark = pytest.mark.check

STATEMENTS = claim.statements_of(Lane.REGISTRAR, size=100)
LARGE = claim.statements_of(Lane.REGISTRAR, size=1000)
_TYPES = {
    "cursor": "uuid",
    "ids": "bigint[]",
    "message_ids": "text",
    "claimed_at": "timestamptz",
}


def _crowded(database: Database, *, backlog: int, firms: int, past: int) -> None:
    """One firm with a backlog, many with one ticket each, and a past of dispatched tickets."""
    fill(database, Bulk(count=past, firm=uuid4(), lane="registrar", dispatched=True, handled=True, due_ago=5000))
    fill(database, Bulk(count=backlog, firm=uuid4(), lane="registrar", due_ago=30))
    with database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        connection.execute(
            text(
                """
                INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,
                       extraction_epoch, extraction_run_id, object_key, content_type)
                SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'document.registration.requested',
                       'one:' || i, 1, gen_random_uuid(), 'a', 'b' FROM generate_series(1, :firms) i
                """
            ),
            {"firms": firms},
        )
    _vacuum(database)


def _vacuum(database: Database) -> None:
    with database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE ops.document_ingest_outbox"))


@pytest.fixture
def session(database: Database) -> Iterator[Driver]:
    """A relay's session that plans without looking at values."""
    made = own_session(database.engine("baton_relay"))
    made.execute("SET plan_cache_mode = force_generic_plan")
    yield made
    made.close()


class Plan:
    """One statement's plan as it ran."""

    def __init__(self, found: list[Mapping[str, object]]) -> None:
        self.root = found[0]["Plan"]
        self.text = json.dumps(found)

    @property
    def buffers(self) -> int:
        """Shared buffers touched."""
        assert isinstance(self.root, dict)
        return int(self.root["Shared Hit Blocks"]) + int(self.root["Shared Read Blocks"])

    @property
    def indexes(self) -> set[str]:
        """The indexes that were walked."""
        return set(re.findall(r'"Index Name": "(\w+)"', self.text))

    @property
    def sequential(self) -> bool:
        """Whether the table was read from end to end."""
        return "Seq Scan" in self.text


def _explained(session: Driver, statement: str, values: Mapping[str, object]) -> Plan:
    """Prepare the statement and explain how it runs, in a transaction that is rolled back."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    for number, name in enumerate(names, start=1):
        statement = statement.replace(f"%({name})s", f"${number}")
    types = ", ".join(_TYPES[name] for name in names)
    arguments = psycopg.sql.SQL(", ").join(psycopg.sql.Literal(values[name]) for name in names)
    with session.transaction(force_rollback=True):
        session.execute(f"PREPARE explained{f' ({types})' if names else ''} AS {statement}")
        given = psycopg.sql.SQL("({})").format(arguments) if names else psycopg.sql.SQL("")
        asked = psycopg.sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained{}").format(given)
        for_warmth = session.execute(asked).fetchone()
        assert for_warmth is not None
        row = session.execute(asked).fetchone()
        session.execute("DEALLOCATE explained")
    assert row is not None
    return Plan(row[0])


def test_a_fair_claim_is_proportional_to_its_batch(database: Database, session: Driver) -> None:
    """A hundred tickets of 301 firms: at most 1,000 buffers, by the two indexes made for it, wherever the cursor is."""
    _crowded(database, backlog=5000, firms=300, past=10_000)
    for cursor in (UUID(int=0), uuid4(), UUID(int=2**128 - 1)):
        plan = _explained(session, STATEMENTS.claim, {"cursor": cursor})
        assert plan.buffers <= 1000
        assert plan.indexes == {"o_pending", "o_pending_firm"}
        assert not plan.sequential


def test_an_empty_look_does_not_read_the_past(database: Database, session: Driver) -> None:
    """With nothing due and everything dispatched, an idle look touches a handful of buffers."""
    _crowded(database, backlog=0, firms=0, past=10_000)
    fill(database, Bulk(count=2000, firm=uuid4(), lane="registrar", due_ago=-3600))
    for statement in (STATEMENTS.look_recent, STATEMENTS.look):
        plan = _explained(session, statement, {})
        assert plan.buffers <= 10
        assert plan.indexes == {"o_pending"}
        assert not plan.sequential


def test_an_idle_look_after_a_drain_stays_small(database: Database, session: Driver, relays: Relays) -> None:
    """Thousands of tickets have just gone: their dead index entries cost the next looks nothing that lasts."""
    fill(database, Bulk(count=3000, firm=uuid4(), lane="registrar", due_ago=300))
    relay = relays.make(Recorder(), lane=Lane.REGISTRAR, batch_size=500)
    while relay.run_once().claimed:
        pass
    assert _explained(session, STATEMENTS.look_recent, {}).buffers <= 10


def test_settling_goes_by_the_primary_key(database: Database, session: Driver) -> None:
    """A hundred rows are settled by a hundred look-ups."""
    _crowded(database, backlog=3000, firms=0, past=10_000)
    with session.transaction():
        claimed = claim.claim(session, STATEMENTS, cursor=UUID(int=0))
    ids = [ticket.id for ticket in claimed.tickets]
    values = {"ids": ids, "message_ids": "\n".join(["m"] * 100), "claimed_at": claimed.at}
    plan = _explained(session, STATEMENTS.settle, values)
    assert "document_ingest_outbox_pkey" in plan.indexes
    assert not plan.sequential
    assert plan.buffers <= 100 * 25


@pytest.mark.parametrize(
    "forced",
    [
        "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
        "SET enable_nestloop = off; SET enable_material = off",
        "SET enable_sort = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off",
    ],
)
def test_a_claim_locks_no_more_than_its_batch_under_any_plan(database: Database, session: Driver, forced: str) -> None:
    """However badly it is planned, a claim of 100 returns 100 and leaves all others to other relays."""
    for _ in range(12):
        fill(database, Bulk(count=50, firm=uuid4(), lane="registrar"))
    session.execute(forced)
    with session.transaction(force_rollback=True), own_session(database.engine("baton_relay")) as other:
        tickets = claim.claim(session, STATEMENTS, cursor=uuid4()).tickets
        assert len({ticket.id for ticket in tickets}) == len(tickets) == 100
        with other.transaction(force_rollback=True):
            free = claim.claim(other, LARGE, cursor=uuid4()).tickets
        assert len(free) == 500
        assert not {ticket.id for ticket in tickets} & {ticket.id for ticket in free}


def test_an_old_snapshot_does_not_stop_a_drain(database: Database, session: Driver, relays: Relays) -> None:
    """Somebody's transaction stays open: dead rows pile up, a claim stays inside its bound, and all is sent."""
    fill(database, Bulk(count=3000, firm=uuid4(), lane="registrar"))
    recorder = Recorder()
    relay = relays.make(recorder, lane=Lane.REGISTRAR, batch_size=500)
    with database.preparer.connect() as idler:
        idler.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        idler.execute(text("SELECT count(*) FROM ops.document_ingest_outbox"))
        while relay.run_once().claimed:
            pass
        slow = _explained(session, STATEMENTS.claim, {"cursor": uuid4()}).buffers
        assert len(set(recorder.keys)) == len(recorder.keys) == 3000
        assert slow <= 1000
    _vacuum(database)
    assert _explained(session, STATEMENTS.claim, {"cursor": uuid4()}).buffers <= 10
    assert count_where(database, "dispatched_at IS NOT NULL") == 3000
