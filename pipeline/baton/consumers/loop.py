"""The loop: one thread receives, a crew works, one thread keeps messages hidden.

``run`` returns when ``stop`` is set and nothing is held any more. The receiving thread only ticks; a tick receives at
most one batch, and only while a worker is free and nothing waits, so that what is held stays small and the rest stays in
the queue for whoever is free.

What a crash at any point leaves: messages that reappear when their visibility is over, tickets marked as received, an
attempt counted where the work had begun. Nothing is lost, and what was committed is not done twice, because handlers
take a redelivery for one.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError

from baton.aws.errors import AwsError, QueueMissing, Unavailable
from baton.aws.queues import Queue
from baton.consumers.backoff import Backoff, Failures
from baton.consumers.crew import Crew
from baton.consumers.faults import Blame, blame
from baton.consumers.holds import Delivery, Holds
from baton.consumers.intake import Intake, Intaken
from baton.consumers.presence import Presence, QueueName
from baton.consumers.refusals import dispose
from baton.consumers.verdicts import Retry
from baton.consumers.work import Worker
from baton.settings.work import Consumer
from baton.telemetry import fields, metrics
from baton.telemetry.labels import FaultClass, HandleOutcome
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Seconds between two looks while every worker is busy.
_GLANCE = 0.5
#: Seconds for which messages are hidden whose tickets could not be read just now.
_UNREAD_WAIT = 5.0
#: Seconds of silence after which the loop counts as stuck; a receive that hangs ends well before by its own time-outs.
_SILENT_AFTER = 180.0


@dataclass(slots=True)
class Round:
    """What one receive led to."""

    received: int = 0
    outcomes: dict[HandleOutcome, int] = field(default_factory=dict)


class Loop:
    """A consumer of one queue; ``tickets`` and ``messages`` make it."""

    def __init__(
        self,
        *,
        queue: Queue,
        name: QueueName,
        intake: Intake,
        worker: Worker,
        presence: Presence,
        ask_database: Callable[[], None],
        config: Consumer,
        stop: threading.Event,
        backoff: Backoff,
        prefetch: bool,
        progress: Progress | None,
    ) -> None:
        """Make a consumer that is not running yet.

        :param ask_database: returns where the database answers, raises where it does not.
        :param backoff: waits while queue or database are away.
        :param prefetch: whether a batch may be larger than the number of free workers.
        :param progress: where the loop shows that it moves; ``None``: nobody asks.
        """
        self._queue = queue
        self._name = name
        self._intake = intake
        self._worker = worker
        self._presence = presence
        self._ask_database = ask_database
        self._config = config
        self._stop = stop
        self._prefetch = prefetch
        self._progress = progress
        self._loop = f"consumer-{name}"
        self._holds = Holds(queue, note=intake.note)
        self._crew = Crew(config.workers, name=name, work=self._work_group)
        self._failures = Failures(backoff)
        self._database_failed = threading.Event()
        self._ending = threading.Event()
        self._keeper: threading.Thread | None = None

    # Running

    def run(self) -> None:
        """Consume until ``stop`` is set, then let go of everything within the grace period."""
        if self._progress is not None:
            self._progress.declare(self._loop, silent_after=_SILENT_AFTER)
        try:
            while not self._stop.is_set():
                try:
                    self._tick()
                except Exception:  # noqa: BLE001 - a fault of our own must not end the loop
                    _log.exception("a consumer stumbled", extra=fields.of(queue=self._name))
                    self._stop.wait(self._failures.failed())
        finally:
            self._let_go()
            if self._progress is not None:
                self._progress.retire(self._loop)

    def run_once(self, *, wait: int = 0) -> Round:
        """Receive one batch and do its work on this thread; a single step. Nothing is extended meanwhile.

        :param wait: seconds of long poll.
        """
        seen = Round()
        for group in self._receive(wait=wait, limit=self._config.batch_size, seen=seen):
            self._work_group(group, seen)
        return seen

    def _tick(self) -> None:
        if self._progress is not None:
            self._progress.beat(self._loop)
        self._crew.supervise()
        self._keep_hidden()
        free = self._crew.free
        if free <= 0:
            self._crew.await_free(_GLANCE)
            with contextlib.suppress(DBAPIError):
                self._presence.renew()
            return
        limit = self._config.batch_size if self._prefetch else min(self._config.batch_size, free)
        try:
            if self._database_failed.is_set():
                self._ask_database()
                self._database_failed.clear()
            self._crew.submit(self._receive(wait=self._config.receive_wait, limit=limit, seen=None))
            self._presence.renew()
        except Exception as error:  # noqa: BLE001 - sorted by whose failure it is
            self._failed(error)
            return
        self._failures.succeeded()
        if self._progress is not None:
            self._progress.ready(self._loop)

    def _failed(self, error: Exception) -> None:
        """Say what failed, mend a missing queue, and wait: longer each time in a row."""
        blamed = blame(error)
        if blamed is Blame.WORK and not isinstance(error, AwsError):
            raise error
        if blamed is Blame.DATABASE:
            self._database_failed.set()
        if self._progress is not None:
            self._progress.not_ready(self._loop, f"{blamed} does not answer")
        wait = self._failures.failed()
        metrics.CONSUMER_FAILURES.add(queue=self._name, fault=_fault(error))
        about = fields.of(queue=self._name, seconds=round(wait, 1))
        _log.warning("a consumer waits for what it needs", exc_info=error, extra=about)
        if isinstance(error, QueueMissing):
            try:
                self._queue.ensure()
            except AwsError as missing:
                _log.warning("a queue could not be made again", exc_info=missing, extra=about)
            else:
                if self._failures.count == 1:  # made again, yet missing: it may take the service a while to know
                    return
        self._stop.wait(wait)

    # Receiving

    def _receive(self, *, wait: int, limit: int, seen: Round | None) -> list[list[Delivery]]:
        """One batch, marked and sorted into groups. What cannot be worked on is disposed of here."""
        messages = self._queue.receive(wait=wait, limit=limit, visibility=self._queue.spec.visibility)
        received = time.monotonic()
        if not messages:
            return []
        metrics.CONSUMER_RECEIVED.add(len(messages), queue=self._name)
        if seen is not None:
            seen.received = len(messages)
        deliveries = [Delivery(message=each, group=each.message_id) for each in messages]
        self._holds.take(deliveries, received=received)
        try:
            if seen is None and self._stop.is_set():  # they came while the last poll was ending
                return [deliveries]
            taken = self._sorted(deliveries)
            for delivery, refusal in taken.refused:
                dispose(self._queue, self._holds, delivery, refusal)
                self._count(refusal.outcome, seen)
        except BaseException:
            self._holds.release(deliveries, seconds=_UNREAD_WAIT, note=False)
            raise
        self._let_go_of(taken.failed, HandleOutcome.FAILED, seen, after=_UNREAD_WAIT)
        return _grouped(taken.ready)

    def _sorted(self, deliveries: Sequence[Delivery]) -> Intaken:
        """Sort the batch; where one of its tickets stands in the way of all, sort them one by one."""
        try:
            return self._intake.take(deliveries)
        except Exception as error:
            if blame(error) is Blame.DATABASE:
                raise
            _log.warning("a batch could not be marked as one", exc_info=error)
        taken = Intaken()
        for each in deliveries:
            try:
                alone = self._intake.take([each])
            except Exception as error:  # noqa: BLE001 - this one comes again, the others go on
                _log.warning("a message could not be marked", exc_info=error)
                taken.failed.append(each)
            else:
                taken.ready += alone.ready
                taken.refused += alone.refused
        return taken

    # Working

    def _work_group(self, group: Sequence[Delivery], seen: Round | None = None) -> None:
        """The deliveries of one document, in order. When one comes again, those after it must not overtake it."""
        left = list(group)
        after = 0.0
        try:
            while left and not self._stop.is_set() and self._holds.holds(left[0]):
                retry = self._work_one(left[0], seen)
                del left[0]
                if retry is not None:
                    # a FIFO queue itself holds the followers back; a standard one would show them at once
                    after = 0.0 if self._queue.fifo else retry.after.total_seconds()
                    break
        finally:
            self._let_go_of(left, HandleOutcome.RELEASED, seen, after=after)

    def _work_one(self, delivery: Delivery, seen: Round | None) -> Retry | None:
        """Work, and do as the verdict says; returns it where the message comes again."""
        with metrics.CONSUMER_DURATION.timed(queue=self._name), metrics.CONSUMER_IN_FLIGHT.held(queue=self._name):
            worked = self._worker.work(delivery)
        if worked.blame is Blame.DATABASE:
            self._database_failed.set()
        self._count(worked.outcome, seen)
        if isinstance(worked.verdict, Retry):
            self._holds.release([delivery], seconds=worked.verdict.after.total_seconds())
            return worked.verdict
        if not self._holds.done(delivery):
            metrics.CONSUMER_FAILURES.add(queue=self._name, fault=FaultClass.REFUSED)
        return None

    def _let_go_of(
        self, deliveries: Sequence[Delivery], outcome: HandleOutcome, seen: Round | None, *, after: float = 0.0
    ) -> None:
        """Release what is still ours, ``after`` seconds from now; what was lost is nobody's business here any more."""
        self._holds.forget(deliveries)
        self._holds.release([each for each in deliveries if not each.lost], seconds=after)
        for _ in deliveries:
            self._count(outcome, seen)

    def _count(self, outcome: HandleOutcome, seen: Round | None) -> None:
        metrics.CONSUMER_HANDLED.add(queue=self._name, outcome=outcome)
        if seen is not None:
            seen.outcomes[outcome] = seen.outcomes.get(outcome, 0) + 1

    # Keeping, and letting go

    def _keep_hidden(self) -> None:
        """See to it that the keeper lives."""
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep, name=f"{self._name}-keeper", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        interval = self._config.heartbeat or self._queue.spec.visibility / 3
        while not self._ending.wait(interval):
            try:
                lost = self._holds.extend()
            except Exception:  # noqa: BLE001 - whatever it was, the next extension may work
                _log.exception("a keeper stumbled", extra=fields.of(queue=self._name))
                continue
            if lost:
                metrics.CONSUMER_HOLDS_LOST.add(lost, queue=self._name)
                _log.warning("messages in hand were lost to others", extra=fields.of(queue=self._name, count=lost))

    def _let_go(self) -> None:
        """Finish what is in work, release the rest; what is still in work after the grace period is released too."""
        waiting = self._crew.end()
        for group in waiting:
            self._let_go_of(group, HandleOutcome.RELEASED, None)
        if not self._crew.join(self._config.shutdown_grace):
            _log.warning("work did not end in time", extra=fields.of(queue=self._name, count=self._crew.busy))
        self._ending.set()
        left = self._holds.everything()
        if left:
            self._let_go_of(left, HandleOutcome.RELEASED, None)
        try:
            self._presence.leave()
        except Exception as error:  # noqa: BLE001 - the row ages, and is swept by another
            _log.warning("a heartbeat stays behind", exc_info=error)


def _grouped(deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
    """By group, each in the order received."""
    groups: dict[str, list[Delivery]] = {}
    for each in deliveries:
        groups.setdefault(each.group, []).append(each)
    return list(groups.values())


def _fault(error: Exception) -> FaultClass:
    if isinstance(error, QueueMissing):
        return FaultClass.MISSING
    if isinstance(error, Unavailable):
        return FaultClass(error.kind.value)
    return FaultClass.REFUSED if isinstance(error, AwsError) else FaultClass.DATABASE
