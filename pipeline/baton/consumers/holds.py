"""Messages that this consumer holds: hidden from others until a known moment, and extended before it.

Every message of a batch is extended from the moment it was received, whether its work has begun or not: a prefetched
message whose visibility lapses is handed to somebody else while it still waits here (seen in spring-cloud-aws#196). A
message whose hold was lost all the same, because the queue was away or this process stood still, is not begun any more.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from baton.aws.errors import AwsError
from baton.aws.queues import Queue
from baton.aws.receiving import Message
from baton.outbox.tickets import Ticket

_log = logging.getLogger(__name__)

#: Seconds for which SQS hides a message at most, less what it may have been hidden for already.
LONGEST_HIDE = 39_600

#: Seconds by which a hold counts as over before it is, so that work does not begin at the last moment.
_MARGIN = 0.5
#: Seconds that letting go waits for an extension under way, which would otherwise hide the message again.
_PATIENCE = 5.0


@dataclass(slots=True, eq=False)
class Delivery:
    """One received message, and the ticket behind it where there is one."""

    message: Message
    group: str
    """Deliveries of one group are handled in order, one at a time."""
    ticket: Ticket | None = None
    until: float = field(default=0.0)
    """Monotonic time at which others may see it."""
    lost: bool = False
    """The queue said that it is not ours any more."""


#: Writes down that deliveries stay invisible for so long; may fail.
Note = Callable[[Sequence[Delivery], timedelta], None]


class Holds:
    """The deliveries in hand; shared by the receiving thread, the workers and the keeper."""

    def __init__(self, queue: Queue, *, note: Note) -> None:
        self._queue = queue
        self._note = note
        self._visibility = queue.spec.visibility
        self._lock = threading.Lock()
        self._calling = threading.Lock()
        self._held: dict[str, Delivery] = {}

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def take(self, deliveries: Iterable[Delivery], *, received: float) -> None:
        """Hold what was received at monotonic time ``received``."""
        with self._lock:
            for each in deliveries:
                each.until = received + self._visibility
                self._held[each.message.receipt] = each

    def holds(self, delivery: Delivery) -> bool:
        """Whether nobody else can have it."""
        return not delivery.lost and time.monotonic() < delivery.until - min(_MARGIN, self._visibility / 10)

    def extend(self) -> int:
        """Hide everything in hand for another whole visibility time; returns how many were lost.

        Never raises. The queue comes first: that the ticket's row says so a moment later is well inside the time that
        anybody waits after a hold has passed before calling the ticket lost.
        """
        with self._calling:
            with self._lock:
                held = [each for each in self._held.values() if not each.lost]
            if not held:
                return 0
            asked = time.monotonic()
            try:
                receipts = [each.message.receipt for each in held]
                refused = self._queue.change_visibility_batch(receipts, seconds=self._visibility)
            except AwsError as error:
                _log.warning("messages in hand could not be kept hidden", exc_info=error)
                return 0
            kept = []
            for each in held:
                if each.message.receipt in refused:
                    each.lost = True
                else:
                    each.until = asked + self._visibility
                    kept.append(each)
        self._note(kept, timedelta(seconds=self._visibility))
        return len(held) - len(kept)

    def done(self, delivery: Delivery) -> bool:
        """Delete the message; ``False`` where the queue did not take it, and it will come again."""
        self.forget([delivery])
        try:
            refused = self._queue.delete_batch([delivery.message.receipt])
        except AwsError as error:
            _log.warning("a message could not be deleted and comes again", exc_info=error)
            return False
        return not refused

    def release(self, deliveries: Sequence[Delivery], *, seconds: float = 0.0, note: bool = True) -> None:
        """Let go: visible to others after ``seconds``. Never raises; at worst they reappear when their time is over."""
        if not deliveries:
            return
        self.forget(deliveries)
        wait = min(math.ceil(seconds), LONGEST_HIDE)
        if note and wait > 0:
            self._note(deliveries, timedelta(seconds=wait))
        # an extension that has already left would overtake this and hide the message again
        waited = self._calling.acquire(timeout=_PATIENCE)
        try:
            self._queue.change_visibility_batch([each.message.receipt for each in deliveries], seconds=wait)
        except AwsError as error:
            _log.warning("messages could not be released and reappear by themselves", exc_info=error)
        finally:
            if waited:
                self._calling.release()

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """Keep these hidden no longer."""
        with self._lock:
            for each in deliveries:
                self._held.pop(each.message.receipt, None)

    def everything(self) -> list[Delivery]:
        """What is in hand now."""
        with self._lock:
            return list(self._held.values())
