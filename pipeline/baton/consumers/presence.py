"""This consumer's row in ``ops.consumer_heartbeat``: it says that somebody polls the queue.

Whether an unhandled ticket is lost or merely waiting, and whether a lane is stalled, is judged by these rows. So the
row is renewed after a receive that worked, or while every worker is busy, and never by a timer of its own.
"""

from __future__ import annotations

import time
from enum import StrEnum
from importlib.metadata import version
from uuid import UUID

from sqlalchemy import Connection, Engine, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from baton.db.tables import consumer_heartbeat

#: Seconds between two renewals at least.
INTERVAL = 5.0


class QueueName(StrEnum):
    """The queue that a consumer serves, as the heartbeat names it."""

    INGEST = "ingest"
    REGISTRAR = "registrar"
    RESULTS = "results"


class Presence:
    """One consumer's heartbeat; written by the receiving thread only."""

    def __init__(self, engine: Engine, queue: QueueName) -> None:
        self.consumer_id: UUID = uuid7()
        self._engine = engine
        self._queue = queue
        self._last: float | None = None

    def renew(self, *, force: bool = False) -> bool:
        """Say that the queue was polled just now; at most once per :data:`INTERVAL`. Returns whether it was written."""
        now = time.monotonic()
        if not force and self._last is not None and now - self._last < INTERVAL:
            return False
        with self._engine.begin() as connection:
            if self._last is None:
                self._sweep(connection)
            statement = insert(consumer_heartbeat).values(
                consumer_id=self.consumer_id, queue=self._queue.value, version=version("baton")
            )
            connection.execute(
                statement.on_conflict_do_update(index_elements=["consumer_id"], set_={"polled_at": func.app.clock()})
            )
        self._last = now
        return True

    def leave(self) -> None:
        """Take the row away; nobody polls here any more."""
        with self._engine.begin() as connection:
            connection.execute(delete(consumer_heartbeat).where(consumer_heartbeat.c.consumer_id == self.consumer_id))
        self._last = None

    def _sweep(self, connection: Connection) -> None:
        """Remove what consumers of this queue left that died without a word, a day and more ago."""
        horizon = select(func.app.clock() - func.make_interval(0, 0, 0, 1)).scalar_subquery()
        connection.execute(
            delete(consumer_heartbeat).where(
                consumer_heartbeat.c.queue == self._queue.value, consumer_heartbeat.c.polled_at < horizon
            )
        )
