"""What the API server takes and what it refuses, by the definitions in `crds/`."""

from typing import Any

import pytest

from cluster.bed.asking import Kubernetes
from cluster.resources import DOCUMENT, FULL, RECONCILERS, REDRIVES, reconciler, redrive

pytestmark = pytest.mark.cluster

LONG = "x" * 5000
MOMENT = "2030-01-31T12:00:00Z"
LATER = "2030-01-31T13:00:00Z"

#: What is changed of the spec, the field that the server names, and words of the rule that it gives.
REFUSED_RECONCILERS: list[tuple[dict[str, Any], str, str]] = [
    ({"database": None}, "spec.database", "Required value"),
    ({"database": {}}, "spec.database.secretRef", "Required value"),
    ({"database": {"secretRef": {}}}, "spec.database.secretRef.name", "Required value"),
    ({"database": {"secretRef": {"name": ""}}}, "spec.database.secretRef.name", "at least 1 char"),
    ({"database": {"secretRef": {"name": "Upper"}}}, "spec.database.secretRef.name", "should match"),
    ({"database": {"secretRef": {"name": "other/secret"}}}, "spec.database.secretRef.name", "should match"),
    ({"database": {"secretRef": {"name": "a" * 254}}}, "spec.database.secretRef.name", "may not be more than 253"),
    ({"database": {"secretRef": {"name": "a", "key": "no spaces"}}}, "spec.database.secretRef.key", "should match"),
    (
        {"database": {"secretRef": {"name": "a", "namespace": "b"}}},
        "spec.database.secretRef.namespace",
        "unknown field",
    ),
    ({"database": {"host": "db", "secretRef": {"name": "a"}}}, "spec.database.host", "unknown field"),
    ({"aws": {"region": "EU"}}, "spec.aws.region", "should match"),
    ({"aws": {"secretRef": {}}}, "spec.aws.secretRef.name", "Required value"),
    ({"aws": {"endpoint": "http://elsewhere"}}, "spec.aws.endpoint", "unknown field"),
    ({"queues": {"ingest": "https://elsewhere/1/q"}}, "spec.queues.ingest", "should match"),
    ({"queues": {"ingest": "q" * 81}}, "spec.queues.ingest", "may not be more than 80"),
    ({"queues": {"results": "q.fifo"}}, "spec.queues.results", "no FIFO queue"),
    ({"queues": {"ingest": "same", "registrar": "same"}}, "spec.queues", "are three"),
    ({"queues": {"visibility": "1s"}}, "spec.queues.visibility", "between 2s and 12h"),
    ({"queues": {"retention": "337h"}}, "spec.queues.retention", "between 60s and 336h"),
    ({"queues": {"create": "yes"}}, "spec.queues.create", "must be of type boolean"),
    ({"bucket": "Papers"}, "spec.bucket", "should match"),
    ({"bucket": "ab"}, "spec.bucket", "at least 3 chars"),
    ({"mode": "repair"}, "spec.mode", 'supported values: "Observe", "Repair"'),
    ({"mode": True}, "spec.mode", "must be of type string"),
    ({"suspend": {}}, "spec.suspend.reason", "Required value"),
    ({"suspend": {"reason": "   "}}, "spec.suspend.reason", "should match"),
    ({"suspend": {"reason": LONG}}, "spec.suspend.reason", "may not be more than 500"),
    ({"suspend": {"reason": "x", "until": "tomorrow"}}, "spec.suspend.until", "must be of type date-time"),
    ({"suspend": True}, "spec.suspend", "must be of type object"),
    (
        {"maintenanceWindows": [{"reason": "x", "start": LATER, "end": MOMENT}]},
        "spec.maintenanceWindows[0]",
        "ends after it starts",
    ),
    ({"maintenanceWindows": [{"reason": "x", "start": MOMENT}]}, "spec.maintenanceWindows[0].end", "Required value"),
    (
        {"maintenanceWindows": [{"reason": "x", "start": MOMENT, "end": LATER}] * 21},
        "spec.maintenanceWindows",
        "must have at most 20 items",
    ),
    ({"interval": "0s"}, "spec.interval", "between 1s and 1h"),
    ({"interval": "61m"}, "spec.interval", "between 1s and 1h"),
    ({"interval": "5 days"}, "spec.interval", "should match"),
    ({"interval": 30}, "spec.interval", "must be of type"),
    ({"graces": [{"discrepancy": "lost", "grace": "1s"}]}, "spec.graces[0].discrepancy", "Unsupported value"),
    ({"graces": [{"discrepancy": "run_lapsed", "grace": "721h"}]}, "spec.graces[0].grace", "at most 720h"),
    ({"graces": [{"discrepancy": "run_lapsed", "grace": "1s"}] * 2}, "spec.graces[1]", "Duplicate value"),
    ({"limits": {"repairsPerMinute": -1}}, "spec.limits.repairsPerMinute", "greater than or equal to 0"),
    ({"limits": {"maxAttempts": 0}}, "spec.limits.maxAttempts", "greater than or equal to 1"),
    ({"limits": {"maxAttempts": 1.5}}, "spec.limits.maxAttempts", "must be of type integer"),
    ({"limits": {"backoffInitial": "2h", "backoffMax": "1h"}}, "spec.limits.backoffMax", "not below backoffInitial"),
    ({"limits": {"parkedInterval": "169h"}}, "spec.limits.parkedInterval", "at most 168h"),
    ({"breaker": {"failurePercent": 0}}, "spec.breaker.failurePercent", "greater than or equal to 1"),
    ({"breaker": {"failurePercent": 101}}, "spec.breaker.failurePercent", "less than or equal to 100"),
    ({"breaker": {"window": "25h"}}, "spec.breaker.window", "between 1s and 24h"),
    ({"scrub": {"rate": 100_001}}, "spec.scrub.rate", "less than or equal to 100000"),
    ({"supend": {"reason": "misspelt"}}, "spec.supend", "unknown field"),
]
REFUSED_REDRIVES: list[tuple[dict[str, Any], str, str]] = [
    ({"reconcilerRef": None}, "spec.reconcilerRef", "Required value"),
    ({"selector": None}, "spec.selector", "Required value"),
    ({"selector": {}}, "spec.selector", "name documents, a firm"),
    ({"selector": {"olderThan": "1h"}}, "spec.selector", "name documents, a firm"),
    ({"selector": {"matter": DOCUMENT, "errors": ["unreadable"]}}, "spec.selector.matter", "name the firm, too"),
    ({"selector": {"documents": []}}, "spec.selector.documents", "at least 1 items"),
    ({"selector": {"documents": ["all"]}}, "spec.selector.documents[0]", "should match"),
    ({"selector": {"documents": [DOCUMENT, DOCUMENT]}}, "spec.selector.documents[1]", "Duplicate value"),
    ({"selector": {"firm": "Smith & Sons"}}, "spec.selector.firm", "should match"),
    ({"selector": {"registration": ["stuck"]}}, "spec.selector.registration[0]", "Unsupported value"),
    ({"selector": {"processing": ["stuck"]}}, "spec.selector.processing[0]", "Unsupported value"),
    ({"selector": {"firm": DOCUMENT, "aspects": ["all"]}}, "spec.selector.aspects[0]", "Unsupported value"),
    ({"selector": {"firm": DOCUMENT, "olderThan": "1d"}}, "spec.selector.olderThan", "should match"),
    ({"reason": None}, "spec.reason", "Required value"),
    ({"reason": "  "}, "spec.reason", "should match"),
    ({"reason": LONG}, "spec.reason", "may not be more than 1000"),
    ({"requestedBy": None}, "spec.requestedBy", "Required value"),
    ({"perMinute": 0}, "spec.perMinute", "greater than or equal to 1"),
    ({"dryRun": "yes"}, "spec.dryRun", "must be of type boolean"),
    ({"ttlAfterFinished": "1s"}, "spec.ttlAfterFinished", "between 1m and 8760h"),
    ({"force": True}, "spec.force", "unknown field"),
]


