"""Millions of documents with a healthy past, written fast; and what is put beside them to be found.

Rows are as narrow as their constraints allow: short names, keys and messages, no checksums, two tickets a document (the
announcements and the requests of parts are left out, and marks that would name them name another ticket). Everything is
worked out from a row's number, so that tables are filled side by side and nothing is joined.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg

from support.databases import Database

_log = logging.getLogger(__name__)

#: Milliseconds between two documents: 25,000 a day, so that ten million are 400 days.
STEP = 3456
#: Hours that the newest day's tickets had waited on their queue, and since when no document came.
QUEUE_HOURS = 2
FIRMS = 200
MATTERS = 8000
#: Seconds between two polls of the consumers that are made up.
_BEAT = 10.0
#: Tables that are filled, the ones that take longest first.
TABLES = ("ops.document_ingest_outbox", "documents", "record.understanding_part", "agents.agent_run")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written."""

    documents: int
    tickets: int
    seconds: float
    base: datetime
    """When the first document came, by the database's clock."""


def load(database: Database, count: int, *, say: Callable[[str], None] = _log.info) -> Loaded:
    """Fill an empty migrated database with ``count`` documents: 92 % registered, the rest failed, in review or deleted.

    Indexes and keys are made afterwards, over two connections; foreign keys come back as not validated.
    """
    began = time.monotonic()
    url = database.direct_url("postgres").replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as session:
        _declare(session, count)
        later = _strip(session)
    with ThreadPoolExecutor(2) as pool:
        waiting: set[Future[tuple[str, ...]]] = {pool.submit(_fill, url, table, count) for table in TABLES}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in done:
                for what in each.result():
                    say(f"{time.monotonic() - began:6.0f} s  {what}")
                    waiting |= {pool.submit(_run, url, statement) for statement in later.pop(what, ())}
        list(pool.map(lambda table: _run(url, f"VACUUM ANALYZE {table}"), TABLES))
    with psycopg.connect(url, autocommit=True) as session:
        for statement in later.pop("last"):
            session.execute(statement)
        session.execute("SELECT setval(pg_get_serial_sequence('ops.document_ingest_outbox', 'id'), %s)", [2 * count])
        session.execute("SELECT setval(pg_get_serial_sequence('agents.agent_run', 'seq'), %s)", [count])
        base = session.execute("SELECT bench.at(0)").fetchone()
        session.execute("CHECKPOINT")
    assert base is not None
    return Loaded(count, 2 * count, time.monotonic() - began, base[0])


def loaded(database: Database) -> bool:
    """Whether this database was filled before."""
    with psycopg.connect(database.direct_url("postgres").replace("+psycopg", "")) as session:
        return session.execute(
            "SELECT to_regclass('documents') IS NOT NULL AND to_regnamespace('bench') IS NOT NULL"
        ).fetchone() == (True,)


def clean(*databases: Database) -> None:
    """Have nothing left of what was removed: neither entries, nor ranges of pages that seem to hold it still."""
    for database in databases:
        with _superuser(database) as session:
            for table in TABLES:
                session.execute(f"VACUUM (INDEX_CLEANUP ON) {table}".encode())
            for index in ("ops.o_received_brin", "agents.run_settled_brin"):
                session.execute(f"REINDEX INDEX {index}".encode())


# What is put beside them


def queue(database: Database, count: int, *, sent: bool, hours: float = 1.5) -> UUID:
    """Documents that are queued as they should be: their tickets wait on the queue, or (not ``sent``) for the relay.

    They came one after the other within the last ``hours``. Returns their firm.
    """
    return _beside(database, count, hours=hours, life="sent" if sent else "written")


def lose(database: Database, count: int, *, hours: float = 1.5) -> UUID:
    """Queued documents whose tickets were received an hour and more ago, by consumers that died. Returns their firm."""
    return _beside(database, count, hours=hours, life="lost")


def await_upload(database: Database, count: int) -> list[UUID]:
    """Documents whose upload began just now and is to be finalized; of one firm, which comes first in the list."""
    with _superuser(database) as session:
        firm, first = _next(session, count)
        session.execute(
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type)"
            " SELECT bench.id(i, 0), %(firm)s, %(firm)s, 'a',"
            " 'documents/' || %(firm)s::text || '/' || bench.id(i, 0) || '/a', 't'"
            " FROM generate_series(%(first)s, %(last)s) i",
            {"firm": firm, "first": first, "last": first + count - 1},
        )
        ids = session.execute("SELECT id FROM documents WHERE firm_id = %s ORDER BY id", [firm]).fetchall()
    return [firm, *(row[0] for row in ids)]


