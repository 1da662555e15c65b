"""What a loop shows: the last pass's counts, and levels that cost next to nothing at any table size.

Counts are capped and never of a whole table; ages are those of an index's first row.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, literal_column, select

from baton.db.states import Lane, RegistrationStatus
from baton.db.tables import dead_letter, documents, outbox
from baton.reconcilers import scrub, windows
from baton.reconcilers.classification import DISCREPANCIES, IMPOSSIBLE
from baton.reconcilers.memory import Memory
from baton.reconcilers.questions import word
from baton.reconcilers.results import Guard, PassResult
from baton.runs import breaker
from baton.telemetry import metrics
from baton.telemetry.labels import PassOutcome, QueueRole

#: A count that was capped shows this.
CAP: Final = 10_001
#: Statuses that an index answers for; the others are most of the table, and only their cap is known.
_LIVE: Final = documents.c.deleted_at.is_(None)


def tell(connection: Connection, result: PassResult, *, memory: Memory) -> None:
    """Show what a pass found and did, and how things stand now."""
    _tell_result(result)
    now: datetime = connection.execute(select(func.app.clock())).scalar_one()
    if result.finished:
        metrics.LAST_PASS.set(now.timestamp())
    scrubbed = scrub.completed_at(connection, memory)
    metrics.LAST_SCRUB.set(0 if scrubbed is None else scrubbed.timestamp())
    metrics.REPAIRS_HELD.set(int(windows.held(connection) is not None))
    state = breaker.read(connection)
    for each in breaker.State:
        metrics.BREAKER_STATE.set(int(each is state), state=each)
    metrics.BREAKER_OPEN.set(int(state is not breaker.State.CLOSED))
    for status in RegistrationStatus:
        metrics.DOCUMENTS.set(connection.execute(_COUNT[status]).scalar_one(), status=status)
    oldest = connection.execute(_OLDEST_REGISTERING).scalar_one_or_none()
    metrics.REGISTERING_OLDEST.set(_age(oldest, now))
    for lane in Lane:
        metrics.LANE_OPEN.set(connection.execute(_OPEN[lane]).scalar_one(), lane=lane)
        metrics.LANE_OLDEST.set(_age(connection.execute(_OLDEST_OPEN[lane]).scalar_one_or_none(), now), lane=lane)
        metrics.LANE_STALLED.set(int(lane in result.stalled), lane=lane)
        metrics.TICKETS_PARKED.set(connection.execute(_PARKED[lane]).scalar_one(), lane=lane)
    for queue in QueueRole:
        metrics.DEAD_LETTERS.set(connection.execute(_DEAD[queue]).scalar_one(), queue=queue)


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


def _open(lane: Lane) -> tuple[ColumnElement[bool], ...]:
    return (
        outbox.c.lane == word(lane.value),
        outbox.c.dispatched_at.is_not(None),
        outbox.c.handled_at.is_(None),
    )


_COUNT: Final = {
    status: _capped(documents, documents.c.registration_status == word(status.value), _LIVE)
    for status in RegistrationStatus
}
_OLDEST_REGISTERING: Final = (
    select(documents.c.registration_status_since)
    .where(documents.c.registration_status == word(RegistrationStatus.REGISTERING.value), _LIVE)
    .order_by(documents.c.registration_status_since, documents.c.id)
    .limit(1)
)
_PARKED: Final = {
    lane: _capped(
        outbox,
        outbox.c.lane == word(lane.value),
        outbox.c.parked_at.is_not(None),
        outbox.c.handled_at.is_(None),
    )
    for lane in Lane
}
_DEAD: Final = {
    queue: _capped(dead_letter, dead_letter.c.queue == word(queue.value), dead_letter.c.outcome.is_(None))
    for queue in QueueRole
}
_OPEN: Final = {lane: _capped(outbox, *_open(lane)) for lane in Lane}
_OLDEST_OPEN: Final = {
    lane: select(outbox.c.dispatched_at).where(*_open(lane)).order_by(outbox.c.dispatched_at, outbox.c.id).limit(1)
    for lane in Lane
}