def without_nothing(body: dict[str, Any]) -> dict[str, Any]:
    """The resource without what is None of its spec."""
    return {**body, "spec": {name: value for name, value in body["spec"].items() if value is not None}}


def refusal(answer: Any) -> str:
    """The message of a refusal."""
    assert answer.status_code in (400, 422), answer.text
    message: str = answer.json()["message"]
    return message


@pytest.mark.parametrize(("spec", "field", "rule"), REFUSED_RECONCILERS, ids=lambda each: str(each)[:60])
def test_a_wrong_reconciler_is_refused(served: Kubernetes, spec: dict[str, Any], field: str, rule: str) -> None:
    """With a message that names the field and the rule."""
    message = refusal(served.create(RECONCILERS, without_nothing(reconciler(**spec)), dry_run=True))
    assert field in message
    assert rule in message


@pytest.mark.parametrize(("spec", "field", "rule"), REFUSED_REDRIVES, ids=lambda each: str(each)[:60])
def test_a_wrong_redrive_is_refused(served: Kubernetes, spec: dict[str, Any], field: str, rule: str) -> None:
    """With a message that names the field and the rule."""
    message = refusal(served.create(REDRIVES, without_nothing(redrive(**spec)), dry_run=True))
    assert field in message
    assert rule in message


def test_a_reconciler_says_no_more_than_it_must(kubernetes: Kubernetes) -> None:
    """Everything else has its default, and looking comes before repairing."""
    spec = kubernetes.create(RECONCILERS, reconciler()).raise_for_status().json()["spec"]
    assert spec == {
        "database": {"secretRef": {"name": "database", "key": "DATABASE_URL"}},
        "aws": {},
        "queues": {
            "ingest": "baton-ingest.fifo",
            "registrar": "baton-registrar.fifo",
            "results": "baton-results",
            "create": True,
            "visibility": "60s",
            "retention": "336h",
        },
        "bucket": "baton-documents",
        "mode": "Observe",
        "interval": "30s",
        "limits": {
            "repairsPerMinute": 600,
            "maxAttempts": 5,
            "backoffInitial": "60s",
            "backoffMax": "1h",
            "parkedAttempts": 3,
            "parkedInterval": "1h",
            "runAttempts": 5,
        },
        "breaker": {
            "failurePercent": 50,
            "windowRuns": 50,
            "window": "10m",
            "minRuns": 10,
            "discrepancyCap": 20000,
            "cooldown": "5m",
            "trialRuns": 3,
        },
        "scrub": {"rate": 500, "backstopRows": 1000},
    }


