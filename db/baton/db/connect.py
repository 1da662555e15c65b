"""How a process reaches Postgres: engines, and transactions with a firm or a role.

Nothing is kept in a session outside a transaction (``SET LOCAL`` only), so that a transaction
pooler may stand between. Time-outs are settings of the roles for the same reason.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import InvalidatePoolError

from baton.db.access import Role
from baton.db.moments import reading

if TYPE_CHECKING:
    from sqlalchemy.orm import Session  # megabytes, for the callers that have one

#: What library calls take: the caller's own open transaction, which they never commit.
Executor: TypeAlias = "Connection | Session"

#: Executions after which the driver prepares a statement; its own default.
_PREPARED_AFTER: Final = 5
_AT_ONCE: Final = 0
#: In a connection's ``info``: whether it leads straight to the server, and when it was last given back.
_DIRECT: Final = "baton.direct"
_RESTS_SINCE: Final = "baton.rests_since"
#: Seconds of rest after which a connection is asked whether it still leads anywhere.
_ASKED_AFTER: Final = 30.0
_NO_WAIT_FOR_DISK = text("SET LOCAL synchronous_commit TO off")
_SET_FIRM = text("SELECT set_config('baton.firm_id', :firm, true)")


def database_engine(
    url: str, *, application: str, pool_size: int = 5, prepare: bool = False, connect_timeout: int = 5
) -> Engine:
    """Make an engine.

    :param url: ``postgresql://…`` or ``postgresql+psycopg://…``.
    :param application: ``application_name``; every ledger row names it.
    :param pool_size: connections at most; a further thread waits up to 10 s for one.
    :param prepare: statements are prepared in the server, unless a pooler stands between, which knows no prepared ones.
        They come to be planned without their values, so that is for those who ask by a key and little else.
    :param connect_timeout: seconds.
    """
    parsed = make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        connect_args={
            "context": reading(),
            "application_name": application,
            "connect_timeout": connect_timeout,
            "prepare_threshold": None,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )

    @event.listens_for(engine, "connect")
    def connected(driver: psycopg.Connection[Any], record: Any) -> None:
        record.info[_DIRECT] = not pooled(driver)
        if prepare and record.info[_DIRECT]:
            driver.prepare_threshold = _PREPARED_AFTER

    @event.listens_for(engine, "checkin")
    def rested(_driver: Any, record: Any) -> None:
        record.info[_RESTS_SINCE] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def taken(driver: Any, record: Any, _proxy: Any) -> None:
        since = record.info.pop(_RESTS_SINCE, None)
        if since is not None and not _alive(engine, driver, rested=time.monotonic() - since):
            raise InvalidatePoolError

    return engine


def _alive(engine: Engine, driver: Any, *, rested: float) -> bool:
    """Whether a connection that rested may be used.

    A server that ends a session says so on it, and the end of a stream can be read as well: one on which nothing can
    be read needs no round trip to be believed, but for a network that dropped it without a word, which takes a while.
    """
    try:
        if rested < _ASKED_AFTER and not _readable(driver):
            return True
        return bool(engine.dialect.do_ping(driver))
    except (psycopg.Error, OSError):
        return False


def _readable(driver: Any) -> bool:
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def read_connection(engine: Engine) -> Iterator[Connection]:
    """Open a connection for those who only read: each of their statements is a transaction of its own.

    Each sees what was committed when it began, as it would inside a transaction; two round trips are saved, and nothing is
    left idle in a transaction. Settings for a transaction (``SET LOCAL``) and locks last for one statement only.
    """
    with engine.connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def prepared(connection: Connection) -> Iterator[None]:
    """Prepare what is said in the block, on an engine that prepares nothing by itself, where nothing stands between.

    It stays prepared until a transaction of the connection is rolled back; those who only read have none
    (:func:`read_connection`).
    """
    driver = connection.connection.driver_connection
    if not connection.info.get(_DIRECT) or not isinstance(driver, psycopg.Connection):
        yield
        return
    before, driver.prepare_threshold = driver.prepare_threshold, _AT_ONCE
    try:
        yield
    finally:
        driver.prepare_threshold = before


@contextmanager
def forgettable(engine: Engine) -> Iterator[Connection]:
    """Open a transaction whose commit waits for no disk: for what is found out anew where a crash of the server takes it."""
    with engine.begin() as connection:
        connection.execute(_NO_WAIT_FOR_DISK)
        yield connection


def pooled(driver: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between this connection, which is in no transaction, and the server.

    A pooler invents the process id that it announces a connection with; the server process that answers has its own.
    """
    answering = driver.execute("SELECT pg_backend_pid()").fetchone()
    if not driver.autocommit:
        driver.rollback()
    return answering is None or answering[0] != driver.info.backend_pid


@contextmanager
def firm_transaction(engine: Engine, firm_id: UUID) -> Iterator[Connection]:
    """Open a transaction in which policies for members show this firm, and no other, until it ends."""
    with engine.begin() as connection:
        set_firm(connection, firm_id)
        yield connection


def set_firm(executor: Executor, firm_id: UUID) -> None:
    """Name the firm for the rest of the executor's transaction."""
    executor.execute(_SET_FIRM, {"firm": str(firm_id)})


@contextmanager
def as_member(connection: Connection, firm_id: UUID) -> Iterator[None]:
    """Run the block as the firm's member inside an open transaction, then go on as before.

    The login role must hold the member's door. An error leaves the transaction aborted, and its end undoes the role.
    """
    connection.execute(text(f"SET LOCAL ROLE {Role.MEMBER}"))
    set_firm(connection, firm_id)
    yield
    connection.execute(text("SET LOCAL ROLE NONE"))
    connection.execute(_SET_FIRM, {"firm": ""})
