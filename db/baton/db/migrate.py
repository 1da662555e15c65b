"""Brings a database to the version that this program needs.

One migrator at a time (an advisory lock on a direct connection); short lock time-outs with retries, so that a
migration never stands in front of live work for long; safe to run again at any point.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from baton.db import ddl
from baton.db.access import Role
from baton.db.errors import MigrationFailed
from baton.db.revisions import MINIMUM_SERVER

_log = logging.getLogger(__name__)

#: Key of the migrators' advisory lock: "baton" in ASCII.
_LOCK = 0x6261746F6E
_LOCK_TIMEOUT = "3s"
_STATEMENT_TIMEOUT = "15min"
_ATTEMPTS = 10
#: Seconds.
_ASK_EVERY = 0.2
#: Alembic keeps what it works on in globals: two databases cannot be migrated by one process at the same time.
_ONE_AT_A_TIME = threading.Lock()
#: lock_not_available, deadlock_detected, and "tuple concurrently updated" of two role changes at once
_RETRY = frozenset({"55P03", "40P01", "XX000"})


def migrate(url: str, *, revision: str = "head", progress: Callable[[str], None] | None = None) -> str:
    """Bring the database to ``revision`` and return the version it is at.

    :param url: of an administrator: a superuser, or a role that may create roles and owns the database.
    :raises MigrationFailed: with what failed; the database is then at the version it had.
    """
    say = progress or _log.info
    parsed = make_url(url)
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        connect_args={"application_name": "baton-migrate", "connect_timeout": 5, "prepare_threshold": None},
    )
    try:
        with engine.connect() as connection:
            _check_server(connection)
            _lock(connection, say)
            connection.execute(text(f"SET statement_timeout = '{_STATEMENT_TIMEOUT}'"))
            connection.execute(text(f"SET lock_timeout = '{_LOCK_TIMEOUT}'"))
            connection.commit()
            _with_retries(connection, _prepare, say)
            _with_retries(connection, lambda c: _upgrade(c, revision), say)
            at = connection.execute(text("SELECT version_num FROM app.alembic_version")).scalar_one()
            say(f"database is at version {at}")
            return str(at)
    except OperationalError as error:
        raise MigrationFailed(f"cannot migrate: {_first_line(error)}") from error
    except DBAPIError as error:
        raise MigrationFailed(f"migration was rolled back: {_first_line(error)}") from error
    finally:
        engine.dispose()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def _check_server(connection: Connection) -> None:
    version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if version < MINIMUM_SERVER:
        raise MigrationFailed(f"Postgres 15 or newer is needed; this server is {version // 10000}")


def _lock(connection: Connection, say: Callable[[str], None]) -> None:
    """Become the one migrator. Asked again and again rather than waited for: a statement that waits holds a snapshot, for
    which an index that the other builds concurrently would wait in turn.
    """
    asked = False
    while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK}).scalar_one():
        connection.rollback()
        if not asked:
            say("another migration is running; waiting for it")
        asked = True
        threading.Event().wait(_ASK_EVERY)
    connection.commit()


def _prepare(connection: Connection) -> None:
    """Roles of the cluster and the ground of the database; an administrator's part."""
    for statement in (*ddl.roles(), *ddl.database()):
        connection.exec_driver_sql(statement.replace("%", "%%"))
    connection.commit()


def _upgrade(connection: Connection, revision: str) -> None:
    connection.execute(text(f"SET ROLE {Role.OWNER}"))
    connection.commit()
    config = _config()
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, revision)
    connection.commit()
    connection.execute(text("RESET ROLE"))
    connection.commit()


def _with_retries(connection: Connection, step: Callable[[Connection], None], say: Callable[[str], None]) -> None:
    """Run a step again when it lost a lock: it gave way to live work, and nothing of it was kept."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            step(connection)
        except DBAPIError as error:
            connection.rollback()
            connection.execute(text("RESET ROLE"))
            connection.commit()
            if getattr(error.orig, "sqlstate", None) not in _RETRY or attempt == _ATTEMPTS:
                raise
            say(f"gave way to live work ({_first_line(error)}); attempt {attempt + 1} of {_ATTEMPTS}")
            threading.Event().wait(min(5.0, 0.2 * 2**attempt))
        else:
            return


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