@contextmanager
def consumed(*databases: Database) -> Iterator[None]:
    """Consumers of both lanes have polled since yesterday, and go on within the block; no queue was ever seen empty.

    They received a hundred documents' tickets just now.
    """
    for database in databases:
        with _superuser(database) as session:
            session.execute("DELETE FROM ops.consumer_heartbeat")
            session.execute(
                "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, started_at, polled_at)"
                " SELECT gen_random_uuid(), lane, '1', app.clock() - interval '1 day', app.clock()"
                " FROM unnest(ARRAY['ingest', 'registrar']) lane"
            )
            session.execute(
                "INSERT INTO ops.lane_reading (lane, at, visible, in_flight, delayed)"
                " SELECT lane, app.clock() - i * interval '30 seconds', 1000, 10, 0"
                " FROM unnest(ARRAY['ingest', 'registrar']) lane, generate_series(0, 60) i"
            )
            # what was filled some time ago was last received then, and consumers that poll receive
            session.execute("SET session_replication_role = 'replica'")
            session.execute(
                "UPDATE ops.document_ingest_outbox SET first_received_at = app.clock(), handled_at = app.clock()"
                " WHERE handled_at IS NOT NULL AND id > (SELECT max(id) FROM ops.document_ingest_outbox) - 200"
            )
    ended = threading.Event()
    polling = threading.Thread(target=_poll, args=(databases, ended))
    polling.start()
    try:
        yield
    finally:
        ended.set()
        polling.join()


def _poll(databases: Sequence[Database], ended: threading.Event) -> None:
    while not ended.wait(_BEAT):
        for database in databases:
            with _superuser(database) as session:
                session.execute("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")


def forget(database: Database, firm: UUID) -> None:
    """Remove what was put beside the rest under this firm."""
    with _superuser(database) as session:
        session.execute("SET session_replication_role = 'replica'")
        session.execute(
            "DELETE FROM ops.dead_letter WHERE ticket_id IN"
            " (SELECT id FROM ops.document_ingest_outbox WHERE firm_id = %s)",
            [firm],
        )
        session.execute(
            "DELETE FROM record.understanding_part WHERE document_id IN (SELECT id FROM documents WHERE firm_id = %s)",
            [firm],
        )
        for table in ("agents.agent_run", "ops.document_ingest_outbox", "documents"):
            session.execute(f"DELETE FROM {table} WHERE firm_id = %s".encode(), [firm])


def _beside(database: Database, count: int, *, hours: float, life: str) -> UUID:
    with _superuser(database) as session:
        session.execute("SET session_replication_role = 'replica'")
        firm, first = _next(session, count)
        top = session.execute("SELECT max(id) FROM ops.document_ingest_outbox").fetchone()
        assert top is not None
        values = {"firm": firm, "first": first, "last": first + count - 1, "top": top[0] - first + 1}
        values |= {"step": hours * 3600 / count, "life": life}
        at = "app.clock() - (%(last)s - i) * %(step)s * interval '1 second' - interval '5 minutes'"
        at = f"(SELECT {at.replace('app.clock()', 'now()')})"
        session.execute(
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, processing_status,"
            " processing_status_since, registration_status, registration_status_since, extraction_run_id,"
            " registration_pass, ingest_ticket_id, registration_ticket_id, created_at)"
            f" SELECT bench.id(i, 0), %(firm)s, %(firm)s, 'a', 'x' || i, 't', 'indexed', {at}, 'queued', {at},"
            f" bench.id(i, 1), bench.id(i, 1), 1, %(top)s + i, {at}"
            " FROM generate_series(%(first)s, %(last)s) i",
            values,
        )
        session.execute(
            "INSERT INTO ops.document_ingest_outbox (id, firm_id, matter_id, document_id, event_type, idempotency_key,"
            " extraction_epoch, extraction_run_id, object_key, content_type, created_at, not_before, dispatched_at,"
            " message_id, first_received_at, receive_count, hold_until) OVERRIDING SYSTEM VALUE"
            " SELECT %(top)s + i, %(firm)s, %(firm)s, bench.id(i, 0), 'document.registration.requested', 'x' || i, 1,"
            f" bench.id(i, 1), 'x' || i, 't', {at}, {at}, CASE WHEN %(life)s <> 'written' THEN {at} END, 'm',"
            f" CASE WHEN %(life)s = 'lost' THEN {at} - interval '1 hour' END, (%(life)s = 'lost')::int,"
            f" CASE WHEN %(life)s = 'lost' THEN {at} - interval '50 minutes' END"
            " FROM generate_series(%(first)s, %(last)s) i",
            values,
        )
        session.execute(
            "SELECT setval(pg_get_serial_sequence('ops.document_ingest_outbox', 'id'), %(top)s + %(last)s)", values
        )
        session.execute("ANALYZE documents")
        session.execute("ANALYZE ops.document_ingest_outbox")
        # they came over hours, and autovacuum had its minute after each range of pages
        session.execute("SELECT brin_summarize_new_values('ops.o_received_brin')")
    return firm


