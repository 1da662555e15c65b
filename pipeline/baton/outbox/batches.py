"""One session that carries batches: claims due tickets, sends them, and settles them, in one transaction for each batch.

The rows stay locked while they are sent: nobody else can send them meanwhile, and where this process dies or is cut
off they are free at once. The sending is bounded, and the server ends a session that stays in its transaction longer
than that (``docs/outbox.md`` has each step, and what a crash there leaves).
"""

from __future__ import annotations

import contextlib
import logging
import time
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import psycopg
from sqlalchemy import Connection, Engine

from baton.aws.sending import Sent
from baton.db.states import Lane
from baton.outbox import claim
from baton.outbox.claim import Claim, Claimed, Fault
from baton.outbox.fates import ASIDE, Fate, RelayResult, fate_of, wait_after
from baton.outbox.senders import Sender, entries_of
from baton.settings.work import Relay as RelaySettings
from baton.telemetry import fields, metrics
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import Span, span

_log = logging.getLogger(__name__)

#: Seconds beyond the sending's bound after which the server ends a transaction that does nothing. The role's own
#: setting is this much above the ordinary bound.
_GRACE: Final = 3.0
_ORDINARY_BOUND: Final = 5.0


class Batches:
    """A connection of the relay's role, and the firm that its last claim ended with. Not shared between threads."""

    def __init__(self, engine: Engine, *, lane: Lane, sender: Sender, config: RelaySettings) -> None:
        """Nothing is connected yet."""
        self._engine = engine
        self._lane = lane
        self._sender = sender
        self._config = config
        self._statements = claim.statements_of(lane, size=config.batch_size)
        self._cursor = uuid4()  # sessions side by side begin at different firms
        self._connection: Connection | None = None

    def run_once(self) -> RelayResult:
        """Claim, send and settle one batch.

        :raises psycopg.Error: of the database (or SQLAlchemy's, from connecting); nothing is marked then, and what was
            sent is sent again.
        """
        began = time.perf_counter()
        driver = self.connect()
        with driver.transaction():
            if self._config.send_timeout > _ORDINARY_BOUND:
                limit = int((self._config.send_timeout + _GRACE) * 1000)
                driver.execute(f"SET LOCAL idle_in_transaction_session_timeout = {limit}")
            claimed = claim.claim(driver, self._statements, cursor=self._cursor)
            self._cursor = claimed.cursor
            tickets = claimed.tickets
            if not tickets:
                return RelayResult()
            with span(
                SpanName.RELAY_BATCH,
                attributes={Attribute.LANE: self._lane, Attribute.BATCH_COUNT: len(tickets)},
                links=[ticket.traceparent for ticket in tickets],
            ) as opened:
                sent = self._sender.send(entries_of(tickets), bound=self._config.send_timeout)
                result = self._settle(driver, claimed, sent)
                _tell(opened, result)
        self._count(claimed, sent, result, seconds=time.perf_counter() - began)
        return result

    def look(self, *, recent: bool) -> float | None:
        """Seconds for which the oldest due ticket has been due; see :func:`claim.look`. Raises as :meth:`run_once`."""
        return claim.look(self.connect(), self._statements, recent=recent)

    def connect(self) -> psycopg.Connection[Any]:
        """The driver's own connection, in autocommit: what is a transaction here says so."""
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        driver = self._connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise TypeError("the relay's engine must be one of psycopg")
        return driver

    def drop(self) -> None:
        """Let go of a connection that something went wrong on, whatever state it is in."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.invalidate()
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def _settle(self, driver: psycopg.Connection[Any], claimed: Claim, sent: Sent) -> RelayResult:
        failed = sent.failure is not None
        marked = {}
        faults = []
        fates: dict[int, Fate] = {}
        for ticket, result in zip(claimed.tickets, sent.results, strict=True):
            fate = fate_of(
                result.state, attempts=ticket.attempts, max_attempts=self._config.max_attempts, failed=failed
            )
            fates[ticket.id] = fate
            if fate is Fate.DISPATCHED:
                marked[ticket.id] = result.message_id or ""
            elif fate is not Fate.LEFT:
                faults.append(_fault(ticket, fate, error=result.code or result.state))
        dispatched = claim.settle(driver, self._statements, marked, claimed_at=claimed.at) if marked else set()
        written = claim.mark_faults(driver, self._statements, faults) if faults else set()

        def many(fate: Fate) -> int:
            return sum(1 for ticket_id in written if fates[ticket_id] is fate)

        return RelayResult(
            claimed=len(claimed.tickets),
            dispatched=len(dispatched),
            counted=many(Fate.COUNTED),
            parked=many(Fate.PARKED),
            delayed=many(Fate.DELAYED),
            left=sum(1 for fate in fates.values() if fate is Fate.LEFT),
            failure=sent.failure,
        )

    def _count(self, claimed: Claim, sent: Sent, result: RelayResult, *, seconds: float) -> None:
        metrics.RELAY_DURATION.observe(seconds, lane=self._lane)
        states: dict[str, int] = {}
        for each in sent.results:
            states[each.state] = states.get(each.state, 0) + 1
        for state, number in states.items():
            metrics.RELAY_TICKETS.add(number, lane=self._lane, outcome=state)
        # Ten of a batch tell as much as all of them, and counting all took a quarter of its time.
        for wait in claimed.waits(at_most=10):
            metrics.RELAY_WAIT.observe(wait, lane=self._lane)
        if result.parked:
            metrics.RELAY_PARKED.add(result.parked, lane=self._lane)
            _log.error("tickets parked", extra=fields.of(lane=self._lane, count=result.parked))


def _fault(ticket: Claimed, fate: Fate, *, error: str) -> Fault:
    own = fate is not Fate.DELAYED
    attempts = ticket.attempts + 1 if own else ticket.attempts
    wait: timedelta = wait_after(attempts) if own else ASIDE
    return Fault(id=ticket.id, error=error, wait=wait, attempts=attempts, park=fate is Fate.PARKED)


def _tell(opened: Span, result: RelayResult) -> None:
    opened.set(Attribute.SENT_COUNT, result.dispatched)
    opened.set(Attribute.FAILED_COUNT, result.claimed - result.dispatched)
    if result.failure is not None:
        opened.fail(type(result.failure))
