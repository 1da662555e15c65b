"""What a send does to its ticket, and a batch to its relay. Pure: no clock, no database, no queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from baton.aws.errors import AwsError
from baton.aws.sending import SendState


class Fate(StrEnum):
    """What becomes of one claimed ticket."""

    DISPATCHED = "dispatched"
    COUNTED = "counted"
    """Refused by its own fault: an attempt is spent, and it waits."""
    PARKED = "parked"
    """The same, and it was the last attempt: a person or a reconciler decides."""
    DELAYED = "delayed"
    """Not taken while others were: it steps aside for a moment, and no attempt is spent."""
    LEFT = "left"
    """Nobody's turn came, or nobody's answer: it stays as it was."""


class Next(StrEnum):
    """What a relay does after a batch."""

    AGAIN = "again"
    LISTEN = "listen"
    BACK_OFF = "back_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayResult:
    """What one batch did, in tickets."""

    claimed: int = 0
    dispatched: int = 0
    """Rows that this batch marked; a message may have been sent for one that somebody else had marked before."""
    counted: int = 0
    parked: int = 0
    delayed: int = 0
    left: int = 0
    failure: AwsError | None = None
    """What made the batch fail as a whole."""


#: Until a ticket that stepped aside is tried again. Long enough for a batch of others, short for its lawyer.
ASIDE: Final = timedelta(seconds=2)
_REFUSED_INITIAL: Final = timedelta(seconds=5)
_REFUSED_LONGEST: Final = timedelta(minutes=5)


def fate_of(state: SendState, *, attempts: int, max_attempts: int, failed: bool) -> Fate:
    """What becomes of a ticket.

    :param attempts: those it had spent before.
    :param failed: the batch failed as a whole; what is not plainly the ticket's own fault then counts for nobody.
    """
    match state:
        case SendState.SENT:
            return Fate.DISPATCHED
        case SendState.REFUSED:
            return Fate.PARKED if attempts + 1 >= max_attempts else Fate.COUNTED
        case SendState.FAILED | SendState.UNANSWERED:
            return Fate.LEFT if failed else Fate.DELAYED
        case SendState.UNTRIED:
            return Fate.LEFT


def wait_after(attempts: int) -> timedelta:
    """Until a refused ticket is tried again, after ``attempts`` refusals (from 1): doubled each time."""
    doublings = min(max(attempts - 1, 0), 10)
    return min(_REFUSED_INITIAL * 2.0**doublings, _REFUSED_LONGEST)


def decide(result: RelayResult) -> Next:
    """What the relay does next.

    A batch of which nothing went through by the service's fault is a failure of the whole, even where the service says so
    of each entry by itself: going on would only push the whole backlog aside.
    """
    if result.failure is not None:
        return Next.BACK_OFF
    if result.delayed and not result.dispatched:
        return Next.BACK_OFF
    return Next.AGAIN if result.claimed else Next.LISTEN


def leaves_more(result: RelayResult, *, size: int) -> bool:
    """Whether a batch of at most ``size`` went well and was full: there may be more than one session carries."""
    return result.claimed >= size and decide(result) is Next.AGAIN
