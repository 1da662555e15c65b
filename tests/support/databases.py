"""A migrated database for each test, copied from a template that is migrated once."""

import secrets
from functools import cached_property

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

from baton.db.access import LOGIN
from baton.db.migrate import migrate
from baton.db.moments import reading
from baton.embedded.postgres import SUPERUSER, EmbeddedPostgres
from support.pgbouncer import Pooler

_TEMPLATE = "baton_template"


#: Executions after which a statement is prepared, where that is asked for.
_PREPARED_AFTER = 5


def connect(url: str, *, prepare: bool = False, **options: object) -> Engine:
    """An engine as the product makes them: without prepared statements unless they are asked for, as behind a pooler."""
    driver = {
        "prepare_threshold": _PREPARED_AFTER if prepare else None,
        "connect_timeout": 5,
        "context": reading(),
    }
    return create_engine(url, connect_args=driver, **options)


class Cluster:
    """A running server, and databases made on it. The roles are shared by all its databases."""

    def __init__(self, server: EmbeddedPostgres, *, pooler: Pooler | None = None) -> None:
        self.server = server
        self.pooler = pooler
        self._admin = connect(server.url(SUPERUSER, "postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")

    @cached_property
    def template(self) -> str:
        """The name of the migrated template, made at the first use."""
        with self._admin.connect() as admin:
            admin.execute(text(f"CREATE DATABASE {_TEMPLATE}"))
        migrate(self.server.url(SUPERUSER, _TEMPLATE))
        return _TEMPLATE

    def create(self, *, migrated: bool = True) -> "Database":
        """A fresh database: migrated, or empty."""
        name = f"test_{secrets.token_hex(6)}"
        source = self.template if migrated else "template1"
        with self._admin.connect() as admin:
            admin.execute(text(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY FILE_COPY"))
            if migrated:
                _copy_grants(admin, source=source, target=name)
        return Database(self, name)

    def drop(self, name: str) -> None:
        """Remove a database with whoever is still connected to it."""
        with self._admin.connect() as admin:
            admin.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


class Database:
    """One test's database."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._engines: dict[str, Engine] = {}
        #: Whether its engines prepare what they say, for tests that say the same thousands of times.
        self.prepares = False

    def url(self, role: str) -> str:
        """A URL that logs in as the role; by way of the pooler, where the session has one."""
        pooler = self.cluster.pooler
        return self.direct_url(role) if pooler is None or role not in LOGIN else pooler.url(self, role)

    def direct_url(self, role: str) -> str:
        """A URL that logs in as the role, past any pooler."""
        return self.cluster.server.url(role, self.name)

    def engine(self, role: str) -> Engine:
        """An engine that logs in as the role; one per role, closed after the test."""
        if role not in self._engines:
            prepare = self.prepares and self.cluster.pooler is None
            self._engines[role] = connect(self.url(role), prepare=prepare, pool_size=10)
        return self._engines[role]

    @property
    def preparer(self) -> Engine:
        """A superuser's engine, for preparing and looking; what is under test never uses it."""
        return self.engine(SUPERUSER)

    def move_clock(self, seconds: float) -> None:
        """Set `app.clock()` this many seconds ahead of the server's clock (behind it when negative).

        Counted from the server's clock, not from an earlier move; 0 sets it right again.
        """
        with self.preparer.begin() as connection:
            connection.execute(
                text(
                    "CREATE OR REPLACE FUNCTION app.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
                    f"$$ SELECT clock_timestamp() + make_interval(secs => {float(seconds)!r}) $$"
                )
            )

    def leave(self) -> None:
        """Close the engines; the database stays."""
        for engine in self._engines.values():
            engine.dispose()

    def close(self) -> None:
        """Close the engines and remove the database."""
        self.leave()
        self.cluster.drop(self.name)


def _copy_grants(admin: Connection, *, source: str, target: str) -> None:
    # A copy has its template's content, but not the rights on the database itself.
    grants = admin.execute(
        text(
            "SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END "
            "FROM pg_database, aclexplode(datacl) WHERE datname = :source"
        ),
        {"source": source},
    ).all()
    if grants:
        admin.execute(text(f"REVOKE ALL ON DATABASE {target} FROM PUBLIC"))
    for privilege, grantee in grants:
        admin.execute(text(f"GRANT {privilege} ON DATABASE {target} TO {grantee}"))
