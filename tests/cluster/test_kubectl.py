"""What people see who look with kubectl: columns, explanations, conditions, differences."""

import re
from pathlib import Path
from typing import Any

import pytest

from cluster.bed.asking import Kubernetes
from cluster.resources import RECONCILERS, REDRIVES, reconciler, redrive

pytestmark = pytest.mark.cluster

GOLDEN = Path(__file__).parent / "golden"
LONG_AGO = "2001-01-31T12:00:00Z"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    """One condition of long ago."""
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": LONG_AGO, "observedGeneration": 1}


STUCK: dict[str, Any] = {
    "observedGeneration": 1,
    "conditions": [
        condition("Ready", "True", "DiscrepanciesFound", "14 found: request_stalled 9, run_lapsed 5."),
        condition("Reconciling", "False", "Settled"),
        condition("Stalled", "False", "Progressing"),
        condition("Drifted", "True", "DiscrepanciesFound", "14 found: request_stalled 9, run_lapsed 5."),
        condition("Suspended", "True", "Suspended", "moving house (by main). Until 2099-01-31T12:00:00Z."),
        condition("BreakerOpen", "False", "Closed"),
    ],
    "found": 14,
    "oldestSince": LONG_AGO,
    "discrepancies": [
        {"name": "request_stalled", "count": 9, "oldestSince": LONG_AGO},
        {"name": "run_lapsed", "count": 5, "oldestSince": LONG_AGO},
    ],
    "held": [{"guard": "suspended", "count": 14}],
    "lastPass": {"endedAt": LONG_AGO, "repaired": 0, "failed": 0},
    "lastHandledReconcileAt": "now-1",
}


def seen(output: str) -> str:
    """What kubectl printed, without what differs each time."""
    output = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", output)
    if output.startswith("NAME "):
        output = re.sub(r"\b\d+y\d*d?\b", "AGES", output)
        output = re.sub(r"\b(\d+m)?\d+s?(?= *$)", "SOON", output, flags=re.MULTILINE)
    output = re.sub(r"20[2-8]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ(?!\S)", "TODAY", output)
    output = re.sub(r"(Resource Version: +)\d+", r"\1N", output)
    output = re.sub(r"test-[0-9a-f]{12}", "NAMESPACE", output)
    return "\n".join(line.rstrip() for line in output.splitlines()) + "\n"


def assert_golden(name: str, output: str) -> None:
    """Compare with what is kept; where nothing is kept yet it is written, for somebody to look at, and the test fails."""
    file = GOLDEN / f"{name}.txt"
    if not file.exists():
        file.write_text(seen(output), encoding="utf-8")
        pytest.fail(f"{file.name} was not there, and is written now: look at it")
    assert seen(output) == file.read_text(encoding="utf-8")


@pytest.fixture
def stuck(kubernetes: Kubernetes) -> Kubernetes:
    """A resource with a status, one without, and a redrive."""
    suspended = {"reason": "moving house", "until": "2099-01-31T12:00:00Z"}
    kubernetes.create(RECONCILERS, reconciler(mode="Repair", suspend=suspended)).raise_for_status()
    kubernetes.create(RECONCILERS, reconciler("fresh")).raise_for_status()
    kubernetes.create(REDRIVES, redrive()).raise_for_status()
    kubernetes.patch(RECONCILERS, "main", {"status": STUCK}, part="status").raise_for_status()
    done: dict[str, Any] = {"state": "Finished", "planned": 13, "redriven": 12, "failed": 1, "finishedAt": LONG_AGO}
    done["conditions"] = [condition("Ready", "True", "PartlyFailed", "12 redriven; busy or failed: 1.")]
    kubernetes.patch(REDRIVES, "once", {"status": done}, part="status").raise_for_status()
    return kubernetes


@pytest.mark.parametrize(
    "arguments",
    [
        "get regrec",
        "get regrec --output wide",
        "get redrive",
        "get redrive --output wide",
        "get baton",
        "describe regrec main",
    ],
)
def test_the_columns_say_whether_anything_is_stuck(stuck: Kubernetes, arguments: str) -> None:
    """Whether it works, how much is stuck and since when, whether somebody holds it back."""
    name = re.sub(r"\W+", "-", arguments)
    assert_golden(name, stuck.kubectl(*arguments.split()))


@pytest.mark.parametrize(
    "path", ["regrec", "regrec.spec", "regrec.spec.limits", "regrec.status", "redrive.spec", "redrive.spec.selector"]
)
def test_every_field_is_explained(served: Kubernetes, path: str) -> None:
    """As the server tells it."""
    assert_golden(f"explain-{path.replace('.', '-')}", served.kubectl("explain", path))


def test_waiting_for_a_condition_ends_with_it(stuck: Kubernetes) -> None:
    """And says so where it does not come."""
    stuck.kubectl("wait", "--for=condition=Ready", "regrec/main", "--timeout=10s")
    stuck.kubectl("wait", "--for=condition=Drifted", "regrec/main", "--timeout=10s")
    assert "timed out" in stuck.kubectl("wait", "--for=condition=Ready", "regrec/fresh", "--timeout=1s", code=1)


def test_two_managers_share_a_resource(kubernetes: Kubernetes) -> None:
    """Each owns its entries of a list; what both claim is a conflict that names field and owner."""
    first = reconciler(graces=[{"discrepancy": "run_lapsed", "grace": "5m"}])
    second = {**first, "spec": {"graces": [{"discrepancy": "request_stalled", "grace": "1m"}]}}
    apply = ("apply", "--server-side", "--filename", "-", "--field-manager")
    kubernetes.kubectl(*apply, "platform", given=first)
    kubernetes.kubectl(*apply, "night-shift", given=second)
    graces = {each["discrepancy"]: each["grace"] for each in kubernetes.read(RECONCILERS, "main")["spec"]["graces"]}
    assert graces == {"run_lapsed": "5m", "request_stalled": "1m"}
    third = {**first, "spec": {"graces": [{"discrepancy": "run_lapsed", "grace": "9m"}]}}
    refused = kubernetes.kubectl(*apply, "night-shift", given=third, code=1)
    assert '.spec.graces[discrepancy="run_lapsed"].grace' in refused
    assert "platform" in refused


def test_a_difference_shows_what_would_change(kubernetes: Kubernetes) -> None:
    """And defaults are none."""
    kubernetes.kubectl("apply", "--server-side", "--filename", "-", given=reconciler())
    diff = ("diff", "--server-side", "--filename", "-")
    assert kubernetes.kubectl(*diff, given=reconciler()) == ""
    changed = kubernetes.kubectl(*diff, given=reconciler(mode="Repair"), code=1)
    assert "-  mode: Observe" in changed
    assert "+  mode: Repair" in changed
