"""What a spec says, and what it cannot say."""

from datetime import UTC, datetime
from typing import Any

import pytest

from baton.operator.specs import SpecInvalid, Suspension, Wanted
from baton.reconcilers.results import Mode
from baton.settings.model import Settings
from baton.settings.secret import Secret

URL = Secret("postgresql+psycopg://baton_reconciler@db/baton")


def wanted(**spec: Any) -> Wanted:
    """A resource with the spec."""
    return Wanted.of(
        {"metadata": {"namespace": "n", "name": "r", "uid": "u", "resourceVersion": "1", "generation": 1}, "spec": spec}
    )


def settings(**spec: Any) -> Settings:
    """What its loop works by."""
    return wanted(**spec).settings(database=URL, aws=Settings().aws, ambient=Settings())


@pytest.mark.parametrize(
    ("written", "seconds"), [("30s", 30.0), ("1h30m", 5400.0), ("1m0s", 60.0), ("500ms", 0.5), ("1m500ms", 60.5)]
)
def test_durations_are_read(written: str, seconds: float) -> None:
    """Of one unit, or of several."""
    assert wanted(interval=written).interval == seconds


@pytest.mark.parametrize("written", ["", "30", "-5s", "5 s", "5d", "s", "5s!", 7, ["5s"]])
def test_what_is_no_duration_is_refused(written: object) -> None:
    """With the field's name."""
    with pytest.raises(SpecInvalid, match="interval"):
        _ = wanted(interval=written).interval


def test_everything_that_the_spec_says_is_taken() -> None:
    """No field of the spec is without an effect."""
    made = settings(
        queues={
            "ingest": "i.fifo",
            "registrar": "r.fifo",
            "results": "q",
            "create": False,
            "visibility": "90s",
            "retention": "1h",
        },
        bucket="papers",
        interval="10s",
        graces=[{"discrepancy": "run_lapsed", "grace": "5m"}],
        limits={
            "repairsPerMinute": 7,
            "maxAttempts": 2,
            "backoffInitial": "1s",
            "backoffMax": "9s",
            "parkedAttempts": 1,
        }
        | {"parkedInterval": "2m", "runAttempts": 4, "runsPerHour": 0},
        breaker={
            "failurePercent": 25,
            "windowRuns": 9,
            "window": "1m",
            "minRuns": 3,
            "discrepancyCap": 8,
            "cooldown": "4s",
        }
        | {"trialRuns": 2},
        scrub={"rate": 0, "backstopRows": 0},
    )
    assert (made.queues.ingest, made.queues.registrar, made.queues.results) == ("i.fifo", "r.fifo", "q")
    assert (made.queues.create, made.queues.visibility, made.queues.retention) == (False, 90, 3600)
    assert made.bucket.name == "papers"
    kept = made.reconcile
    assert (kept.interval, kept.repairs_per_minute, kept.max_attempts) == (10.0, 7, 2)
    assert (kept.backoff_initial, kept.backoff_max, kept.parked_attempts, kept.parked_interval) == (1.0, 9.0, 1, 120.0)
    assert (kept.scrub_rate, kept.backstop_rows, kept.graces) == (0.0, 0, (("run_lapsed", 300.0),))
    assert (made.runs.max_attempts, made.runs.hourly_budget) == (4, 0)
    assert (made.breaker.failure_ratio, made.breaker.window_runs, made.breaker.window_time) == (0.25, 9, 60.0)
    assert (made.breaker.min_runs, made.breaker.discrepancy_cap) == (3, 8)
    assert (made.breaker.cooldown, made.breaker.trial_runs) == (4.0, 2)


@pytest.mark.parametrize(
    "spec",
    [
        {"queues": {"results": "x.fifo"}},
        {"queues": {"ingest": "one", "registrar": "one"}},
        {"limits": {"backoffInitial": "2h", "backoffMax": "1h"}},
        {"limits": {"maxAttempts": "many"}},
        {"queues": "none"},
        {"graces": [{"grace": "1s"}]},
    ],
)
def test_what_cannot_be_is_refused(spec: dict[str, Any]) -> None:
    """Also where a server of another version let it through."""
    with pytest.raises(SpecInvalid):
        settings(**spec)


@pytest.mark.parametrize("mode", [None, "Observe", "repair", "Everything"])
def test_what_is_no_leave_to_repair_is_none(mode: object) -> None:
    """Only the one word is."""
    assert wanted(mode=mode).mode is Mode.OBSERVE
    assert wanted(mode="Repair").mode is Mode.REPAIR


def test_a_suspension_has_its_reason_and_its_end() -> None:
    """With any offset; without one it is refused."""
    until = datetime(2030, 1, 31, 12, tzinfo=UTC)
    assert wanted().suspension is None
    assert wanted(suspend={"reason": "move"}).suspension == Suspension("move", None)
    assert wanted(suspend={"reason": "move", "until": "2030-01-31T13:00:00+01:00"}).suspension == Suspension(
        "move", until
    )
    for wrong in ("2030-01-31T12:00:00", "tomorrow"):
        with pytest.raises(SpecInvalid, match=r"suspend\.until"):
            _ = wanted(suspend={"reason": "move", "until": wrong}).suspension


def test_a_window_without_an_end_is_refused() -> None:
    """It would hold repairs back for good."""
    with pytest.raises(SpecInvalid, match=r"maintenanceWindows\[0\]"):
        _ = wanted(maintenanceWindows=[{"reason": "x", "start": "2030-01-31T12:00:00Z"}]).windows


def test_a_resource_made_anew_is_another() -> None:
    """Its name on the database differs, though it is called the same."""
    metadata = {"namespace": "n", "name": "r", "resourceVersion": "1"}
    first, second = (Wanted.of({"metadata": {**metadata, "uid": uid}}) for uid in ("1", "2"))
    assert first.key.owner != second.key.owner
