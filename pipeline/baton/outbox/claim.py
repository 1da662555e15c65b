"""The relay's SQL, all of it, with the locks it takes and the indexes it walks.

Lanes stand in the statements as literals: a lane, or a status, that is a parameter makes the partial indexes unusable
under a generic plan. ``(SELECT app.clock())`` is evaluated once per statement and stays comparable by an index.

Everything runs as the relay's role under row-level security, on the driver's own cursor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from baton.db.states import Lane

#: Firms that one claim looks at; the cursor goes on from there with the next.
DEPTH: Final = 200
#: Tickets that one claim takes of one firm before it fills up with the oldest of all.
PER_FIRM: Final = 10
#: An idle look walks the index from here on: what was due earlier was seen, and its dead entries need no second look.
RECENT: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A ticket that this transaction holds locked, as far as its message needs it. Ids and moments only travel: they are
    text, and reading each as what it is took a sixth of a relay's own time.
    """

    id: int
    firm_id: str
    matter_id: str
    document_id: str
    event_type: str
    idempotency_key: str
    object_key: str
    content_type: str
    run_id: str | None
    part: str | None
    traceparent: str | None
    not_before: str
    """As Postgres writes it."""
    attempts: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What one claim brought."""

    tickets: tuple[Claimed, ...]
    at: str | None
    """When, by the database's clock, as Postgres writes it; ``None`` with no ticket."""
    cursor: UUID
    """The firm that was looked at last: where the next claim goes on."""

    def waits(self, *, at_most: int) -> Iterator[float]:
        """Seconds that some of the tickets had been due: evenly out of all of them, ``at_most`` and a few."""
        began = _moment(self.at)
        for ticket in self.tickets[:: max(1, len(self.tickets) // at_most)]:
            due = _moment(ticket.not_before)
            if began is not None and due is not None:
                yield (began - due).total_seconds()


def _moment(written: str | None) -> datetime | None:
    try:
        return None if written is None else datetime.fromisoformat(written)
    except ValueError:  # infinity, or a year that only Postgres counts
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A ticket that was not sent, and what that costs it."""

    id: int
    error: str
    wait: timedelta
    """Until its next try."""
    attempts: int
    """Attempts used up, this one included where it counts."""
    park: bool


#: What every index here is made for; the same words as in the indexes' own predicates.
_PENDING: Final = "o.lane = '$LANE' AND o.dispatched_at IS NULL AND o.parked_at IS NULL AND o.handled_at IS NULL"

#: In the order of :class:`Claimed`.
_COLUMNS: Final = (
    "o.id, o.firm_id::text, o.matter_id::text, o.document_id::text, o.event_type, o.idempotency_key, o.object_key,"
    " o.content_type, o.run_id::text, o.part, o.traceparent, o.not_before::text, o.attempts"
)

# Fair claim. Locks: FOR NO KEY UPDATE SKIP LOCKED on the rows that it returns, until the transaction ends.
#
# firms  walks o_pending_firm from firm to firm (a loose scan: one descent for each), from the cursor on and once around;
#        the second branch under UNION ALL is asked only when the first is empty, at the wrap.
# fair   takes at most $PER_FIRM due tickets of each firm, o_pending_firm again. A firm with nothing due comes back with a
#        NULL ticket, so that the cursor moves past it. The outer LIMIT stops the walk.
# fill   takes the oldest of all that are left, by o_pending, up to the size of the batch.
#
# The limits stand directly above the locking steps and nothing is joined to their result: no plan can lock more rows
# than it returns, as UPDATE ... WHERE id IN (SELECT ... LIMIT n FOR UPDATE) can.
_CLAIM: Final = """
WITH RECURSIVE firms (firm_id, wrapped, depth) AS (
  SELECT n.firm_id, n.wrapped, 1 FROM (
    (SELECT o.firm_id, false AS wrapped FROM ops.document_ingest_outbox o
      WHERE $PENDING AND o.firm_id > %(cursor)s ORDER BY o.firm_id LIMIT 1)
    UNION ALL
    (SELECT o.firm_id, true FROM ops.document_ingest_outbox o WHERE $PENDING ORDER BY o.firm_id LIMIT 1)
    LIMIT 1) n
  UNION ALL
  SELECT n.firm_id, n.wrapped, f.depth + 1 FROM firms f CROSS JOIN LATERAL (
    (SELECT o.firm_id, f.wrapped FROM ops.document_ingest_outbox o
      WHERE $PENDING AND o.firm_id > f.firm_id ORDER BY o.firm_id LIMIT 1)
    UNION ALL
    (SELECT o.firm_id, true FROM ops.document_ingest_outbox o
      WHERE $PENDING AND NOT f.wrapped ORDER BY o.firm_id LIMIT 1)
    LIMIT 1) n
  WHERE f.depth < $DEPTH AND (NOT n.wrapped OR n.firm_id <= %(cursor)s)
), fair AS MATERIALIZED (
  SELECT f.firm_id AS cursor, t.* FROM firms f LEFT JOIN LATERAL (
    SELECT $COLUMNS FROM ops.document_ingest_outbox o
     WHERE $PENDING AND o.firm_id = f.firm_id AND o.not_before <= (SELECT app.clock())
     ORDER BY o.not_before, o.id LIMIT $PER_FIRM FOR NO KEY UPDATE SKIP LOCKED) t ON true
  LIMIT $SIZE
), fill AS MATERIALIZED (
  SELECT NULL::uuid AS cursor, $COLUMNS FROM ops.document_ingest_outbox o
   WHERE $PENDING AND o.not_before <= (SELECT app.clock())
     AND o.id <> ALL (ARRAY (SELECT fair.id FROM fair WHERE fair.id IS NOT NULL))
   ORDER BY o.not_before, o.id LIMIT (SELECT $SIZE - count(fair.id) FROM fair) FOR NO KEY UPDATE SKIP LOCKED
)
SELECT (SELECT app.clock()::text) AS claimed_at, * FROM fair UNION ALL SELECT (SELECT app.clock()::text), * FROM fill
"""

# Idle look: how long the oldest due ticket has been due, by o_pending; no row: nothing is due. No lock.
_LOOK: Final = """
SELECT greatest(0, extract(epoch FROM (SELECT app.clock()) - o.not_before))::float8 FROM ops.document_ingest_outbox o
 WHERE $PENDING AND o.not_before <= (SELECT app.clock())$BOUND ORDER BY o.not_before LIMIT 1
"""
_BOUND: Final = " AND o.not_before >= (SELECT app.clock() - interval '$RECENT s')"

# Settle. The rows are locked by the claim of the same transaction; ids come in order all the same, so that two settlers
# without a claim behind them cannot deadlock. By the primary key. Counted are the rows that come back.
_SETTLE: Final = """
UPDATE ops.document_ingest_outbox o
   SET claimed_at = %(claimed_at)s::timestamptz, dispatched_at = app.clock(), message_id = v.message_id
  FROM unnest(%(ids)s::bigint[], string_to_array(%(message_ids)s, chr(10))) AS v (id, message_id)
 WHERE o.id = v.id AND o.dispatched_at IS NULL RETURNING o.id
"""

# What was not sent: its next time, and, where the fault was its own, the attempt or the end of its attempts.
_FAULTS: Final = """
UPDATE ops.document_ingest_outbox o SET attempts = v.attempts, last_error = v.error, not_before = app.clock() + v.wait,
       parked_at = CASE WHEN v.park THEN app.clock() END
  FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(errors)s::text[], %(waits)s::interval[], %(park)s::bool[])
       AS v (id, attempts, error, wait, park)
 WHERE o.id = v.id AND o.dispatched_at IS NULL AND o.parked_at IS NULL RETURNING o.id
"""


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one lane; :func:`statements_of` makes them."""

    claim: str
    look: str
    look_recent: str
    settle: str
    faults: str


def statements_of(lane: Lane, *, size: int) -> Statements:
    """The lane's statements for batches of ``size``; both stand in them as literals, a limit for the planner's sake."""

    def written(template: str) -> str:
        words = {
            "$BOUND": "",
            "$PENDING": _PENDING,
            "$COLUMNS": _COLUMNS,
            "$LANE": lane.value,
            "$SIZE": f"{size:d}",
            "$DEPTH": str(DEPTH),
            "$PER_FIRM": str(PER_FIRM),
            "$RECENT": str(int(RECENT.total_seconds())),
        }
        for word, meaning in words.items():
            template = template.replace(word, meaning)
        return template.strip()

    return Statements(
        claim=written(_CLAIM),
        look=written(_LOOK),
        look_recent=written(_LOOK.replace("$BOUND", _BOUND)),
        settle=written(_SETTLE),
        faults=written(_FAULTS),
    )


def claim(connection: Connection[Any], statements: Statements, *, cursor: UUID) -> Claim:
    """Lock a batch of due tickets.

    :param cursor: the firm that the last claim ended with; any UUID to begin with.
    """
    with connection.cursor() as asked:
        rows = asked.execute(statements.claim, {"cursor": cursor}).fetchall()
    tickets = []
    for _, firm, *values in rows:
        cursor = firm or cursor
        if values[0] is not None:  # else a firm with nothing due
            tickets.append(Claimed(*values))
    return Claim(tuple(tickets), rows[0][0] if tickets else None, cursor)


def look(connection: Connection[Any], statements: Statements, *, recent: bool) -> float | None:
    """Seconds for which the oldest due ticket has been due; ``None``: nothing is due.

    :param recent: look only at what became due within :data:`RECENT`.
    """
    statement = statements.look_recent if recent else statements.look
    with connection.cursor(row_factory=scalar_row) as asked:
        found: float | None = asked.execute(statement).fetchone()
    return found


def settle(
    connection: Connection[Any], statements: Statements, sent: Mapping[int, str], *, claimed_at: str | None
) -> set[int]:
    """Mark tickets as dispatched; returns the ids of those that were not before.

    :param sent: ticket id → the queue's message id.
    :param claimed_at: as the claim said it.
    """
    ids = sorted(sent)
    # Both lists go as one text each: the driver would write a list item by item, in a loop of Python's.
    return _returned(
        connection,
        statements.settle,
        {
            "ids": "{" + ",".join(map(str, ids)) + "}",
            "message_ids": "\n".join(sent[each].replace("\n", " ") for each in ids),
            "claimed_at": claimed_at,
        },
    )


def mark_faults(connection: Connection[Any], statements: Statements, faults: Sequence[Fault]) -> set[int]:
    """Write down what was not sent; returns the ids of the tickets that were written."""
    ordered = sorted(faults, key=lambda fault: fault.id)
    return _returned(
        connection,
        statements.faults,
        {
            "ids": [fault.id for fault in ordered],
            "attempts": [fault.attempts for fault in ordered],
            "errors": [fault.error for fault in ordered],
            "waits": [fault.wait for fault in ordered],
            "park": [fault.park for fault in ordered],
        },
    )


def _returned(connection: Connection[Any], statement: str, values: Mapping[str, object]) -> set[int]:
    # The number of rows that the driver reports is not used: with RETURNING it may be -1.
    with connection.cursor() as asked:
        return {row[0] for row in asked.execute(statement, values)}
