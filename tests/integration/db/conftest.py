"""Databases on either version of Postgres, and one that many tests only look at."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from baton.db import ddl
from baton.db.access import Role
from baton.embedded.binaries import debian_binaries
from baton.embedded.postgres import EmbeddedPostgres
from support.databases import Cluster, Database
from support.parts import require


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest, session_folder: Path) -> Iterator[Callable[[str], Cluster]]:
    """A server of each version, started when it is first asked for."""
    started: list[EmbeddedPostgres] = []

    @cache
    def of(version: str) -> Cluster:
        if version == "floor" and request.config.getoption("--postgres") != "15":
            require("postgres15")
            server = EmbeddedPostgres(session_folder / "floor", binaries=debian_binaries(15), durable=False)
            server.start()
            started.append(server)
            return Cluster(server)
        found: Cluster = request.getfixturevalue("cluster")
        return found

    yield of
    for server in started:
        server.stop()


@pytest.fixture(scope="session", params=["chosen", "floor"])
def either(request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]) -> Cluster:
    """The server that `--postgres` chooses, and one of the oldest version that is supported."""
    return clusters(request.param)


@pytest.fixture(scope="session")
def looked_at(either: Cluster) -> Iterator[Database]:
    """A migrated database, on either server, that no test changes."""
    database = either.create()
    yield database
    database.close()


@pytest.fixture
def scratch(either: Cluster) -> Iterator[Database]:
    """A migrated database of this test's own, on either server."""
    database = either.create()
    yield database
    database.close()


@pytest.fixture
def bare(either: Cluster) -> Iterator[Database]:
    """An empty database of this test's own, on either server."""
    database = either.create(migrated=False)
    yield database
    database.close()


@pytest.fixture(scope="session")
def declared(either: Cluster) -> Iterator[Database]:
    """A database that was made from the declared schema, and never migrated."""
    database = either.create(migrated=False)
    with database.preparer.begin() as connection:
        for statement in (*ddl.roles(), *ddl.database()):
            run(connection, statement)
        connection.execute(text(f"SET ROLE {Role.OWNER}"))
        run(
            connection,
            "CREATE TABLE app.alembic_version"
            " (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
        )
        for statement in ddl.whole():
            run(connection, statement)
        connection.execute(text("RESET ROLE"))
    yield database
    database.close()


def run(connection: Connection, statement: str) -> None:
    """Run a statement as it is written."""
    connection.exec_driver_sql(statement.replace("%", "%%"))
