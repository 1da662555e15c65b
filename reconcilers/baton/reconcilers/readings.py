"""Looking at the lanes' queues once a pass, and what is known of the lanes by it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Engine, select

from baton.aws.errors import AwsError
from baton.aws.queues import Depth, Queue
from baton.db.connect import forgettable, read_connection
from baton.db.states import Lane
from baton.reconcilers.depths import KEPT, Reading, fresh_readings, record_reading
from baton.reconcilers.lanes import LaneState, lane_states, oldest_sent
from baton.settings.stores import Queues
from baton.telemetry import fields, metrics
from baton.telemetry.labels import DepthState

_log = logging.getLogger(__name__)

#: How long tickets must have waited for a consumer before a lane without one counts as stalled.
STALLED_AFTER: Final = timedelta(minutes=2)


class Readings:
    """Reads the depths of the lanes' queues. A queue that does not answer is no reading, never an empty one."""

    def __init__(self, queues: Mapping[Lane, Queue] | None, *, config: Queues, keep: bool) -> None:
        """Nothing is asked yet.

        :param queues: ``None``: this loop cannot see them, and relies on what others have read.
        :param keep: whether readings are written down; ``False`` where the role cannot write: they are kept in this process.
        """
        self._queues = queues or {}
        self._config = config
        self._keep = keep
        self._taken: dict[Lane, tuple[Depth, float]] = {}
        self._seen: dict[Lane, list[Reading]] = {}

    def take(self, engine: Engine) -> None:
        """Read every queue, with no transaction open, and keep what was read.

        Where nothing can be kept a queue is left alone that somebody who keeps his readings has just read.
        """
        known: Mapping[Lane, Reading] = {}
        if self._queues and not self._keep:
            with read_connection(engine) as connection:
                known = fresh_readings(connection)
        for lane, queue in self._queues.items():
            if lane in known:
                _tell(lane, known[lane])
                continue
            try:
                depth = queue.depth()
            except AwsError as error:
                _log.warning("a queue's depth could not be read", exc_info=error, extra=fields.of(lane=lane))
                continue
            _tell(lane, depth)
            if not self._keep:
                self._taken[lane] = depth, time.monotonic()
                continue
            with forgettable(engine) as connection:
                record_reading(
                    connection,
                    lane,
                    visible=depth.visible,
                    in_flight=depth.in_flight,
                    delayed=depth.delayed,
                )

    def _note(self, now: datetime) -> None:
        """Give what was read its time by the database's clock, which the pass asks for anyway."""
        asked, taken = time.monotonic(), self._taken
        self._taken = {}
        for lane, (depth, at) in taken.items():
            moment = now - timedelta(seconds=asked - at)
            kept = [each for each in self._seen.get(lane, []) if now - KEPT <= each.at <= moment]
            self._seen[lane] = [*kept, Reading(moment, depth.visible, depth.in_flight, depth.delayed)]

    def states(self, connection: Connection, *, now: datetime) -> dict[Lane, LaneState]:
        """What is known of each lane.

        :param now: by the database's clock, asked just before.
        """
        self._note(now)
        return lane_states(
            connection,
            now=now,
            visibility=timedelta(seconds=self._config.visibility),
            retention=timedelta(seconds=self._config.retention),
            seen=self._seen,
        )


def stalled(connection: Connection, states: Mapping[Lane, LaneState], *, now: datetime) -> tuple[Lane, ...]:
    """Lanes that nobody consumes though tickets were sent a while ago."""
    dead = [lane for lane, state in states.items() if not state.alive]
    if not dead:
        return ()
    oldest = connection.execute(select(*(oldest_sent(lane).scalar_subquery() for lane in dead))).one()
    return tuple(lane for lane, at in zip(dead, oldest, strict=True) if at is not None and at < now - STALLED_AFTER)


def _tell(lane: Lane, depth: Depth | Reading) -> None:
    for state, count in (
        (DepthState.VISIBLE, depth.visible),
        (DepthState.IN_FLIGHT, depth.in_flight),
        (DepthState.DELAYED, depth.delayed),
    ):
        metrics.QUEUE_MESSAGES.set(count, queue=lane, state=state)
