"""The relay of one lane: claims due tickets, sends them, and settles them, in one transaction for each batch.

The rows stay locked while they are sent: nobody else can send them meanwhile, and where this process dies or is cut
off they are free at once. The sending is bounded, and the server ends a session that stays in its transaction longer
than that (``docs/outbox.md`` has each step, and what a crash there leaves).
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import psycopg
from sqlalchemy import Connection, Engine

from baton.aws.errors import AwsError, QueueMissing, RequestRefused, Unavailable
from baton.aws.sending import Sent
from baton.db.states import Lane
from baton.outbox import claim
from baton.outbox.claim import Claim, Claimed, Fault
from baton.outbox.fates import ASIDE, Fate, Next, RelayResult, decide, fate_of, wait_after
from baton.outbox.listening import Listener
from baton.outbox.senders import Sender, entries_of
from baton.outbox.stalls import Stall
from baton.settings.work import Relay as RelaySettings
from baton.telemetry import fields, metrics
from baton.telemetry.labels import FaultClass
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.progress import Progress
from baton.telemetry.spans import Span, span

_log = logging.getLogger(__name__)

#: Seconds between two looks at everything that is due; in between an idle relay looks at what became due lately.
WHOLE_LOOK: Final = 30.0
#: Seconds between two readings of the lag while there is work.
_LAG_INTERVAL: Final = 5.0
#: Seconds; the longest wait for a database that is away. It comes back without telling, and lawyers wait for it.
_DATABASE_BACKOFF_MAX: Final = 3.0
#: Seconds beyond the sending's bound after which the server ends a transaction that does nothing. The role's own
#: setting is this much above the ordinary bound.
_GRACE: Final = 3.0
_ORDINARY_BOUND: Final = 5.0


class Relay:
    """One relay. Several may run side by side, in one process or many; each has a thread of its own."""

    def __init__(
        self,
        engine: Engine,
        *,
        lane: Lane,
        sender: Sender,
        config: RelaySettings | None = None,
        listen: Engine | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Nothing is connected yet.

        :param engine: of the relay's role; one connection is used, and one more to listen on.
        :param listen: where to listen, if not there: an engine that bypasses a pooler.
        """
        self._engine = engine
        self._lane = lane
        self._sender = sender
        self._config = config or RelaySettings()
        self._statements = claim.statements_of(lane, size=self._config.batch_size)
        self._listener = Listener(listen or engine, lane=lane)
        self._progress = progress or Progress()
        self._name = f"relay-{lane}"
        self._stall = Stall(lane=lane, after=self._config.stalled_after, progress=self._progress, name=self._name)
        self._cursor = uuid4()  # relays side by side begin at different firms
        self._connection: Connection | None = None
        self._idle = False
        self._looked_at_all = 0.0
        self._read_lag = 0.0
        self._failures = 0

    @property
    def stalled(self) -> bool:
        """Whether it has failed for longer than is normal, though there may be tickets to send."""
        return self._stall.stalled

    @property
    def listening(self) -> bool:
        """Whether commits wake it; without, it looks more often."""
        return self._listener.listening

    def run(self, *, stop: threading.Event) -> None:
        """Relay until ``stop`` is set; a batch that is under way is finished first."""
        # A few statements, one sending and one wait go by between two beats.
        silence = 60.0 + self._config.send_timeout + self._config.idle_wait
        self._progress.declare(self._name, silent_after=silence)
        try:
            while not stop.is_set():
                self._progress.beat(self._name)
                self._tick(stop)
        finally:
            self.close()
            self._progress.retire(self._name)

    def run_once(self) -> RelayResult:
        """Claim, send and settle one batch.

        :raises psycopg.Error: of the database (or SQLAlchemy's, from connecting); nothing is marked then, and what was
            sent is sent again.
        """
        began = time.perf_counter()
        driver = self._driver()
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

    def close(self) -> None:
        """Give back the connections."""
        self._listener.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def _tick(self, stop: threading.Event) -> None:
        try:
            result = self._turn()
        except Exception as error:  # noqa: BLE001 - whatever it was, the relay must go on
            self._drop()
            metrics.RELAY_FAILURES.add(lane=self._lane, fault=FaultClass.DATABASE)
            self._say_failure(error, fault=FaultClass.DATABASE)
            self._stall.failed("the database does not answer")
            self._idle = False
            self._pause(self._backoff(_DATABASE_BACKOFF_MAX), stop=stop)
            return
        match decide(result):
            case Next.AGAIN:
                self._well()
            case Next.LISTEN:
                self._well()
                self._listener.wait(self._config.idle_wait, stop=stop)
            case Next.BACK_OFF:
                self._idle = False
                self._fail(result.failure)
                self._pause(self._backoff(self._config.backoff_max), stop=stop)

    def _turn(self) -> RelayResult:
        """A batch; while the lane is idle, one look whether there is anything to claim comes first."""
        self._driver()  # a database that is away is asked once, not once for each connection
        self._listener.open()  # before looking: what is committed after the look is then heard of
        if self._idle:
            recent = time.monotonic() - self._looked_at_all < WHOLE_LOOK
            if self._look(recent=recent) is None:
                return RelayResult()
        else:
            self._listener.drain()
            if time.monotonic() - self._read_lag > _LAG_INTERVAL:
                self._look(recent=False)
        result = self.run_once()
        if not result.claimed:
            self._looked_at_all = time.monotonic()
        self._idle = not result.claimed
        return result

    def _look(self, *, recent: bool) -> float | None:
        if not recent:
            self._looked_at_all = time.monotonic()
        self._read_lag = time.monotonic()
        lag = claim.look(self._driver(), self._statements, recent=recent)
        metrics.RELAY_LAG.set(lag or 0.0, lane=self._lane)
        return lag

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

    def _well(self) -> None:
        self._failures = 0
        self._stall.succeeded()

    def _fail(self, failure: AwsError | None) -> None:
        fault = _fault_class(failure)
        metrics.RELAY_FAILURES.add(lane=self._lane, fault=fault)
        self._say_failure(failure, fault=fault)
        self._stall.failed(f"the queue cannot be sent to: {fault}")
        if failure is not None:
            try:
                self._sender.mend(failure)
            except AwsError as error:
                self._say_failure(error, fault=_fault_class(error))

    def _say_failure(self, error: Exception | None, *, fault: FaultClass) -> None:
        self._failures += 1
        # The first of a row, then ever more rarely.
        if self._failures & (self._failures - 1) == 0:
            _log.warning(
                "relay backs off",
                exc_info=error,
                extra=fields.of(lane=self._lane, fault=fault, attempts=self._failures),
            )

    def _backoff(self, longest: float) -> float:
        whole: float = self._config.backoff_initial * 2.0 ** min(max(self._failures - 1, 0), 16)
        return min(whole, longest) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def _pause(self, seconds: float, *, stop: threading.Event) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not stop.wait(min(left, 1.0)):
            self._progress.beat(self._name)
            self._stall.look()

    def _driver(self) -> psycopg.Connection[Any]:
        """The driver's own connection, in autocommit: what is a transaction here says so."""
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        driver = self._connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise TypeError("the relay's engine must be one of psycopg")
        return driver

    def _drop(self) -> None:
        """Let go of a connection that something went wrong on, whatever state it is in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.invalidate()
            with contextlib.suppress(Exception):
                connection.close()


def _fault(ticket: Claimed, fate: Fate, *, error: str) -> Fault:
    own = fate is not Fate.DELAYED
    attempts = ticket.attempts + 1 if own else ticket.attempts
    wait: timedelta = wait_after(attempts) if own else ASIDE
    return Fault(id=ticket.id, error=error, wait=wait, attempts=attempts, park=fate is Fate.PARKED)


def _fault_class(failure: AwsError | None) -> FaultClass:
    if isinstance(failure, Unavailable):
        return FaultClass(failure.kind)
    if isinstance(failure, QueueMissing):
        return FaultClass.MISSING
    return FaultClass.REFUSED if isinstance(failure, RequestRefused) else FaultClass.SERVER


def _tell(opened: Span, result: RelayResult) -> None:
    opened.set(Attribute.SENT_COUNT, result.dispatched)
    opened.set(Attribute.FAILED_COUNT, result.claimed - result.dispatched)
    if result.failure is not None:
        opened.fail(type(result.failure))
