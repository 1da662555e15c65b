"""Whether anybody works: relays, consumers, dead letters, and what holds repairs and runs back.

Every question is answered by the first rows of an index; counts stop at a bound, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, text

from baton.db import clock
from baton.db.states import Lane
from baton.reconcilers.doctor.findings import Finding, fault, ok, or_ok, warning
from baton.reconcilers.lanes import ALIVE_WITHIN

#: A ticket that is due goes out within milliseconds; a relay that is away for a moment is none to be woken for.
_LAG_WARNS: Final = timedelta(seconds=30)
_LAG_FAULT: Final = timedelta(minutes=5)
COUNTED: Final = 10_000

_CONSUMERS: Final = text(
    "SELECT queue, count(*) FILTER (WHERE polled_at > :alive) AS alive, max(polled_at) AS polled,"
    " array_agg(DISTINCT version) FILTER (WHERE polled_at > :alive) AS versions FROM ops.consumer_heartbeat GROUP BY queue"
)
_PENDING: Final = {
    lane: text(
        "SELECT not_before, last_error FROM ops.document_ingest_outbox"  # noqa: S608 - a literal of our own enum
        f" WHERE lane = '{lane}' AND dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL"
        " ORDER BY not_before, id LIMIT 1"
    )
    for lane in Lane
}
_OPEN: Final = {
    lane: text(
        "SELECT dispatched_at FROM ops.document_ingest_outbox"  # noqa: S608 - a literal of our own enum
        f" WHERE lane = '{lane}' AND dispatched_at IS NOT NULL AND handled_at IS NULL ORDER BY dispatched_at, id LIMIT 1"
    )
    for lane in Lane
}
_PARKED: Final = text("""
SELECT count(*) AS n, min(parked_at) AS since, max(last_error) AS error FROM (
  SELECT parked_at, last_error FROM ops.document_ingest_outbox
  WHERE parked_at IS NOT NULL AND handled_at IS NULL ORDER BY parked_at, id LIMIT :bound) first
""")
_DEAD: Final = text("""
SELECT queue, count(*) AS n, count(*) FILTER (WHERE ticket_id IS NULL) AS unmatched, min(found_at) AS since FROM (
  SELECT queue, ticket_id, found_at FROM ops.dead_letter WHERE outcome IS NULL ORDER BY queue, id LIMIT :bound) first
GROUP BY queue ORDER BY queue
""")
_GUARD: Final = text("SELECT breaker, breaker_since, retry_at, reason FROM ops.dispatch_guard")
_HELD: Final = text("""
SELECT kind, starts_at, ends_at, reason, set_by FROM ops.maintenance
WHERE lifted_at IS NULL AND starts_at <= :now AND (ends_at IS NULL OR ends_at > :now) ORDER BY starts_at LIMIT 20
""")


def relays(connection: Connection) -> Iterator[Finding]:
    """Due tickets are sent, and none is parked."""
    now = clock.now(connection)
    for lane in Lane:
        row = connection.execute(_PENDING[lane]).one_or_none()
        lag = timedelta(0) if row is None else now - row.not_before
        if lag <= _LAG_WARNS:
            yield ok("relay", f"{lane}: no ticket has been due for longer than {_LAG_WARNS.seconds} s")
            continue
        tell = fault if lag > _LAG_FAULT else warning
        yield tell(
            "relay",
            f"{lane}: a ticket has been due for {span(lag)}",
            quoted=None if row is None or row.last_error is None else f"its last error: {row.last_error}",
            todo=f"see that 'baton relay --lane {lane}' runs, and what it logs; the queue may be away",
        )
    parked = connection.execute(_PARKED, {"bound": COUNTED + 1}).one()
    if parked.n:
        yield warning(
            "parked",
            f"{_counted(parked.n)} parked tickets, the oldest for {span(now - parked.since)}",
            quoted=f"one error: {parked.error}",
            todo="mend what the error says; then baton redrive --discrepancy ticket_parked --reason …",
        )


def consumers(connection: Connection) -> Iterator[Finding]:
    """Every queue has somebody who polls it."""
    now = clock.now(connection)
    rows = {row.queue: row for row in connection.execute(_CONSUMERS, {"alive": now - ALIVE_WITHIN})}
    waiting = _waiting(connection, now)
    for queue, program in (("ingest", "extractor"), ("registrar", "registrar"), ("results", "settler")):
        row: Any = rows.get(queue)
        if row is not None and row.alive:
            yield ok("consumers", f"{queue}: {row.alive} alive")
            if len(row.versions) > 1:
                yield warning(
                    "consumers",
                    f"{queue}: versions {', '.join(row.versions)} work side by side",
                    todo="finish the roll-out, or roll it back",
                )
            continue
        seen = "none was ever seen" if row is None else f"the last one was seen {span(now - row.polled)} ago"
        stalled = f"; a ticket has waited for {span(waiting[queue])}" if queue in waiting else ""
        yield fault(
            "consumers",
            f"{queue}: nobody polls, {seen}{stalled}",
            todo=f"see that 'baton {program}' runs, and what it logs",
        )


def letters(connection: Connection) -> tuple[Finding, ...]:
    """No dead letter waits for a decision."""
    now = clock.now(connection)
    found = []
    for row in connection.execute(_DEAD, {"bound": COUNTED + 1}):
        unmatched = f", {row.unmatched} of them belong to no ticket" if row.unmatched else ""
        found.append(
            warning(
                "dead-letters",
                f"{row.queue}: {_counted(row.n)} collected dead letters wait, the oldest for"
                f" {span(now - row.since)}{unmatched}",
                todo="baton redrive --dead-letters --reason …, once what killed them is mended",
            )
        )
    return or_ok(found, "dead-letters", "no collected dead letter waits for a decision")


def held_back(connection: Connection) -> tuple[Finding, ...]:
    """Nothing holds runs or repairs back."""
    now = clock.now(connection)
    found = []
    guard = connection.execute(_GUARD).one_or_none()
    if guard is None:
        found.append(
            fault(
                "breaker",
                "the row of ops.dispatch_guard is gone: no run is granted",
                todo="write it again as the database's owner: INSERT INTO ops.dispatch_guard DEFAULT VALUES",
            )
        )
    elif guard.breaker != "closed":
        until = "" if guard.retry_at is None else f"; trial runs begin at {guard.retry_at:%H:%M:%S %Z}"
        found.append(
            warning(
                "breaker",
                f"the breaker has been {guard.breaker} for {span(now - guard.breaker_since)}:"
                f" {guard.reason or 'no reason given'}{until}",
                todo="see to the agent; the breaker closes by itself after trial runs that succeed",
            )
        )
    for row in connection.execute(_HELD, {"now": now}):
        end = "until somebody lifts it" if row.ends_at is None else f"until {row.ends_at:%Y-%m-%d %H:%M %Z}"
        found.append(
            warning(
                "repairs",
                f"a {row.kind} by {row.set_by} holds repairs back {end}: {row.reason}",
                todo="lift it when its reason is gone",
            )
        )
    return or_ok(found, "breaker", "the breaker is closed, and nothing holds repairs back")


def _waiting(connection: Connection, now: datetime) -> Mapping[str, timedelta]:
    """For how long the oldest sent ticket of each lane has not been handled."""
    oldest = {lane.value: connection.execute(_OPEN[lane]).scalar_one_or_none() for lane in Lane}
    return {lane: now - at for lane, at in oldest.items() if at is not None}


def _counted(number: int) -> str:
    return f"more than {COUNTED}" if number > COUNTED else str(number)


def span(age: timedelta) -> str:
    """A length of time for people."""
    seconds = max(int(age.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"
