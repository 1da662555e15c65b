"""The scrub: all documents in key order, a slice at a time, at a set rate.

What no index was made for (a row edited by hand, a bug of ours) is found within one period of it. Its cursor is shared:
of two loops one takes a slice, and the other the next.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from baton.db import clock
from baton.db.connect import forgettable, prepared
from baton.db.tables import documents
from baton.reconcilers.memory import Memory, member, moment

#: The name of its cursor.
NAME: Final = "scrub"
#: Seconds of its rate that a loop which was away may make up for at most.
_CATCH_UP: Final = 60.0


@dataclass(frozen=True, slots=True)
class Slice:
    """The documents of one slice, in key order."""

    document_ids: tuple[UUID, ...]
    ended: bool
    """Whether it was the last of a period."""


class Pace:
    """How many documents may be judged by now, at a rate.

    The process's own monotonic clock is good enough: nothing but the load depends on it.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._last = time.monotonic()
        self._credit = 0.0

    def due(self) -> int:
        """Documents that are due."""
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self._credit = min(self._credit + elapsed * self._rate, self._rate * _CATCH_UP)
        return int(self._credit)

    def spend(self, count: int) -> None:
        """Note that so many were judged."""
        self._credit -= count

    def rest(self) -> None:
        """Let go of what is due: everything has been judged."""
        self._credit = 0.0


def take_slice(engine: Engine, memory: Memory, *, size: int) -> Slice | None:
    """The next slice, the cursor moved behind it; ``None`` where another loop has the cursor just now."""
    with forgettable(engine) as connection, prepared(connection):
        cursor = memory.recall(connection, NAME, alone=True)
        if cursor is None:
            return None
        now = clock.now(connection)
        ids = _ids(connection, after=member(cursor, "after", UUID) or UUID(int=0), size=size)
        ended = len(ids) < size
        memory.keep(connection, NAME, _moved(cursor, ids, ended=ended, now=now))
    return Slice(tuple(ids), ended)


def completed_at(connection: Connection, memory: Memory) -> datetime | None:
    """When all documents had been walked the last time."""
    cursor = memory.recall(connection, NAME) or {}
    return member(cursor, "completed_at", moment)


def _ids(connection: Connection, *, after: UUID, size: int) -> list[UUID]:
    return list(
        connection.scalars(select(documents.c.id).where(documents.c.id > after).order_by(documents.c.id).limit(size))
    )


def _moved(cursor: Any, ids: list[UUID], *, ended: bool, now: datetime) -> dict[str, Any]:
    began = member(cursor, "began_at", moment) or now
    moved = {**cursor, "began_at": began.isoformat(), "walked": (member(cursor, "walked", int) or 0) + len(ids)}
    if not ended:
        return {**moved, "after": str(ids[-1])}
    return {"completed_at": now.isoformat(), "period_began_at": moved["began_at"], "period_walked": moved["walked"]}
