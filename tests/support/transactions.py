"""Transactions that a test watches waiting for each other, in the database and nowhere else, or ends there."""

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text

from baton.db.access import Role
from support.databases import Database
from support.waiting import wait_until


def end_backend(database: Database, connection: Connection) -> None:
    """End the server's side of a transaction, as a crash of its client or a failover would.

    The server is asked which one it is: behind a pooler the driver does not know.
    """
    driver: Any = connection.connection.driver_connection
    (pid,) = driver.execute("SELECT pg_backend_pid()").fetchone()
    end_session(database, pid)


def end_session(database: Database, pid: int) -> None:
    """End the server's process of this number, and return once it is gone."""
    with database.preparer.begin() as killer:
        assert killer.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid}).scalar_one()


class Second(threading.Thread):
    """Something done in a second transaction, which the test watches waiting in the database."""

    def __init__(self, database: Database, work: Callable[[Connection], Any], *, role: Role = Role.REGISTRAR) -> None:
        super().__init__(daemon=True)
        self._engine = database.engine(role)
        self._database = database
        self._work = work
        self._pid: int | None = None
        self._error: BaseException | None = None
        self._result: Any = None

    def run(self) -> None:
        """Do the work in a transaction of its own."""
        try:
            with self._engine.begin() as connection:
                self._pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                self._result = self._work(connection)
        except BaseException as error:  # noqa: BLE001 - handed on by result()
            self._error = error

    def wait_until_blocked_by(self, connection: Connection) -> None:
        """Return once the database says that this transaction waits for the other one's lock, and for nothing else."""
        holder = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        wait_until(lambda: self._blockers() == [holder] or not self.is_alive(), what="the second transaction's wait")
        assert self._blockers() == [holder], "the second transaction did not wait for the first"

    def result(self) -> Any:
        """What the work returned."""
        self.join(20)
        assert not self.is_alive(), "the second transaction never ended"
        if self._error is not None:
            raise self._error
        return self._result

    def _blockers(self) -> list[int]:
        if self._pid is None:
            return []
        with self._database.preparer.connect() as connection:
            return list(
                connection.execute(
                    text(
                        "SELECT pg_blocking_pids(pid) FROM pg_stat_activity"
                        " WHERE pid = :pid AND wait_event_type = 'Lock'"
                    ),
                    {"pid": self._pid},
                ).scalar_one_or_none()
                or []
            )
