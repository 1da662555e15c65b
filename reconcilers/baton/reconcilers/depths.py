"""What was read of the queues' depths, and is kept in Postgres for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, CompoundSelect, Connection, Select, delete, func, insert, or_, select, union_all

from baton.db.states import Lane
from baton.db.tables import lane_reading
from baton.reconcilers.questions import word

#: Readings are of no use once the longest streak that is asked for lies behind them.
KEPT: Final = timedelta(hours=26)
#: A reading that is younger says as much as another would: SQS itself counts a minute late.
FRESH: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a queue's depth."""

    at: datetime
    visible: int
    in_flight: int
    delayed: int

    @property
    def empty(self) -> bool:
        """Whether nothing at all was there."""
        return self.visible == self.in_flight == self.delayed == 0


def record_reading(connection: Connection, lane: Lane, *, visible: int, in_flight: int, delayed: int) -> None:
    """Keep one reading, and let go of those that can decide nothing any more.

    Those of a time to come were taken before the clock was set back. Kept, they would count once that time has come.
    """
    connection.execute(
        delete(lane_reading).where(
            lane_reading.c.lane == lane.value,
            or_(
                lane_reading.c.at < select(func.app.clock() - KEPT).scalar_subquery(),
                lane_reading.c.at > select(func.app.clock()).scalar_subquery(),
            ),
        )
    )
    connection.execute(
        insert(lane_reading).values(lane=lane.value, visible=visible, in_flight=in_flight, delayed=delayed)
    )


def fresh_readings(connection: Connection) -> dict[Lane, Reading]:
    """The newest reading of each lane, where somebody took it just now."""
    rows = connection.execute(_fresh_question())
    return {Lane(row.lane): Reading(row.at, row.visible, row.in_flight, row.delayed) for row in rows}


@cache
def _fresh_question() -> CompoundSelect[Any]:
    now = select(func.app.clock()).scalar_subquery()
    return union_all(
        *(newest(lane, now=now, within=FRESH).add_columns(word(lane).label("lane")).limit(1) for lane in Lane)
    )


def newest(lane: Lane, *, now: ColumnElement[datetime], within: timedelta = KEPT) -> Select[Any]:
    """SQL: the lane's readings that still say something, newest first.

    One of a time to come would stand before every later one until that has come.
    """
    r = lane_reading.c
    return (
        select(r.at, r.visible, r.in_flight, r.delayed)
        .where(r.lane == word(lane), r.at > now - within, r.at <= now)
        .order_by(r.at.desc())
    )
