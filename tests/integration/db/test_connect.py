"""Whose statements are prepared in the server, and which connections are believed to lead to it still."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import OperationalError

from baton.db import connect
from baton.db.access import Role
from baton.db.connect import database_engine, forgettable, prepared, read_connection
from support.databases import Cluster, Database
from support.gates import gate
from support.parts import needs
from support.pgbouncer import open_pooler
from support.transactions import end_session


@contextmanager
def _one(url: str, *, prepare: bool) -> Iterator[Engine]:
    engine = database_engine(url, application="test", pool_size=1, prepare=prepare)
    try:
        yield engine
    finally:
        engine.dispose()


def _said_often(connection: Connection) -> int:
    """How many statements the session has prepared after the same was said often enough."""
    for number in range(10):
        connection.execute(text("SELECT CAST(:number AS integer)"), {"number": number})
    return _prepared(connection)


def _prepared(connection: Connection) -> int:
    """Besides this question."""
    counted = "SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%%pg_prepared%%'"
    return int(connection.exec_driver_sql(counted).scalar_one())


def test_statements_are_prepared_where_that_was_asked_for(database: Database) -> None:
    """And nowhere else, but in a block that says so."""
    url = database.direct_url(Role.MEMBER_APP)
    with _one(url, prepare=True) as engine, engine.connect() as connection:
        assert _said_often(connection) > 0
    with _one(url, prepare=False) as engine, engine.connect() as connection:
        assert _said_often(connection) == 0
        with prepared(connection):
            assert _said_often(connection) == 1
        connection.exec_driver_sql("DEALLOCATE ALL")
        assert _said_often(connection) == 0


def test_what_somebody_who_reads_has_prepared_serves_the_next_one(database: Database) -> None:
    """A transaction that is rolled back would leave nothing of it."""
    with _one(database.direct_url(Role.MEMBER_APP), prepare=False) as engine:
        with read_connection(engine) as connection, prepared(connection):
            assert _said_often(connection) == 1
        with engine.connect() as connection:
            assert _prepared(connection) == 1
        with read_connection(engine) as connection:
            assert _prepared(connection) == 0


def test_whoever_only_reads_opens_no_transaction(database: Database) -> None:
    """And leaves the connection as it was: what is begun on it afterwards is one."""
    with _one(database.direct_url(Role.MEMBER_APP), prepare=False) as engine:
        with read_connection(engine) as connection:
            assert _status(connection) is TransactionStatus.IDLE
        with engine.begin() as connection:
            assert _status(connection) is TransactionStatus.INTRANS


def _status(connection: Connection) -> TransactionStatus:
    """After a question."""
    connection.exec_driver_sql("SELECT 1").scalar_one()
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver.info.transaction_status


def test_what_may_be_forgotten_waits_for_no_disk(database: Database) -> None:
    """And what comes after it on the same connection does."""
    asked = "SHOW synchronous_commit"
    with _one(database.direct_url(Role.MEMBER_APP), prepare=False) as engine:
        with engine.connect() as connection:
            before = connection.exec_driver_sql(asked).scalar_one()
        with forgettable(engine) as connection:
            assert connection.exec_driver_sql(asked).scalar_one() == "off"
        with engine.connect() as connection:
            assert connection.exec_driver_sql(asked).scalar_one() == before


@needs("pgbouncer")
def test_nothing_is_prepared_behind_a_pooler(cluster: Cluster, database: Database, state_folder: Path) -> None:
    """Whatever was asked for: the next transaction may find another session."""
    with (
        open_pooler(state_folder / "pooler", server_port=cluster.server.port, pool_size=1) as pooler,
        _one(pooler.url(database, Role.MEMBER_APP), prepare=True) as engine,
        engine.connect() as connection,
    ):
        assert _said_often(connection) == 0
        with prepared(connection):
            assert _said_often(connection) == 0


def _session(engine: Engine) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_a_session_that_ended_while_it_rested_is_replaced(database: Database) -> None:
    """However short its rest was: its end can be read."""
    with _one(database.direct_url(Role.MEMBER_APP), prepare=False) as engine:
        before = _session(engine)
        end_session(database, before)
        assert _session(engine) != before


def test_a_connection_that_rested_is_asked_where_it_goes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then: a network that dropped it lately is found out by the first statement, which fails."""
    url = database.direct_url(Role.MEMBER_APP)
    with gate(make_url(url).port or 5432) as network:
        aside = network.url(url)
        with _one(aside, prepare=False) as engine:
            before = _session(engine)
            network.lose()
            with pytest.raises(OperationalError):
                _session(engine)
            after = _session(engine)
            assert after != before
            network.lose()
            monkeypatch.setattr(connect, "_ASKED_AFTER", 0.0)
            assert _session(engine) not in (before, after)
