"""Wake-ups: after the commit, never inside it, never for nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session
from uuid_utils.compat import uuid7

from baton.db.connect import set_firm
from baton.db.states import EventType
from baton.outbox import wake
from baton.outbox.keys import Subject
from baton.outbox.sessions import own_session
from baton.outbox.tickets import Pointer, Ticket, write_first
from integration.outbox.conftest import Recorder, Relays
from support.databases import Database, connect
from support.pgbouncer import Pooler
from support.tickets import Bulk, count_where, fill, new_document
from support.waiting import wait_until


def _write(executor: object, firm: UUID, document: UUID) -> Ticket:
    set_firm(executor, firm)  # type: ignore[arg-type]
    subject = Subject(
        firm_id=firm,
        document_id=document,
        event_type=EventType.INGEST_REQUESTED,
        extraction_epoch=1,
    )
    pointer = Pointer(matter_id=uuid7(), object_key="documents/a.pdf", content_type="application/pdf")
    return write_first(executor, subject, pointer=pointer)  # type: ignore[arg-type]


@pytest.fixture
def member(database: Database) -> Engine:
    """The engine of the platform's own code."""
    return database.engine("baton_member_app")


@pytest.fixture
def heard(database: Database) -> Iterator[Callable[[float], int]]:
    """Counts the notifications on the ingest lane's channel within some seconds."""
    session = own_session(database.preparer)
    session.execute("LISTEN baton_outbox_ingest")
    yield lambda seconds: len(list(session.notifies(timeout=seconds, stop_after=1)))
    session.close()


def test_a_commit_wakes(database: Database, member: Engine, heard: Callable[[float], int]) -> None:
    """One notification after the commit, for a Connection and for a Session."""
    firm, document = new_document(database)
    with member.begin() as connection:
        _write(connection, firm, document)
        assert heard(0.2) == 0
    assert heard(2) == 1
    _, other = new_document(database, firm=firm)
    with Session(member) as session, session.begin():
        _write(session, firm, other)
    assert heard(2) == 1
    assert heard(0.2) == 0


def test_a_rollback_wakes_nobody(database: Database, member: Engine, heard: Callable[[float], int]) -> None:
    """Nothing is sent for a transaction that came to nothing, nor for the next one on its connection."""
    firm, document = new_document(database)
    with member.connect() as connection:
        _write(connection, firm, document)
        connection.rollback()
        connection.execute(text("SELECT 1"))
        connection.commit()
    assert heard(0.3) == 0


def test_savepoints_decide_nothing(database: Database, member: Engine, heard: Callable[[float], int]) -> None:
    """A savepoint's release does not wake; the outer commit does, once."""
    firm, document = new_document(database)
    _, other = new_document(database, firm=firm)
    with Session(member) as session, session.begin():
        with session.begin_nested():
            _write(session, firm, document)
        assert heard(0.2) == 0
        with session.begin_nested():
            _write(session, firm, other)
    assert heard(2) == 1
    assert heard(0.2) == 0


def test_the_callers_transaction_never_notifies(database: Database, member: Engine) -> None:
    """No NOTIFY goes out on the producer's connection: it would serialize all commits of the server."""
    statements: list[str] = []
    event.listen(member, "before_cursor_execute", lambda *a: statements.append(a[2]))
    firm, document = new_document(database)
    with member.begin() as connection:
        _write(connection, firm, document)
    assert statements
    assert not [each for each in statements if "notify" in each.lower()]


def test_no_relay_is_woken_before_the_commit_is_made(
    database: Database, member: Engine, heard: Callable[[float], int]
) -> None:
    """However long the commit itself takes, the ticket is there when the notification arrives."""
    firm, document = new_document(database)
    with database.preparer.begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION app.dawdle() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$"
            )
        )
        connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON ops.document_ingest_outbox"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.dawdle()"
            )
        )

    def produce() -> None:
        with member.begin() as connection:
            _write(connection, firm, document)

    producer = threading.Thread(target=produce)
    producer.start()
    assert heard(5) == 1
    assert count_where(database, "true") == 1
    producer.join()


