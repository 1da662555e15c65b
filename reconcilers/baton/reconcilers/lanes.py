"""What is known of a lane: whether anybody consumes it, and before which moment its unreceived tickets were passed by.

One reading of a queue's depth is never trusted. The readings are kept in Postgres, so that replicas share them and a
restart does not begin anew; all of it is by the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
)

from baton.db.states import Lane
from baton.db.tables import consumer_heartbeat, lane_reading, outbox
from baton.reconcilers.depths import KEPT, Reading, newest
from baton.reconcilers.questions import word

#: A consumer that polled within this is alive: it says so every few seconds, after a receive or while all workers are busy.
ALIVE_WITHIN: Final = timedelta(seconds=60)
#: Readings in a row that must have been empty, and for how long at least.
EMPTY_READINGS: Final = 3
EMPTY_FOR: Final = timedelta(minutes=5)
#: For how long everything that is received must have been sent later, and by how much.
OVERTAKEN_FOR: Final = timedelta(minutes=15)
OVERTAKEN_MARGIN: Final = timedelta(minutes=1)
#: Receipts must begin in the first, and end in the last, such fraction of that time.
SPREAD: Final = 4
#: Readings that are looked back on at most.
_STREAK: Final = 1000
#: And those that mostly say enough.
_FEW: Final = 50
NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneState:
    """One lane at one moment; ``NEVER`` as a watermark means that nothing was passed by."""

    lane: Lane
    alive: bool
    visibility: timedelta
    retention: timedelta
    empty_before: datetime = NEVER
    overtaken_before: datetime = NEVER

    @property
    def empty_for(self) -> timedelta:
        """For how long its queue must be seen empty, so that what was sent before is lost."""
        return empty_for(self.visibility)

    @property
    def passed_before(self) -> datetime:
        """Unreceived tickets that were sent before this may be lost; those sent later are not."""
        return max(self.empty_before, self.overtaken_before)

    def parameters(self) -> Mapping[str, object]:
        """The values of :class:`baton.reconcilers.situation.LaneColumns`."""
        return {
            f"{self.lane}_alive": self.alive,
            f"{self.lane}_visibility": self.visibility,
            f"{self.lane}_retention": self.retention,
            f"{self.lane}_empty_before": self.empty_before,
            f"{self.lane}_overtaken_before": self.overtaken_before,
        }


def empty_for(visibility: timedelta) -> timedelta:
    """For how long a queue must be seen empty: by then whoever had one of its messages in hand has let go of it."""
    return max(2 * visibility, EMPTY_FOR)


def lane_states(
    connection: Connection,
    *,
    now: datetime,
    visibility: timedelta,
    retention: timedelta,
    seen: Mapping[Lane, Sequence[Reading]] = MappingProxyType({}),
) -> dict[Lane, LaneState]:
    """What is known of each lane.

    :param now: by the database's clock.
    :param visibility: of the lanes' queues.
    :param retention: of the lanes' queues.
    :param seen: readings that are not kept in Postgres, since whoever took them cannot write there.
    """
    begin = now - max(2 * visibility, OVERTAKEN_FOR)
    span = empty_for(visibility)
    found = {}
    for lane, first in _firsts(connection, now=now, begin=begin).items():
        began = None
        if first.empty is not False or seen.get(lane):  # the newest reading mostly says that there is no streak
            began = _empty_since(connection, lane, span=span, now=now, seen=seen.get(lane, ()))
        overtaken = NEVER
        if first.waits is not None:
            overtaken = _overtaken_before(connection, lane, first.waits, begin=begin, now=now)
        found[lane] = LaneState(
            lane=lane,
            alive=first.alive,
            visibility=visibility,
            retention=retention,
            empty_before=NEVER if began is None or not _polled_since(connection, lane, began, now=now) else began,
            overtaken_before=overtaken,
        )
    return found


def sent(lane: Lane) -> tuple[ColumnElement[bool], ...]:
    """SQL: a ticket of the lane is open, and no longer the relay's."""
    return (
        outbox.c.lane == word(lane),
        outbox.c.dispatched_at.is_not(None),
        outbox.c.handled_at.is_(None),
    )


