"""How much may be repaired, and how soon again: decided from Postgres, by its clock, for all replicas together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Engine, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from baton.db.connect import Executor, forgettable, prepared
from baton.db.tables import repair_budget
from baton.reconcilers.ledger import History
from baton.reconcilers.rows import Discrepancy
from baton.settings.reconciling import Reconcile

#: The discrepancy that has waits and attempts of its own: a ticket that the queue refused for the ticket's fault.
PARKED: Final = "ticket_parked"
_KEPT: Final = timedelta(hours=2)
_THIS_MINUTE: Final = func.date_trunc("minute", func.app.clock())


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether it is a discrepancy's turn on a document by what was done before."""

    due: datetime | None = None
    """Not before this; ``None``: now."""
    exhausted: bool = False
    """Attempts are used up."""


def turn(discrepancy: Discrepancy, history: History, *, config: Reconcile) -> Turn:
    """Decide by attempts and waits.

    A first repair waits for nothing. Each further one waits twice as long as the one before; once attempts are used up
    the next turn is the last, and fails the aspect visibly.
    """
    if history.last is None:
        # only a setting of no attempts at all is exhausted before the first
        return Turn(exhausted=discrepancy.limited and _attempts(discrepancy, config) == 0)
    wait = _wait(discrepancy, history.attempts, config=config)
    exhausted = discrepancy.limited and history.attempts >= _attempts(discrepancy, config)
    return Turn(due=history.last + wait, exhausted=exhausted)


def _attempts(discrepancy: Discrepancy, config: Reconcile) -> int:
    return config.parked_attempts if discrepancy.name == PARKED else config.max_attempts


def _wait(discrepancy: Discrepancy, attempts: int, *, config: Reconcile) -> timedelta:
    if discrepancy.name == PARKED:
        return timedelta(seconds=config.parked_interval)
    doublings = min(max(attempts - 1, 0), 30)
    return timedelta(seconds=min(config.backoff_max, config.backoff_initial * 2.0**doublings))


@dataclass(frozen=True, slots=True)
class Reserved:
    """Repairs of one minute that are ours to make."""

    count: int
    minute: datetime


def left(executor: Executor, *, config: Reconcile) -> int:
    """Repairs that may still be made in this minute; nothing is reserved."""
    made = executor.execute(
        select(func.coalesce(func.sum(repair_budget.c.repairs), 0)).where(
            repair_budget.c.minute == select(_THIS_MINUTE).scalar_subquery()
        )
    ).scalar_one()
    return max(config.repairs_per_minute - int(made), 0)


def reserve(engine: Engine, want: int, *, config: Reconcile) -> Reserved:
    """Take up to ``want`` of this minute's repairs, in a transaction of its own.

    Reserved before any document is locked, so that no document waits for another replica's batch; what a crash takes
    with it is not made up for within its minute. The commit of what was repaired makes it as durable as that.
    """
    with forgettable(engine) as connection, prepared(connection):
        row = connection.execute(
            insert(repair_budget)
            .values(minute=_THIS_MINUTE, repairs=0)
            .on_conflict_do_update(index_elements=["minute"], set_={"repairs": repair_budget.c.repairs})
            .returning(repair_budget.c.minute, repair_budget.c.repairs)
        ).one()
        count = min(want, max(config.repairs_per_minute - row.repairs, 0))
        if count:
            connection.execute(
                update(repair_budget)
                .where(repair_budget.c.minute == row.minute)
                .values(repairs=repair_budget.c.repairs + count)
            )
        if row.repairs == 0:
            connection.execute(
                text("DELETE FROM ops.repair_budget WHERE minute < (SELECT app.clock()) - :kept"), {"kept": _KEPT}
            )
    return Reserved(count, row.minute)


def give_back(executor: Executor, reserved: Reserved, unused: int) -> None:
    """Return what was not needed; the last statement of the transaction that repaired."""
    if unused > 0:
        executor.execute(
            update(repair_budget)
            .where(repair_budget.c.minute == reserved.minute)
            .values(repairs=repair_budget.c.repairs - unused)
        )