def _next(session: psycopg.Connection, count: int) -> tuple[UUID, int]:
    """A firm of its own, and the first of so many free numbers."""
    row = session.execute(
        "SELECT gen_random_uuid(), nextval('bench.number'), setval('bench.number', currval('bench.number') + %s)",
        [count],
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def _superuser(database: Database) -> psycopg.Connection:
    return psycopg.connect(database.direct_url("postgres").replace("+psycopg", ""), autocommit=True)


# The load


def _declare(session: psycopg.Connection, count: int) -> None:
    """Functions that the planner inlines: a document's time and ids by its number."""
    session.execute("CREATE SCHEMA bench")
    session.execute(f"CREATE SEQUENCE bench.number START {count + 1000}")
    row = session.execute(
        "SELECT (extract(epoch FROM app.clock()) * 1000)::bigint - %s", [QUEUE_HOURS * 3_600_000 + count * STEP]
    ).fetchone()
    assert row is not None
    milliseconds = int(row[0])
    session.execute(
        "CREATE FUNCTION bench.at(i bigint) RETURNS timestamptz STABLE LANGUAGE sql AS"
        f" $$ SELECT '{_moment(session, milliseconds)}'::timestamptz + i * interval '{STEP} milliseconds' $$"
    )
    # a UUIDv7: its time and version, which of the document's ids it is, its number
    for name, body in (
        ("head(i bigint) RETURNS text", f"lpad(to_hex({milliseconds} + i * {STEP}), 12, '0') || '70008'"),
        ("tail(i bigint) RETURNS text", "'00' || lpad(to_hex(i), 12, '0')"),
        ("id(i bigint, kind int) RETURNS uuid", "(bench.head(i) || to_hex(kind) || bench.tail(i))::uuid"),
    ):
        session.execute(f"CREATE FUNCTION bench.{name} IMMUTABLE LANGUAGE sql AS $$ SELECT {body} $$".encode())


def _moment(session: psycopg.Connection, milliseconds: int) -> str:
    row = session.execute("SELECT to_timestamp(%s / 1000.0)::text", [milliseconds]).fetchone()
    assert row is not None
    return str(row[0])


def _strip(session: psycopg.Connection) -> dict[str, Sequence[str]]:
    """Take keys and whole indexes away; returns the statements that bring them back, by table, and those for the end."""
    tables = list(TABLES)
    foreign = session.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype = 'f' AND (confrelid::regclass::text = ANY(%s) OR conrelid::regclass::text = ANY(%s))",
        [tables, tables],
    ).fetchall()
    keys = session.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype IN ('p', 'u') AND conrelid::regclass::text = ANY(%s)",
        [tables],
    ).fetchall()
    indexes = session.execute(
        "SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)"
        " FROM pg_index i WHERE i.indrelid::regclass::text = ANY(%s)"
        # partial ones stay: of a healthy past they have no rows, and it would be read whole for each of them
        " AND i.indpred IS NULL AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)",
        [tables],
    ).fetchall()
    later: dict[str, list[str]] = {table: [] for table in (*TABLES, "last")}
    for table, name, definition in foreign:
        session.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        later["last"].append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition} NOT VALID")
    for table, name, definition in keys:
        session.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        later[table].append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    for table, name, definition in indexes:
        session.execute(f"DROP INDEX {name}".encode())
        later[table].append(definition)
    # one connection locks a table for each of its keys, while others make its indexes: keys are made in turn
    return {
        table: ["; ".join(each for each in all_of if "ADD CONSTRAINT" in each)]
        + [each for each in all_of if "ADD CONSTRAINT" not in each]
        if table != "last"
        else all_of
        for table, all_of in later.items()
    }


def _run(url: str, statement: str) -> tuple[str, ...]:
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("SET maintenance_work_mem = '1GB'")
        session.execute("SET max_parallel_maintenance_workers = 0")
        session.execute(statement.encode())
    return (" ".join(statement.split()[:6]),)


def _fill(url: str, table: str, count: int) -> tuple[str, ...]:
    """Truncated and filled in one transaction: nothing of it is logged where the server keeps no more than it must."""
    with psycopg.connect(url) as session:
        session.execute("SET LOCAL session_replication_role = 'replica'")
        session.execute(f"TRUNCATE {table}".encode())
        firms, matters = [UUID(int=i + 1) for i in range(FIRMS)], [UUID(int=i + 1) for i in range(MATTERS)]
        session.execute(_ROWS[table].encode(), {"count": count, "firms": firms, "matters": matters})
    return (table,)


