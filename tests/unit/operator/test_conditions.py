"""Conditions and statuses: what is said of what was seen, and when it is worth a write."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from baton.operator.conditions import Failure, Seen, conditions
from baton.operator.statuses import QUIET, Report, status, worth_writing
from baton.operator.vocabulary import ConditionType, Reason
from baton.reconcilers.results import Effect, Guard, Mode, PassResult
from baton.reconcilers.windows import Held
from baton.runs.breaker import State

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
CALM = Seen(generation=4, passed=True, found={}, breaker=State.CLOSED)


def said(seen: Seen, before: list[dict[str, Any]] | None = None, now: datetime = NOW) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {each["type"]: (each["status"], each["reason"]) for each in conditions(seen, before=before or (), now=now)}


def result(**found: int) -> PassResult:
    """A pass that found so many."""
    made = PassResult(mode=Mode.REPAIR, began=NOW, found=Counter(found))
    made.oldest = {name: NOW - timedelta(hours=2) for name in found}
    return made


def test_all_conditions_are_always_said() -> None:
    """And each speaks of the generation that was looked at."""
    for seen in (Seen(generation=4), CALM):
        found = conditions(seen, before=(), now=NOW)
        assert [each["type"] for each in found] == list(ConditionType)
        assert {each["observedGeneration"] for each in found} == {4}


def test_before_the_first_pass_nothing_is_claimed() -> None:
    """Ready is unknown, and work is under way."""
    found = said(Seen(generation=1))
    assert found["Ready"] == ("Unknown", "FirstPass")
    assert found["Reconciling"] == ("True", "FirstPass")
    assert found["Drifted"][0] == found["BreakerOpen"][0] == "Unknown"


def test_drift_does_not_make_a_working_resource_unready() -> None:
    """What is found is work that is done; whether it is done is what Ready says."""
    found = said(Seen(generation=1, passed=True, found={"run_missing": 2}, breaker=State.CLOSED))
    assert found["Ready"] == ("True", "DiscrepanciesFound")
    assert found["Drifted"] == ("True", "DiscrepanciesFound")
    assert said(CALM)["Ready"] == ("True", "InOrder")


@pytest.mark.parametrize(
    "reason", [Reason.SECRET_MISSING, Reason.CONFLICT, Reason.DATABASE_UNFIT, Reason.LOGIN_REFUSED]
)
def test_what_needs_somebody_stalls(reason: Reason) -> None:
    """And is not called progress."""
    found = said(Seen(generation=1, passed=True, failure=Failure(reason, "So.")))
    assert found["Ready"] == ("False", reason)
    assert found["Stalled"] == ("True", reason)
    assert found["Reconciling"][0] == "False"


@pytest.mark.parametrize("reason", [Reason.DATABASE_UNREACHABLE, Reason.PASS_FAILED])
def test_what_passes_by_itself_is_tried_again(reason: Reason) -> None:
    """And is not called stalled."""
    found = said(Seen(generation=1, passed=True, failure=Failure(reason, "So.")))
    assert found["Ready"] == ("False", reason)
    assert found["Stalled"][0] == "False"
    assert found["Reconciling"] == ("True", reason)


def test_a_time_changes_with_the_status_only() -> None:
    """Not with the reason, the message or the generation."""
    first = conditions(CALM, before=(), now=NOW)
    drifted = Seen(generation=5, passed=True, found={"run_missing": 2}, breaker=State.CLOSED)
    then = conditions(drifted, before=first, now=NOW + timedelta(hours=1))
    changed = {each["type"] for each in then if each["lastTransitionTime"] != "2030-01-31T12:00:00Z"}
    assert changed == {"Drifted"}


def test_a_suspension_names_reason_and_person() -> None:
    """And its end, where it has one."""
    held = Held(Guard.SUSPENDED, "move", "counsel", NOW)
    (told,) = [
        each
        for each in conditions(Seen(generation=1, passed=True, found={}, held=held), before=(), now=NOW)
        if each["type"] == "Suspended"
    ]
    assert told["message"] == "move (by counsel). Until 2030-01-31T12:00:00Z."
    assert said(Seen(generation=1, held=Held(Guard.WINDOW, "x", "y", None)))["Suspended"] == (
        "True",
        "MaintenanceWindow",
    )


def test_a_status_counts_and_names_no_document() -> None:
    """By discrepancy, in a fixed order; what is gone is taken away."""
    passed = result(run_missing=2, apply_stalled=1)
    passed.refused[Guard.RATE] = 3
    passed.effects["run_missing", Effect.REPAIRED] = 2
    written = status(Report(seen=CALM, result=passed, ended=NOW), before=None, now=NOW)
    assert written["found"] == 3
    assert written["oldestSince"] == "2030-01-31T10:00:00Z"
    assert [(each["name"], each["count"]) for each in written["discrepancies"]] == [
        ("apply_stalled", 1),
        ("run_missing", 2),
    ]
    assert written["held"] == [{"guard": "rate", "count": 3}]
    assert written["lastPass"] == {"endedAt": "2030-01-31T12:00:00Z", "repaired": 2, "failed": 0}
    assert status(Report(seen=CALM, result=result(), ended=NOW), before=None, now=NOW)["oldestSince"] is None


def test_a_pass_alone_is_no_reason_to_write() -> None:
    """Within five minutes; then once."""
    stood = status(Report(seen=CALM, result=result(), ended=NOW), before=None, now=NOW)
    stood = {name: value for name, value in stood.items() if value is not None}
    for after, worth in ((timedelta(seconds=30), False), (QUIET - timedelta(seconds=1), False), (QUIET, True)):
        later = status(Report(seen=CALM, result=result(), ended=NOW + after), before=stood, now=NOW + after)
        assert worth_writing(later, before=stood) is worth, after
    changed = status(Report(seen=CALM, result=result(run_missing=1), ended=NOW), before=stood, now=NOW)
    assert worth_writing(changed, before=stood)
