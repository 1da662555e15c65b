"""The relay of one lane: a batch after the other while there is anything to send, calm looks while there is not.

It carries batches itself, and calls further hands while there is a backlog. Whatever fails, it goes on: it backs off,
makes a queue again that is gone, and says when it cannot do its work.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Final

from sqlalchemy import Engine

from baton.aws.errors import AwsError, QueueMissing, RequestRefused, Unavailable
from baton.db.states import Lane
from baton.outbox.batches import Batches
from baton.outbox.fates import Next, RelayResult, decide, leaves_more
from baton.outbox.hands import Hands
from baton.outbox.listening import Listener
from baton.outbox.senders import Sender
from baton.outbox.stalls import Stall
from baton.settings.work import Relay as RelaySettings
from baton.telemetry import fields, metrics
from baton.telemetry.labels import FaultClass
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Seconds between two looks at everything that is due; in between an idle relay looks at what became due lately.
WHOLE_LOOK: Final = 30.0
#: Seconds between two readings of the lag while there is work.
_LAG_INTERVAL: Final = 5.0
#: Seconds; the longest wait for a database that is away. It comes back without telling, and lawyers wait for it.
_DATABASE_BACKOFF_MAX: Final = 3.0
#: Seconds beyond the sending's bound in which a batch is settled, else it is not waited for at the end.
_GRACE: Final = 5.0


class Relay:
    """One relay. Several may run side by side, in one process or many; each has a thread of its own, and its hands'."""

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

        :param engine: of the relay's role; a connection for each batch in flight is used, and one to listen on.
        :param listen: where to listen, if not there: an engine that bypasses a pooler.
        """
        self._lane = lane
        self._sender = sender
        self._config = config or RelaySettings()
        sessions = [
            Batches(engine, lane=lane, sender=sender, config=self._config) for _ in range(self._config.in_flight)
        ]
        self._batches = sessions[0]
        self._hands = Hands(sessions[1:], size=self._config.batch_size, bound=self._config.send_timeout + _GRACE)
        self._listener = Listener(listen or engine, lane=lane)
        self._progress = progress or Progress()
        self._name = f"relay-{lane}"
        self._stall = Stall(lane=lane, after=self._config.stalled_after, progress=self._progress, name=self._name)
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

    def connect(self) -> None:
        """Connect now, and not with the first batch. Raises as :meth:`run_once`."""
        self._batches.connect()

    def run_once(self) -> RelayResult:
        """Claim, send and settle one batch, by this thread alone; see :meth:`Batches.run_once`."""
        return self._batches.run_once()

    def drain(self) -> None:
        """Carry batches, with all hands, until nothing is due or one fails; what is under way is finished.

        :raises psycopg.Error: as :meth:`run_once`.
        """
        while decide(self._batch()) is Next.AGAIN:
            pass
        self._hands.close()

    def close(self) -> None:
        """Finish what is under way, and give back the connections."""
        self._hands.close()
        self._listener.close()
        self._batches.close()

    def _tick(self, stop: threading.Event) -> None:
        try:
            result = self._turn()
        except Exception as error:  # noqa: BLE001 - whatever it was, the relay must go on
            self._batches.drop()
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
        self._batches.connect()  # a database that is away is asked once, not once for each connection
        self._listener.open()  # before looking: what is committed after the look is then heard of
        if self._idle:
            recent = time.monotonic() - self._looked_at_all < WHOLE_LOOK
            if self._look(recent=recent) is None:
                return RelayResult()
        else:
            self._listener.drain()
            if time.monotonic() - self._read_lag > _LAG_INTERVAL:
                self._look(recent=False)
        result = self._batch()
        if not result.claimed:
            self._looked_at_all = time.monotonic()
        self._idle = not result.claimed
        return result

    def _batch(self) -> RelayResult:
        """One of its own; a full one calls the hands."""
        result = self._batches.run_once()
        if leaves_more(result, size=self._config.batch_size):
            self._hands.call()
        return result

    def _look(self, *, recent: bool) -> float | None:
        if not recent:
            self._looked_at_all = time.monotonic()
        self._read_lag = time.monotonic()
        lag = self._batches.look(recent=recent)
        metrics.RELAY_LAG.set(lag or 0.0, lane=self._lane)
        return lag

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


def _fault_class(failure: AwsError | None) -> FaultClass:
    if isinstance(failure, Unavailable):
        return FaultClass(failure.kind)
    if isinstance(failure, QueueMissing):
        return FaultClass.MISSING
    return FaultClass.REFUSED if isinstance(failure, RequestRefused) else FaultClass.SERVER