def oldest_sent(lane: Lane) -> Select[Any]:
    """When the oldest of them was sent, by the first row of the index over open tickets."""
    return select(outbox.c.dispatched_at).where(*sent(lane)).order_by(outbox.c.dispatched_at, outbox.c.id).limit(1)


@dataclass(frozen=True, slots=True)
class _First:
    """What one question tells of a lane."""

    alive: bool
    """Whether somebody consumes it."""
    waits: tuple[int, datetime] | None
    """The oldest ticket that was sent before a moment and never received, with its time."""
    empty: bool | None
    """Whether the newest reading was; ``None`` without any."""


def _firsts(connection: Connection, *, now: datetime, begin: datetime) -> dict[Lane, _First]:
    rows = connection.execute(first_question(), {"now": now, "begin": begin}).one()
    found = {}
    for number, lane in enumerate(Lane):
        alive, ticket_id, sent_at, empty = rows[4 * number : 4 * number + 4]
        found[lane] = _First(alive, None if ticket_id is None else (ticket_id, sent_at), empty)
    return found


@cache
def first_question() -> Select[Any]:
    """Four columns for each lane, all of them by the first row of an index."""
    now, begin = _moment("now"), _moment("begin")
    columns: list[ColumnElement[Any]] = []
    source: FromClause = select(literal_column("1").label("one")).subquery("one")
    for lane in Lane:
        waits = (
            select(outbox.c.id, outbox.c.dispatched_at)
            .where(
                *sent(lane),
                outbox.c.dispatched_at < begin,
                # in words that no index knows: the BRIN one would be read from end to end where it seems that none waits
                outbox.c.first_received_at.is_(None).is_(True),
            )
            .order_by(outbox.c.dispatched_at)
            .limit(1)
            .subquery(f"waits_{lane}")
        )
        reading = newest(lane, now=now).limit(1)
        empty = and_(lane_reading.c.visible == 0, lane_reading.c.in_flight == 0, lane_reading.c.delayed == 0)
        source = source.outerjoin(waits, true())
        polls = exists(select(consumer_heartbeat.c.consumer_id).where(*_polls(lane, now=now)))
        columns += [polls, waits.c.id, waits.c.dispatched_at, reading.with_only_columns(empty).scalar_subquery()]
    return select(*(column.label(f"known_{number}") for number, column in enumerate(columns))).select_from(source)


def _moment(name: str) -> ColumnElement[datetime]:
    return bindparam(name, type_=DateTime(timezone=True))


def _polls(lane: Lane, *, now: ColumnElement[datetime]) -> tuple[ColumnElement[bool], ...]:
    """A consumer polls. One that did so in a time to come wrote that before the clock was set back, and may be dead."""
    polled = consumer_heartbeat.c.polled_at
    return consumer_heartbeat.c.queue == word(lane), polled > now - ALIVE_WITHIN, polled < now + ALIVE_WITHIN


def _polled_since(connection: Connection, lane: Lane, began: datetime, *, now: datetime) -> bool:
    """Whether one consumer that was there when the streak began polls still: what it was asked for it would have seen."""
    return bool(connection.execute(_polls_since(lane), {"now": now, "began": began}).scalar_one())


@cache
def _polls_since(lane: Lane) -> Select[Any]:
    polls = select(consumer_heartbeat.c.consumer_id).where(
        *_polls(lane, now=_moment("now")), consumer_heartbeat.c.started_at <= _moment("began")
    )
    return select(exists(polls))


def _empty_since(
    connection: Connection, lane: Lane, *, span: timedelta, now: datetime, seen: Sequence[Reading]
) -> datetime | None:
    """The latest moment from which the queue was seen empty for long enough; the newest readings mostly say it."""
    for limit in (_FEW, _STREAK):
        streak = _empty_streak(connection, lane, now=now, seen=seen, limit=limit)
        began = _began(streak, span=span)
        if began is not None or len(streak) < limit:
            return began
    return None


def _empty_streak(
    connection: Connection, lane: Lane, *, now: datetime, seen: Sequence[Reading], limit: int
) -> Sequence[Reading]:
    """The newest readings in a row that were empty, newest first."""
    rows = connection.execute(_newest(lane), {"now": now, "limit": limit})
    taken = [*(Reading(*row) for row in rows), *(each for each in seen if now - KEPT < each.at <= now)]
    return list(takewhile(lambda each: each.empty, sorted(taken, key=lambda each: each.at, reverse=True)))