# Out of a hundred documents two cannot be read, two failed, three wait for a person, one is deleted, 92 are registered.
# The newest day's waited for hours on their queue, and everybody has caught up by now. What a row is made of is worked out
# once (OFFSET 0), and the ids put together from two texts.
_EACH = f"""
    FROM generate_series(0::bigint, %(count)s::bigint - 1) i, LATERAL (
      SELECT i %% 100 AS kind, bench.at(i) AS came,
        bench.at(i) + CASE WHEN i > %(count)s - 25000 THEN interval '{QUEUE_HOURS} hours' ELSE interval '2 s' END AS seen,
        bench.head(i) AS a, bench.tail(i) AS b, 'x' || i AS name, (%(firms)s::uuid[])[1 + i %% {FIRMS}] AS firm,
        (%(matters)s::uuid[])[1 + i %% {MATTERS}] AS matter OFFSET 0) e"""
_ROWS = {
    "documents": f"""
        INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, size_bytes, processing_status,
          processing_status_since, registration_status, registration_status_since, extraction_run_id,
          registration_run_id, registration_pass, understood_pass, ingest_ticket_id, registration_ticket_id, created_at,
          deleted_at)
        SELECT (a || '0' || b)::uuid, firm, matter, 'a', e.name, 't', 1,
          CASE WHEN kind < 2 THEN 'failed' ELSE 'indexed' END, seen,
          CASE WHEN kind < 2 THEN 'not_requested' WHEN kind < 4 THEN 'registration_failed'
            WHEN kind < 7 THEN 'registration_needs_review' ELSE 'registered' END, seen,
          pass, CASE WHEN kind >= 2 THEN (a || '2' || b)::uuid END, pass, CASE WHEN kind >= 7 THEN pass END,
          2 * i + 1, 2 * i + 2, came, CASE WHEN kind = 7 THEN seen END
        {_EACH}, LATERAL (SELECT CASE WHEN kind >= 2 THEN (a || '1' || b)::uuid END AS pass OFFSET 0) p""",
    "ops.document_ingest_outbox": f"""
        INSERT INTO ops.document_ingest_outbox (id, firm_id, matter_id, document_id, event_type, idempotency_key,
          extraction_epoch, extraction_run_id, object_key, content_type, created_at, not_before, claimed_at,
          dispatched_at, message_id, first_received_at, receive_count, hold_until, work_attempts, handled_at, outcome)
          OVERRIDING SYSTEM VALUE
        SELECT 2 * i + 1 + half, firm, matter, id, CASE half WHEN 0 THEN 'document.ingest.requested' ELSE
          'document.registration.requested' END, CASE half WHEN 0 THEN 'i' ELSE 'r' END || e.name, 1,
          CASE half WHEN 1 THEN pass END, e.name, 't', came, came, came, came + interval '1 s', 'm', seen, 1, seen, 1,
          seen, 'done'
        {_EACH}, LATERAL (SELECT (a || '0' || b)::uuid AS id, (a || '1' || b)::uuid AS pass OFFSET 0) p,
          generate_series(0, 1) half""",
    "agents.agent_run": f"""
        INSERT INTO agents.agent_run (run_id, seq, firm_id, document_id, extraction_run_id, attempt, purpose,
          result_schema, state, ticket_id, invoke_count, created_at, accepted_at, deadline_at, settled_at, result_key,
          artifact_ticket_id) OVERRIDING SYSTEM VALUE
        SELECT (a || '2' || b)::uuid, i + 1, firm, (a || '0' || b)::uuid, (a || '1' || b)::uuid, 1, 'classify', 's',
          CASE WHEN kind < 4 THEN 'rejected' ELSE 'delivered' END, 2 * i + 2, 1, seen, seen, seen, seen, 'r', 2 * i + 2
        {_EACH} WHERE kind >= 2""",
    "record.understanding_part": f"""
        INSERT INTO record.understanding_part (firm_id, document_id, extraction_run_id, part, state, state_since,
          attempt, ticket_id, run_id)
        SELECT firm, id, pass, part, 'ready', seen, 1, 2 * i + 2, pass
        {_EACH}, LATERAL (SELECT (a || '0' || b)::uuid AS id, (a || '1' || b)::uuid AS pass OFFSET 0) p,
          unnest(ARRAY['brief', 'card', 'sections']) part
        WHERE kind >= 7""",
}


def identities(database: Database, *, after: UUID | None = None, size: int) -> Iterator[list[UUID]]:
    """Slices of all documents in key order."""
    place = after or UUID(int=0)
    with _superuser(database) as session:
        while True:
            rows = session.execute(
                "SELECT id FROM documents WHERE id > %s ORDER BY id LIMIT %s", [place, size]
            ).fetchall()
            if len(rows) < size:
                return
            place = rows[-1][0]
            yield [row[0] for row in rows]
