"""When it is a discrepancy's turn again, by what was done before; and how many documents the scrub may judge by now."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from baton.reconcilers import planning, scrub
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.ledger import History
from baton.reconcilers.limits import Turn, turn
from baton.reconcilers.planning import Allowance
from baton.reconcilers.results import Guard
from baton.settings.reconciling import Reconcile

LAST = datetime(2026, 5, 1, tzinfo=UTC)
CONFIG = Reconcile(backoff_initial=60.0, backoff_max=200.0, max_attempts=4, parked_attempts=2, parked_interval=3600.0)
STALLED, PARKED = DISCREPANCIES["request_stalled"], DISCREPANCIES["ticket_parked"]
#: Whatever it costs, it never fails an aspect: what it counts are the registration's own attempts.
UNLIMITED = DISCREPANCIES["failure_retryable"]


@pytest.mark.parametrize(
    ("attempts", "seconds", "exhausted"),
    [(1, 60, False), (2, 120, False), (3, 200, False), (4, 200, True), (5, 200, True), (10_000, 200, True)],
)
def test_each_wait_is_twice_the_one_before_up_to_the_longest(attempts: int, seconds: float, exhausted: bool) -> None:
    """And with the last attempt the next turn is the one that fails it visibly."""
    found = turn(STALLED, History(attempts, LAST), config=CONFIG)
    assert found == Turn(due=LAST + timedelta(seconds=seconds), exhausted=exhausted)


def test_the_first_waits_for_nothing() -> None:
    """Unless there are to be no attempts at all, and then it fails at once; what is not limited never does."""
    assert turn(STALLED, History(), config=CONFIG) == Turn()
    assert turn(PARKED, History(), config=CONFIG) == Turn()
    assert turn(PARKED, History(), config=replace(CONFIG, parked_attempts=0)) == Turn(exhausted=True)
    assert turn(UNLIMITED, History(), config=replace(CONFIG, max_attempts=0)) == Turn()
    assert not turn(UNLIMITED, History(99, LAST), config=CONFIG).exhausted


@pytest.mark.parametrize(("attempts", "exhausted"), [(1, False), (2, True)])
def test_a_parked_ticket_has_waits_and_attempts_of_its_own(attempts: int, exhausted: bool) -> None:
    """Long ones, and all of the same length."""
    found = turn(PARKED, History(attempts, LAST), config=CONFIG)
    assert found == Turn(due=LAST + timedelta(hours=1), exhausted=exhausted)


def test_the_scrub_has_its_rate_and_makes_up_for_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was judged is paid for; after the end of a walk it begins with nothing due."""
    now = 1000.0
    monkeypatch.setattr("baton.reconcilers.scrub.time.monotonic", lambda: now)
    pace = scrub.Pace(50.0)
    assert pace.due() == 0
    now += 10
    assert pace.due() == 500
    pace.spend(450)
    assert pace.due() == 50
    now += 3600
    assert pace.due() == 3000
    pace.rest()
    assert pace.due() == 0


@pytest.mark.parametrize(("early", "guard"), [(timedelta(microseconds=1), Guard.BACKOFF), (timedelta(0), None)])
def test_a_repair_is_due_at_its_very_moment(early: timedelta, guard: Guard | None) -> None:
    """An instant before it is held back until then."""
    due = datetime(2026, 1, 1, tzinfo=UTC)
    allowed = Allowance(held=None, owned=True, left=1, run=None)
    told = planning._guard(STALLED, Turn(due=due), allowed=allowed, left=1, now=due - early)
    assert told == (guard, None if guard is None else due)