@cache
def _newest(lane: Lane) -> Select[Any]:
    """The newest readings."""
    return newest(lane, now=_moment("now")).limit(bindparam("limit", type_=Integer()))


def _began(streak: Sequence[Reading], *, span: timedelta) -> datetime | None:
    """The latest moment from which enough empty readings were taken for long enough; ``None`` where there is none."""
    for count, reading in enumerate(streak, start=1):
        if count >= EMPTY_READINGS and streak[0].at - reading.at >= span:
            return reading.at
    return None


def _overtaken_before(
    connection: Connection, lane: Lane, waits: tuple[int, datetime], *, begin: datetime, now: datetime
) -> datetime:
    """Whatever was sent before this was passed by, ever since a moment, by everything that was received.

    Receipts must reach from that moment to now, with one consumer polling all the while: a lane that is quiet, or whose
    consumers have only just come back to a long queue, says nothing.

    :param waits: the oldest unreceived ticket that was sent before the moment; without one nothing is asked.
    """
    if not _polled_since(connection, lane, begin, now=now):
        return NEVER
    if _in_turn(connection, lane, waits, begin=begin, now=now):
        return NEVER  # a long queue whose turn comes: the receipts, of which there are many, need not be read
    oldest, first, last, muddled = connection.execute(
        _receipts(lane), {"now": now, "begin": begin, "waiting": waits[0]}
    ).one()
    spread = (now - begin) / SPREAD
    if oldest is None or muddled or first - begin > spread or now - last > spread:
        return NEVER
    passed_by: datetime = min(oldest, begin)
    return passed_by - OVERTAKEN_MARGIN


@cache
def _receipts(lane: Lane) -> Select[Any]:
    """Of what was received for the first time since a moment: when it was sent, and when received."""
    return select(
        func.min(outbox.c.dispatched_at),
        func.min(outbox.c.first_received_at),
        func.max(outbox.c.first_received_at),
        func.bool_or(_muddled(bindparam("waiting", type_=BigInteger()))),
    ).where(
        outbox.c.first_received_at > _moment("begin"),
        outbox.c.first_received_at <= _moment("now"),
        outbox.c.lane == word(lane),
        outbox.c.dispatched_at.is_not(None),
    )


def _muddled(waiting: ColumnElement[int]) -> ColumnElement[bool]:
    """The clock was set back between the writing of a received ticket and that of the one that waits.

    It seems to have been received before it was sent, or written after one of a higher number. What was sent later is
    then not told by the times: a queue full of what was sent before would pass everything by that was sent since.
    """
    later = select(outbox.c.created_at).where(outbox.c.id == waiting).correlate(None).scalar_subquery()
    return or_(
        outbox.c.dispatched_at > outbox.c.first_received_at + OVERTAKEN_MARGIN,
        and_(outbox.c.id < waiting, outbox.c.created_at > later + OVERTAKEN_MARGIN),
    )


#: Tickets before the oldest unreceived one that are looked at.
_NEIGHBOURS: Final = 100


def _in_turn(
    connection: Connection, lane: Lane, waits: tuple[int, datetime], *, begin: datetime, now: datetime
) -> bool:
    """Whether one of the tickets written just before the oldest unreceived one was received lately.

    It was sent no later, so not everything that was received had been sent later: nothing was passed by.
    """
    ticket_id, sent_at = waits
    values = {"waiting": ticket_id, "sent_by": sent_at + OVERTAKEN_MARGIN, "begin": begin, "now": now}
    return bool(connection.execute(_neighbours(lane), values).scalar_one())


@cache
def _neighbours(lane: Lane) -> Select[Any]:
    """Whether any of the tickets just before was received since a moment, and sent by another."""
    before = (
        select(outbox.c.lane, outbox.c.dispatched_at, outbox.c.first_received_at)
        .where(outbox.c.id < bindparam("waiting", type_=BigInteger()))
        .order_by(outbox.c.id.desc())
        .limit(_NEIGHBOURS)
        .subquery()
    )
    received = select(before.c.lane).where(
        before.c.lane == word(lane),
        before.c.first_received_at > _moment("begin"),
        before.c.first_received_at <= _moment("now"),
        before.c.dispatched_at <= _moment("sent_by"),
    )
    return select(exists(received))
