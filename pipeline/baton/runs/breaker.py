"""The breaker in front of paid runs: closed, open while the agent is dark, on trial after a cool-down.

It is one row in Postgres, read by every dispatch (:mod:`baton.runs.budget`) and judged here, by whoever has just seen a
run withdrawn and by the reconcilers in every pass. Only what was settled since the breaker last changed counts, so that
an old outage does not open it again.

=========  ==========================================================================================
closed     opens when at least the set share of the looked-back runs failed, or on :func:`trip`
open       goes on trial once its cool-down is over; until then no run is granted
trial      grants a few runs; a majority that delivers closes it, as many failures as deny that open it
=========  ==========================================================================================

Where somebody has deleted the row, it counts as open: no run is granted, and nothing else is kept from its work.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Integer,
    Select,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import array

from baton.db.connect import Executor
from baton.db.tables import agent_run, dispatch_guard
from baton.settings.agents import Breaker, Runs
from baton.telemetry import fields, metrics

_log = logging.getLogger(__name__)

#: How far back the last runs are looked for where the window of time holds too few: farther steps only while needed.
_STEPS: Final = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
_FAILING: Final = ("rejected", "expired", "undispatched")
_GUARD: Final = select(
    dispatch_guard.c.breaker,
    dispatch_guard.c.breaker_since,
    dispatch_guard.c.retry_at,
    dispatch_guard.c.trial_runs_left,
    func.app.clock().label("now"),
)
_LOCKED_GUARD: Final = _GUARD.with_for_update(key_share=True)


class State(StrEnum):
    """Where the breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    TRIAL = "trial"


@dataclass(frozen=True, slots=True)
class Sample:
    """Settled runs that are looked back on; those that were superseded say nothing."""

    delivered: int
    failed: int

    @property
    def size(self) -> int:
        """How many there are."""
        return self.delivered + self.failed


def judge(executor: Executor, *, config: Breaker, limits: Runs) -> State:
    """Decide what the breaker has to be by now, and write it where that is a change; returns its state.

    Locks the guard's row, as the last of a transaction's locks, and only where it is about to change.
    """
    guard = _guard(executor, lock=False)
    if guard is None:
        return State.OPEN
    moved = _next(executor, guard, config=config, limits=limits)
    if moved is None:
        return State(guard.breaker)
    # again under the lock: somebody else may have moved it
    guard = _guard(executor, lock=True)
    if guard is None:
        return State.OPEN
    moved = _next(executor, guard, config=config, limits=limits)
    if moved is not None:
        _write(executor, guard, moved, config=config)
    return State(guard.breaker) if moved is None else moved.state


def trip(executor: Executor, *, reason: str, config: Breaker) -> bool:
    """Open the breaker for a reason of the caller's; ``False`` where it is not closed."""
    guard = _guard(executor, lock=True)
    if guard is None or guard.breaker != State.CLOSED:
        return False
    _write(executor, guard, _Move(State.OPEN, reason), config=config)
    return True


def read(executor: Executor) -> State:
    """Where the breaker stands; nothing is decided."""
    found = executor.execute(select(dispatch_guard.c.breaker)).scalar_one_or_none()
    return State.OPEN if found is None else State(found)


@dataclass(frozen=True, slots=True)
class _Move:
    state: State
    reason: str


def _next(executor: Executor, guard: Any, *, config: Breaker, limits: Runs) -> _Move | None:
    match State(guard.breaker):
        case State.CLOSED:
            sample = _sample(executor, since=guard.breaker_since, now=guard.now, config=config)
            if sample.size >= config.min_runs and sample.failed >= config.failure_ratio * sample.size:
                return _Move(State.OPEN, f"{sample.failed} of {sample.size} runs failed")
        case State.OPEN:
            if guard.retry_at is None or guard.retry_at <= guard.now:
                return _Move(State.TRIAL, "the cool-down is over")
        case State.TRIAL:
            return _after_trial(executor, guard, config=config, limits=limits)
    return None