def test_many_commits_share_a_notification(database: Database, member: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy producer notifies once in a while at most, however much it commits."""
    monkeypatch.setattr(wake, "COALESCE", 0.3)
    session = own_session(database.preparer)
    session.execute("LISTEN baton_outbox_ingest")
    began = time.monotonic()
    for _ in range(200):
        with member.begin() as connection:
            connection.execute(text("SELECT 1"))
            wake.after_commit(connection, EventType.INGEST_REQUESTED)
    seconds = time.monotonic() - began
    seen = list(session.notifies(timeout=0.5))
    session.close()
    assert 1 <= len(seen) <= seconds / wake.COALESCE + 2


def test_a_notifier_that_fails_is_silent(database: Database, member: Engine, heard: Callable[[float], int]) -> None:
    """Its connection is cut: the work goes on, and later commits wake again."""
    firm, document = new_document(database)
    with member.begin() as connection:
        _write(connection, firm, document)
    assert heard(2) == 1
    with database.preparer.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE usename = 'baton_member_app' AND query LIKE 'NOTIFY%' AND datname = current_database()"
            )
        )

    def woken() -> int:
        _, other = new_document(database, firm=firm)
        with member.begin() as connection:
            _write(connection, firm, other)
        return heard(0.3)

    wait_until(woken, 10)


def test_a_commit_reaches_an_idle_relay_within_milliseconds(database: Database, relays: Relays, member: Engine) -> None:
    """Half of all tickets are sent within 50 ms of their commit, though the relay looks once a minute."""
    recorder = Recorder()
    relay = relays.make(recorder, idle_wait=60.0)
    firm = uuid4()
    documents = [new_document(database, firm=firm)[1] for _ in range(15)]
    delays = []
    with relays.running(relay):
        wait_until(lambda: relay.listening)
        for number, document in enumerate(documents, start=1):
            with member.begin() as connection:
                _write(connection, firm, document)
            began = time.monotonic()
            wait_until(lambda n=number: len(recorder.keys) == n, 5, interval=0.001)  # type: ignore[misc]
            delays.append(time.monotonic() - began)
    assert sorted(delays)[len(delays) // 2] < 0.05


def test_an_idle_relay_asks_once_a_second(database: Database, relays: Relays, monkeypatch: pytest.MonkeyPatch) -> None:
    """With notifications, at most one statement a second; the lane's past does not make it more."""
    fill(database, Bulk(count=200, firm=uuid4(), dispatched=True, handled=True))
    statements: list[object] = []
    execute = psycopg.Cursor.execute

    def told(cursor: Any, query: Any, *more: Any, **options: Any) -> Any:
        statements.append(query)
        return execute(cursor, query, *more, **options)

    relay = relays.make(Recorder())
    with relays.running(relay):
        wait_until(lambda: relay.listening)
        monkeypatch.setattr(psycopg.Cursor, "execute", told)
        threading.Event().wait(4)
        monkeypatch.undo()
    assert 3 <= len(statements) <= 5


def test_behind_a_pooler_relays_look_often_and_send_all(
    database: Database, relays: Relays, member: Engine, pooler: Pooler
) -> None:
    """A transaction pooler delivers no notification: the relay notices, looks by itself, and loses nothing."""
    engine = connect(pooler.url(database, "baton_relay"), pool_size=4)
    recorder = Recorder()
    relay = relays.make(recorder, engine=engine)
    firm = uuid4()
    with relays.running(relay):
        for number in range(1, 6):
            _, document = new_document(database, firm=firm)
            with member.begin() as connection:
                _write(connection, firm, document)
            wait_until(lambda n=number: len(recorder.keys) == n, 3)  # type: ignore[misc]
        assert not relay.listening
    relay.close()
    engine.dispose()


def test_behind_a_pooler_a_direct_session_wakes(
    database: Database, relays: Relays, member: Engine, pooler: Pooler
) -> None:
    """Claims go through the pooler, and notifications by the direct URL; producers behind the pooler notify, too."""
    engine = connect(pooler.url(database, "baton_relay"), pool_size=4)
    producer = connect(pooler.url(database, "baton_member_app"), pool_size=4)
    recorder = Recorder()
    relay = relays.make(recorder, engine=engine, listen=database.engine("baton_relay"), idle_wait=30.0)
    firm, document = new_document(database)
    with relays.running(relay):
        wait_until(lambda: relay.listening)
        with producer.begin() as connection:
            _write(connection, firm, document)
        wait_until(lambda: len(recorder.keys) == 1, 3)
    relay.close()
    producer.dispose()
    engine.dispose()


def test_relays_behind_a_pooler_send_each_ticket_once(database: Database, relays: Relays, pooler: Pooler) -> None:
    """Locks, settlement and counting hold where every transaction may run in another session."""
    for _ in range(3):
        fill(database, Bulk(count=100, firm=uuid4()))
    engine = connect(pooler.url(database, "baton_relay"), pool_size=8)
    recorder = Recorder(before=lambda: threading.Event().wait(0.05))
    several = [relays.make(recorder, engine=engine, batch_size=20) for _ in range(3)]
    with relays.running(*several):
        wait_until(lambda: count_where(database, "dispatched_at IS NOT NULL") == 300, 20)
    assert len(recorder.keys) == len(set(recorder.keys)) == 300
    engine.dispose()
