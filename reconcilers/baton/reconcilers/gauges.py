"""What a loop shows: the last pass's counts, and levels that cost next to nothing at any table size.

Counts are capped and never of a whole table; ages are those of an index's first row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Engine, FromClause, Select, func, literal_column, select

from baton.db.connect import prepared, read_connection
from baton.db.states import Lane, RegistrationStatus
from baton.db.tables import dead_letter, documents, outbox
from baton.reconcilers import scrub, windows
from baton.reconcilers.classification import DISCREPANCIES, IMPOSSIBLE
from baton.reconcilers.lanes import oldest_sent, sent
from baton.reconcilers.memory import Memory
from baton.reconcilers.questions import word
from baton.reconcilers.results import Guard, PassResult
from baton.reconcilers.windows import Held
from baton.runs import breaker
from baton.telemetry import metrics
from baton.telemetry.labels import PassOutcome, QueueRole

#: A count that was capped shows this.
CAP: Final = 10_001
#: Statuses that an index answers for; the others are most of the table, and only their cap is known.
_LIVE: Final = documents.c.deleted_at.is_(None)


@dataclass(frozen=True, slots=True)
class Levels:
    """How things stand in the database around a pass."""

    held: Held | None
    breaker: breaker.State


def tell(engine: Engine, result: PassResult, *, memory: Memory) -> Levels:
    """Show what a pass found and did, and how things stand now.

    :raises DBAPIError: the database is away; what the pass found is shown all the same.
    """
    _tell_result(result)
    with read_connection(engine) as connection, prepared(connection):
        told = connection.execute(_STANDS).one()._mapping  # noqa: SLF001 - the public name of a row's mapping
        scrubbed = scrub.completed_at(connection, memory)
        levels = Levels(windows.held(connection), breaker.read(connection))
    now: datetime = told["now"]
    if result.finished:
        metrics.LAST_PASS.set(now.timestamp())
    metrics.LAST_SCRUB.set(0 if scrubbed is None else scrubbed.timestamp())
    metrics.REPAIRS_HELD.set(int(levels.held is not None))
    for state in breaker.State:
        metrics.BREAKER_STATE.set(int(state is levels.breaker), state=state)
    metrics.BREAKER_OPEN.set(int(levels.breaker is not breaker.State.CLOSED))
    for status in RegistrationStatus:
        metrics.DOCUMENTS.set(told[_documents(status)], status=status)
    metrics.REGISTERING_OLDEST.set(_age(told[_REGISTERING_SINCE], now))
    for lane in Lane:
        metrics.LANE_OPEN.set(told[_open(lane)], lane=lane)
        metrics.LANE_OLDEST.set(_age(told[_open_since(lane)], now), lane=lane)
        metrics.LANE_STALLED.set(int(lane in result.stalled), lane=lane)
        metrics.TICKETS_PARKED.set(told[_parked(lane)], lane=lane)
    for queue in QueueRole:
        metrics.DEAD_LETTERS.set(told[_dead(queue)], queue=queue)
    return levels


def outcome_of(result: PassResult) -> PassOutcome:
    """How a pass ended that did not fail as a whole."""
    if not result.finished:
        return PassOutcome.STOPPED
    return PassOutcome.PARTIAL if result.failures or result.errors else PassOutcome.DONE


def _tell_result(result: PassResult) -> None:
    metrics.PASSES.add(outcome=outcome_of(result))
    metrics.PASS_DURATION.observe(result.seconds)
    metrics.SCRUBBED.add(result.scrubbed)
    for (name, effect), count in result.effects.items():
        metrics.REPAIRS.add(count, discrepancy=name, result=effect)
    for guard in Guard:
        metrics.REPAIRS_REFUSED.add(result.refused[guard], guard=guard)
    if not result.finished:
        return
    for name in (*DISCREPANCIES, IMPOSSIBLE):
        metrics.DISCREPANCIES.set(result.found[name], discrepancy=name)
        oldest = result.oldest.get(name)
        age = 0.0 if oldest is None or result.began is None else _age(oldest, result.began)
        metrics.DISCREPANCY_OLDEST.set(age, discrepancy=name)


def _age(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max((now - moment).total_seconds(), 0.0)


def _capped(source: FromClause, *conditions: ColumnElement[bool]) -> Select[Any]:
    some = select(literal_column("1")).select_from(source).where(*conditions).limit(CAP).subquery()
    return select(func.count()).select_from(some)


# What each answer is called, where it is asked and where it is shown.

_REGISTERING_SINCE: Final = "registering since"


def _documents(status: RegistrationStatus) -> str:
    return f"documents {status}"


def _open(lane: Lane) -> str:
    return f"open {lane}"


def _open_since(lane: Lane) -> str:
    return f"open since {lane}"


def _parked(lane: Lane) -> str:
    return f"parked {lane}"


def _dead(queue: QueueRole) -> str:
    return f"dead {queue}"


#: One question for all of it: a loop at rest does little else, and each statement costs it more than the server.
_ASKED: Final[Mapping[str, Select[Any]]] = {
    **{
        _documents(status): _capped(documents, documents.c.registration_status == word(status.value), _LIVE)
        for status in RegistrationStatus
    },
    _REGISTERING_SINCE: (
        select(documents.c.registration_status_since)
        .where(documents.c.registration_status == word(RegistrationStatus.REGISTERING.value), _LIVE)
        .order_by(documents.c.registration_status_since, documents.c.id)
        .limit(1)
    ),
    **{_open(lane): _capped(outbox, *sent(lane)) for lane in Lane},
    **{_open_since(lane): oldest_sent(lane) for lane in Lane},
    **{
        _parked(lane): _capped(
            outbox,
            outbox.c.lane == word(lane.value),
            outbox.c.parked_at.is_not(None),
            outbox.c.handled_at.is_(None),
        )
        for lane in Lane
    },
    **{
        _dead(queue): _capped(dead_letter, dead_letter.c.queue == word(queue.value), dead_letter.c.outcome.is_(None))
        for queue in QueueRole
    },
}
_STANDS: Final = select(
    func.app.clock().label("now"), *(each.scalar_subquery().label(name) for name, each in _ASKED.items())
)
