"""Whose statements are prepared in the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from baton.db.access import Role
from baton.db.connect import database_engine, prepared
from support.databases import Cluster, Database
from support.parts import needs
from support.pgbouncer import open_pooler


@contextmanager
def _one(url: str, *, prepare: bool) -> Iterator[Engine]:
    engine = database_engine(url, application="test", pool_size=1, prepare=prepare)
    yield engine
    engine.dispose()


def _said_often(connection: Connection) -> int:
    """How many statements the session has prepared after the same was said often enough."""
    for number in range(10):
        connection.execute(text("SELECT CAST(:number AS integer)"), {"number": number})
    return int(connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one())


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
