"""A sudden jump in what disagrees is not healed at once: something bigger is wrong, and the breaker opens."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.memory import Memory, member, moment
from baton.reconcilers.results import PassResult
from baton.runs import breaker
from baton.settings.agents import Breaker
from baton.telemetry import fields

_log = logging.getLogger(__name__)

#: The name of the level that new discrepancies are counted from.
NAME: Final = "level"


def suspicious(result: PassResult) -> int:
    """What was found that is trouble; retries whose time has come, and marks to write, are everyday work."""
    return sum(count for name, count in result.found.items() if name in DISCREPANCIES and DISCREPANCIES[name].limited)


def level(connection: Connection, memory: Memory) -> int:
    """The count that new discrepancies are counted from."""
    return _count(memory.recall(connection, NAME) or {})


def _count(known: Mapping[str, Any]) -> int:
    return max(member(known, "count", int) or 0, 0)


def exceeds(result: PassResult, *, level: int, config: Breaker) -> bool:
    """Whether more is new than the cap allows, by what was found so far."""
    return suspicious(result) - level > config.discrepancy_cap


def judge(
    connection: Connection, memory: Memory, result: PassResult, *, config: Breaker, now: datetime, ended: bool = True
) -> bool:
    """Open the breaker where more is new than the cap allows; ``True`` where this call has opened it.

    New is what is found above the level, which is the lowest count of the time that is looked back on. Whenever the cap
    was exceeded the level is the present count: the same discrepancies do not open it again.

    :param now: by the database's clock.
    :param ended: whether the pass has seen everything; before that a count says only that there is so much at least.
    """
    found = suspicious(result)
    known = memory.recall(connection, NAME)
    if not known:
        known = {"count": 0, "at": now.isoformat()}
        memory.keep(connection, NAME, known)
    count, since = _count(known), member(known, "at", moment)
    exceeded = exceeds(result, level=count, config=config)
    new = found - count
    opened = exceeded and breaker.trip(connection, reason=f"{new} new discrepancies", config=config)
    aged = since is None or since < now - timedelta(seconds=config.window_time)
    if exceeded or (ended and (aged or found < count)):
        memory.keep(connection, NAME, {"count": found, "at": now.isoformat()})
    if opened:
        _log.error("a jump of discrepancies", extra=fields.of(found=found, count=new))
    return opened