def test_a_reconciler_may_say_everything(kubernetes: Kubernetes) -> None:
    """And is kept as it was written."""
    assert kubernetes.create(RECONCILERS, reconciler(**FULL)).raise_for_status().json()["spec"] == FULL


@pytest.mark.parametrize(
    "selector",
    [
        {"documents": [DOCUMENT]},
        {"firm": DOCUMENT},
        {"firm": DOCUMENT, "matter": DOCUMENT},
        {"discrepancies": ["run_lapsed", "request_stalled"], "aspects": ["registration"]},
        {"processing": ["failed"], "olderThan": "1h30m"},
        {"registration": ["registration_failed"], "underWay": True},
        {"errors": ["agent_refused"]},
    ],
    ids=str,
)
def test_a_redrive_is_taken_with_its_defaults(kubernetes: Kubernetes, selector: dict[str, Any]) -> None:
    """By each way of choosing."""
    spec = kubernetes.create(REDRIVES, redrive(selector=selector)).raise_for_status().json()["spec"]
    assert spec["selector"] == {"underWay": False, **selector}
    assert (spec["dryRun"], spec["perMinute"], spec["ttlAfterFinished"]) == (False, 600, "168h")


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "another"},
        {"dryRun": True},
        {"selector": {"firm": DOCUMENT}},
        {"selector": {"documents": None, "firm": DOCUMENT}},
        {"requestedBy": "somebody else"},
    ],
    ids=str,
)
def test_a_redrive_cannot_be_changed(kubernetes: Kubernetes, change: dict[str, Any]) -> None:
    """What was asked for stands, and the message says what to do instead."""
    kubernetes.create(REDRIVES, redrive()).raise_for_status()
    message = refusal(kubernetes.patch(REDRIVES, "once", {"spec": change}))
    assert "spec" in message
    assert "create another redrive" in message


def test_a_status_has_no_room_for_what_it_does_not_know(kubernetes: Kubernetes) -> None:
    """A field that the schema lacks is dropped, so each field that is written stands in it; a status leaves the spec."""
    kubernetes.create(RECONCILERS, reconciler()).raise_for_status()
    change = {"status": {"found": 3, "documents": ["secret.pdf"]}, "spec": {"mode": "Repair"}}
    body = kubernetes.patch(RECONCILERS, "main", change, part="status").raise_for_status().json()
    assert body["status"] == {"found": 3}
    assert body["spec"]["mode"] == "Observe"


def test_a_deleted_reconciler_is_gone_at_once(kubernetes: Kubernetes) -> None:
    """Nobody has to run for it."""
    kubernetes.create(RECONCILERS, reconciler()).raise_for_status()
    kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
    assert kubernetes.read(RECONCILERS, "main") is None
