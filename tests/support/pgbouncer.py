"""A transaction pooler in front of the session's Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg

from baton.db.access import LOGIN
from baton.embedded.accounts import unprivileged
from baton.embedded.children import Child, Program
from baton.embedded.ports import LOOPBACK, free_port
from support.parts import require

if TYPE_CHECKING:
    from support.databases import Database


class Pooler:
    """Debian's pgbouncer, pooling by transaction; every workload's role may come in."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, database: "Database", role: str) -> str:
        """A SQLAlchemy URL of the database, by way of the pooler."""
        parts = urlsplit(database.direct_url(role))
        return urlunsplit(parts._replace(netloc=f"{role}@{LOOPBACK}:{self._port}"))


@contextmanager
def open_pooler(folder: Path, *, server_port: int, pool_size: int = 20) -> Iterator[Pooler]:
    """A pooler for a server on this machine; gone at the block's end. Without pgbouncer the test is skipped."""
    require("pgbouncer")
    folder.mkdir(exist_ok=True)
    port = free_port()
    users = folder / "users.txt"
    users.write_text("".join(f'"{role}" ""\n' for role in (*LOGIN, "postgres")))
    config = folder / "pgbouncer.ini"
    config.write_text(
        "[databases]\n"
        f"* = host={LOOPBACK} port={server_port}\n"
        "[pgbouncer]\n"
        f"listen_addr = {LOOPBACK}\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\n"
        f"pool_mode = transaction\ndefault_pool_size = {pool_size}\nmax_client_conn = 200\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    for each in (users, config):
        each.chmod(0o644)
    child = Child(
        Program(
            name="pgbouncer",
            argv=("/usr/sbin/pgbouncer", str(config)),
            log=folder / "pgbouncer.log",
            account=unprivileged(),
        )
    )
    child.start()
    try:
        child.wait_ready(lambda: _answers(port), timeout=10)
        yield Pooler(port)
    finally:
        child.stop()


def _answers(port: int) -> bool:
    try:
        psycopg.connect(
            host=LOOPBACK, port=port, user="postgres", dbname="postgres", connect_timeout=2, prepare_threshold=None
        ).close()
    except psycopg.OperationalError:
        return False
    return True
