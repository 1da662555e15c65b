"""The two decisions of a relay, as tables."""

from datetime import timedelta

import pytest

from baton.aws.errors import FaultKind, QueueMissing, QueueUnavailable
from baton.aws.sending import SendState
from baton.outbox.fates import Fate, Next, RelayResult, decide, fate_of, wait_after

DOWN = QueueUnavailable("sqs: down", kind=FaultKind.TRANSPORT)


@pytest.mark.parametrize(
    ("state", "attempts", "failed", "fate"),
    [
        (SendState.SENT, 0, False, Fate.DISPATCHED),
        (SendState.SENT, 4, True, Fate.DISPATCHED),
        (SendState.REFUSED, 0, False, Fate.COUNTED),
        (SendState.REFUSED, 3, True, Fate.COUNTED),
        (SendState.REFUSED, 4, False, Fate.PARKED),
        (SendState.REFUSED, 9, True, Fate.PARKED),
        (SendState.FAILED, 4, False, Fate.DELAYED),
        (SendState.UNANSWERED, 4, False, Fate.DELAYED),
        (SendState.FAILED, 4, True, Fate.LEFT),
        (SendState.UNANSWERED, 4, True, Fate.LEFT),
        (SendState.UNTRIED, 4, False, Fate.LEFT),
        (SendState.UNTRIED, 4, True, Fate.LEFT),
    ],
)
def test_only_its_own_fault_costs_a_ticket_anything(state: SendState, attempts: int, failed: bool, fate: Fate) -> None:
    """Refusals count and in the end park; whatever the service did counts for nobody."""
    assert fate_of(state, attempts=attempts, max_attempts=5, failed=failed) is fate


@pytest.mark.parametrize(
    ("result", "step"),
    [
        (RelayResult(), Next.LISTEN),
        (RelayResult(claimed=5, dispatched=5), Next.AGAIN),
        (RelayResult(claimed=5, counted=5), Next.AGAIN),
        (RelayResult(claimed=5, parked=5), Next.AGAIN),
        (RelayResult(claimed=5, dispatched=1, delayed=4), Next.AGAIN),
        (RelayResult(claimed=5, delayed=5), Next.BACK_OFF),
        (RelayResult(claimed=5, counted=1, delayed=4), Next.BACK_OFF),
        (RelayResult(claimed=5, dispatched=4, left=1, failure=DOWN), Next.BACK_OFF),
        (RelayResult(claimed=5, left=5, failure=QueueMissing("gone")), Next.BACK_OFF),
    ],
)
def test_a_relay_backs_off_for_the_service_alone(result: RelayResult, step: Next) -> None:
    """Tickets at fault never slow the others down; a service that takes nothing does."""
    assert decide(result) is step


def test_a_refused_ticket_waits_longer_each_time() -> None:
    """Five seconds, doubled, five minutes at most, whatever the count."""
    waits = [wait_after(attempts) for attempts in (1, 2, 3, 7, 50)]
    assert waits[:3] == [timedelta(seconds=5), timedelta(seconds=10), timedelta(seconds=20)]
    assert waits[3] == waits[4] == timedelta(minutes=5)
