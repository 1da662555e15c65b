"""What counts as trouble of which a jump opens the breaker."""

from collections import Counter

from baton.reconcilers import jumps
from baton.reconcilers.results import Mode, PassResult


def test_everyday_work_is_no_trouble() -> None:
    """Retries whose time has come, marks to write, runs to settle: they come in any number."""
    everyday = {"failure_retryable": 50, "mark_missing": 40, "run_lapsed": 30}
    result = PassResult(mode=Mode.OBSERVE, found=Counter({**everyday, "request_stalled": 2, "run_missing": 1}))
    assert jumps.suspicious(result) == 3