def _after_trial(executor: Executor, guard: Any, *, config: Breaker, limits: Runs) -> _Move | None:
    since = guard.breaker_since
    sample = _settled(executor, agent_run.c.settled_at >= since, agent_run.c.created_at >= since)
    majority = config.trial_runs // 2 + 1
    if sample.delivered >= majority:
        return _Move(State.CLOSED, f"{sample.delivered} trial runs delivered")
    if sample.failed > config.trial_runs - majority:
        return _Move(State.OPEN, f"{sample.failed} trial runs failed")
    # runs that were replaced or deleted say nothing: once no granted run can still be on its way, grant new ones
    patience = timedelta(seconds=limits.deadline + limits.upload_slack)
    if guard.trial_runs_left <= 0 and guard.breaker_since + 2 * patience < guard.now:
        return _Move(State.TRIAL, "the trial runs brought no answer")
    return None


def _sample(executor: Executor, *, since: datetime, now: datetime, config: Breaker) -> Sample:
    """The last runs, or those of the window of time where these are more; by the BRIN index on ``settled_at``.

    One question for all steps: each further one is taken in the server, where those before it have found too few.
    """
    first = timedelta(seconds=config.window_time)
    values: dict[str, object] = {"since": since, "enough": config.window_runs}
    for number, window in enumerate((first, *_STEPS)):
        values[f"since_{number}"] = max(since, now - max(window, first))
    delivered, size = executor.execute(_last_runs(), values).scalar_one()
    return Sample(delivered=delivered, failed=size - delivered)


@cache
def _last_runs() -> Select[Any]:
    """An array: how many delivered, and how many there are."""
    enough, begun = bindparam("enough", type_=Integer()), bindparam("since", type_=DateTime(timezone=True))
    classify = agent_run.c.purpose == literal_column("'classify'")
    steps = []
    for number in range(1 + len(_STEPS)):
        since = bindparam(f"since_{number}", type_=DateTime(timezone=True))
        last = enough if number else None
        counts = _counts(agent_run.c.settled_at >= since, classify, last=last).subquery(f"step_{number}")
        found = select(array([counts.c.delivered, counts.c.size]))
        if number < len(_STEPS):
            found = found.where(or_(counts.c.size >= enough, since <= begun))
        steps.append(found.scalar_subquery())
    return select(func.coalesce(*steps))


def _settled(executor: Executor, *conditions: ColumnElement[bool]) -> Sample:
    row = executor.execute(_counts(*conditions)).one()
    return Sample(delivered=row.delivered, failed=row.size - row.delivered)


def _counts(*conditions: ColumnElement[bool], last: ColumnElement[int] | None = None) -> Select[int, int]:
    """``delivered`` and ``size`` of the settled runs.

    :param last: of the newest so many.
    """
    states = agent_run.c.state.in_((*_FAILING, "delivered"))
    runs = select(agent_run.c.state).where(states, *conditions)
    if last is not None:
        runs = runs.order_by(agent_run.c.settled_at.desc()).limit(last)
    chosen = runs.subquery()
    delivered = func.count().filter(chosen.c.state == "delivered")
    return select(delivered.label("delivered"), func.count().label("size")).select_from(chosen)


def _guard(executor: Executor, *, lock: bool) -> Any | None:
    return executor.execute(_LOCKED_GUARD if lock else _GUARD).one_or_none()


def _write(executor: Executor, guard: Any, move: _Move, *, config: Breaker) -> None:
    executor.execute(
        update(dispatch_guard).values(
            breaker=move.state.value,
            breaker_since=func.app.clock(),
            retry_at=guard.now + timedelta(seconds=config.cooldown) if move.state is State.OPEN else None,
            trial_runs_left=config.trial_runs if move.state is State.TRIAL else 0,
            reason=move.reason,
        )
    )
    metrics.BREAKER_OPEN.set(0 if move.state is State.CLOSED else 1)
    _log.warning("the breaker moved", extra=fields.of(state=move.state, reason=move.reason))
