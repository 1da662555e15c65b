"""Messages that cannot be worked on: why, and what becomes of each."""

from __future__ import annotations

import logging
from enum import StrEnum

from baton.aws.errors import AwsError
from baton.aws.queues import Queue
from baton.aws.receiving import TRACEPARENT
from baton.aws.sending import Entry, SendState
from baton.consumers.holds import Delivery, Holds
from baton.telemetry import fields
from baton.telemetry.labels import HandleOutcome

_log = logging.getLogger(__name__)

#: Seconds for which a message is hidden that a newer release may understand.
LEFT_FOR = 60.0


class Refusal(StrEnum):
    """Why a message is not worked on."""

    UNREADABLE = "unreadable"
    """Not JSON, or not an envelope: somebody else's message."""
    UNKNOWN_VERSION = "unknown_version"
    """An envelope of a newer release."""
    UNKNOWN_EVENT = "unknown_event"
    """Its ticket's event type is of a newer release."""
    UNKNOWN_TICKET = "unknown_ticket"
    """No such ticket, or its key is another's."""
    WRONG_LANE = "wrong_lane"
    """A ticket that another queue's consumers work on."""

    @property
    def outcome(self) -> HandleOutcome:
        """The word for metrics."""
        return HandleOutcome.UNREADABLE if self is Refusal.UNREADABLE else HandleOutcome.UNKNOWN


class Fate(StrEnum):
    """What becomes of a refused message."""

    DROPPED = "dropped"
    """Deleted: nothing can ever come of it, and nothing in it is worth keeping."""
    DEAD_LETTERED = "dead_lettered"
    """Moved to the dead-letter queue, for a person to look at. Deleted where there is none."""
    LEFT = "left"
    """Hidden for a while: somebody who understands it may come. The queue's own limit ends it."""


#: What becomes of each.
FATE_OF = {
    Refusal.UNREADABLE: Fate.DEAD_LETTERED,
    Refusal.UNKNOWN_VERSION: Fate.LEFT,
    Refusal.UNKNOWN_EVENT: Fate.LEFT,
    Refusal.UNKNOWN_TICKET: Fate.DROPPED,
    Refusal.WRONG_LANE: Fate.DEAD_LETTERED,
}


def dispose(queue: Queue, holds: Holds, delivery: Delivery, refusal: Refusal) -> None:
    """Do with a refused message what its refusal asks for; never raises. A failure leaves it to reappear."""
    fate = FATE_OF[refusal]
    _log.warning(
        "a message cannot be worked on",
        extra=fields.of(message=delivery.message.message_id, action=fate, reason=refusal),
    )
    if fate is Fate.LEFT:
        holds.release([delivery], seconds=LEFT_FOR)
    elif fate is Fate.DROPPED or _moved(queue, delivery):
        holds.done(delivery)
    else:
        holds.release([delivery], seconds=LEFT_FOR)


def _moved(queue: Queue, delivery: Delivery) -> bool:
    """Copy the message to the dead-letter queue; ``False`` where that failed."""
    if queue.dead is None:
        return True
    message = delivery.message
    entry = Entry(
        key=message.message_id,
        body=message.body,
        group=message.group or message.message_id,
        deduplication=message.message_id,
        attributes={} if message.traceparent is None else {TRACEPARENT: message.traceparent},
    )
    try:
        sent = queue.dead.send_batch([entry])
    except AwsError as error:
        _log.warning("a message could not be dead-lettered", exc_info=error)
        return False
    return sent.results[0].state is SendState.SENT
