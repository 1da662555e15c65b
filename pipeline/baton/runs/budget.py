"""Whether one more agent run may be paid for now, asked in the transaction that mints it.

Budget and breaker live in Postgres, so that all replicas share them and a restart forgets nothing. Their rows are the
last in the order of locks: who holds them waits for nobody, and gives them back at the commit that follows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from sqlalchemy import func, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert

from baton.db import clock
from baton.db.connect import Executor
from baton.db.tables import agent_spend, dispatch_guard
from baton.settings.agents import Runs

_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
#: Spend older than this can decide nothing any more.
_KEPT = timedelta(hours=2)
#: The wait where nobody knows when the reconcilers will decide.
_UNDECIDED = timedelta(seconds=30)
_SHORTEST = timedelta(seconds=1)
#: A breaker that was opened by hand for ever is asked again this often: what waits for it must notice when it closes.
_LONGEST = timedelta(days=1)


class Why(StrEnum):
    """What holds a run back."""

    BUDGET = "budget"
    BREAKER = "breaker"


@dataclass(frozen=True, slots=True)
class Granted:
    """The run may be minted, and is counted as paid for if this transaction commits."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Not now."""

    wait: timedelta
    """When it is worth asking again."""
    why: Why


Answer: TypeAlias = Granted | Refused


def ask(executor: Executor, *, limits: Runs) -> Answer:
    """Ask for one run, and count it where it is granted.

    The limit is the lower of the setting's and the guard row's. Nothing is locked where the answer is no by the breaker
    alone, so a dark agent costs a read; a limit is kept exactly, by locking the guard's row.
    """
    guard = _guard(executor, lock=False)
    refused = _by_breaker(guard)
    if refused is not None:
        return refused
    if guard.breaker == "trial" or _limit(guard, limits) is not None:
        guard = _guard(executor, lock=True)
        refused = _by_breaker(guard) or _by_budget(executor, guard, limit=_limit(guard, limits))
        if refused is not None:
            return refused
        if guard.breaker == "trial":
            executor.execute(update(dispatch_guard).values(trial_runs_left=dispatch_guard.c.trial_runs_left - 1))
    _count(executor)
    return Granted()


def peek(executor: Executor, *, limits: Runs) -> Refused | None:
    """What would hold a run back now; nothing is locked or counted."""
    guard = _guard(executor, lock=False)
    return _by_breaker(guard) or _by_budget(executor, guard, limit=_limit(guard, limits))


def spent(executor: Executor) -> int:
    """Runs paid for in the last hour, by whole minutes: up to a minute more than an hour is looked back on."""
    counted = executor.execute(
        select(func.coalesce(func.sum(agent_spend.c.runs), 0)).where(agent_spend.c.minute >= _since())
    )
    return int(counted.scalar_one())


def spread(wait: timedelta, ticket_id: int) -> timedelta:
    """Up to a quarter more, different for each ticket: what was held back together must not come back together."""
    return wait * (1 + (ticket_id % 64) / 256)


@dataclass(frozen=True, slots=True)
class _Absent:
    """What stands for the guard's row where somebody has deleted it: nothing is paid for until it is there again."""

    now: datetime
    runs_per_hour: None = None
    breaker: str = "open"
    trial_runs_left: int = 0
    retry_at: None = None


def _guard(executor: Executor, *, lock: bool) -> Any:
    statement = select(
        dispatch_guard.c.runs_per_hour,
        dispatch_guard.c.breaker,
        dispatch_guard.c.trial_runs_left,
        dispatch_guard.c.retry_at,
        func.app.clock().label("now"),
    )
    row = executor.execute(statement.with_for_update(key_share=True) if lock else statement).one_or_none()
    return row or _Absent(clock.now(executor))


def _limit(guard: Any, limits: Runs) -> int | None:
    given = [limit for limit in (guard.runs_per_hour, limits.hourly_budget) if limit is not None]
    return min(given, default=None)


def _by_breaker(guard: Any) -> Refused | None:
    if guard.breaker == "closed" or (guard.breaker == "trial" and guard.trial_runs_left > 0):
        return None
    # open, or every trial run is out: the reconcilers decide, the former not before retry_at
    wait = guard.retry_at - guard.now if guard.breaker == "open" and guard.retry_at is not None else _UNDECIDED
    return Refused(min(max(wait, _UNDECIDED if wait <= timedelta(0) else _SHORTEST), _LONGEST), Why.BREAKER)


def _by_budget(executor: Executor, guard: Any, *, limit: int | None) -> Refused | None:
    del guard  # its lock is what makes the count below exact, where one is taken
    if limit is None or spent(executor) < limit:
        return None
    oldest: datetime | None = executor.execute(
        select(func.min(agent_spend.c.minute)).where(agent_spend.c.minute >= _since(), agent_spend.c.runs > 0)
    ).scalar_one()
    if oldest is None:  # the limit is nothing at all
        return Refused(_HOUR, Why.BUDGET)
    wait: timedelta = executor.execute(select(oldest + _HOUR + _MINUTE - func.app.clock())).scalar_one()
    return Refused(max(wait, _SHORTEST), Why.BUDGET)


def _count(executor: Executor) -> None:
    counted: Any = (
        insert(agent_spend)
        .values(minute=func.date_trunc("minute", func.app.clock()), runs=1)
        .on_conflict_do_update(index_elements=["minute"], set_={"runs": agent_spend.c.runs + 1})
        .returning(literal_column("(xmax = 0)").label("first"))
    )
    if executor.execute(counted).scalar_one():
        executor.execute(
            text("DELETE FROM ops.agent_spend WHERE minute < (SELECT app.clock()) - :kept"), {"kept": _KEPT}
        )


def _since() -> Any:
    return select(func.date_trunc("minute", func.app.clock() - _HOUR)).scalar_subquery()
