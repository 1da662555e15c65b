"""Resources to begin from."""

from typing import Any

RECONCILERS = "registrationreconcilers"
REDRIVES = "registrationredrives"
_VERSION = "baton.pramaan.dev/v1alpha1"
DOCUMENT = "0198c0de-0000-7000-8000-000000000001"


def reconciler(name: str = "main", *, secret: str = "database", **spec: Any) -> dict[str, Any]:
    """A RegistrationReconciler that says no more than it must, and what is given."""
    return {
        "apiVersion": _VERSION,
        "kind": "RegistrationReconciler",
        "metadata": {"name": name},
        "spec": {"database": {"secretRef": {"name": secret}}, **spec},
    }


def redrive(name: str = "once", **spec: Any) -> dict[str, Any]:
    """A RegistrationRedrive that says no more than it must, and what is given."""
    return {
        "apiVersion": _VERSION,
        "kind": "RegistrationRedrive",
        "metadata": {"name": name},
        "spec": {
            "reconcilerRef": {"name": "main"},
            "selector": {"documents": [DOCUMENT]},
            "reason": "The agent was misconfigured.",
            "requestedBy": "night shift",
            **spec,
        },
    }


#: Everything that a RegistrationReconciler can say.
FULL: dict[str, Any] = {
    "database": {"secretRef": {"name": "database", "key": "url"}},
    "aws": {"region": "eu-west-2", "secretRef": {"name": "queues"}},
    "queues": {
        "ingest": "i.fifo",
        "registrar": "r.fifo",
        "results": "results",
        "create": False,
        "visibility": "90s",
        "retention": "24h",
    },
    "bucket": "papers",
    "mode": "Repair",
    "suspend": {"reason": "moving house", "until": "2030-01-31T12:00:00Z"},
    "maintenanceWindows": [{"reason": "upgrade", "start": "2030-02-01T00:00:00Z", "end": "2030-02-01T04:00:00Z"}],
    "interval": "1m30s",
    "graces": [{"discrepancy": "run_lapsed", "grace": "10m"}, {"discrepancy": "request_stalled", "grace": "0s"}],
    "limits": {
        "repairsPerMinute": 60,
        "maxAttempts": 3,
        "backoffInitial": "30s",
        "backoffMax": "2h",
        "parkedAttempts": 1,
        "parkedInterval": "30m",
        "runAttempts": 4,
        "runsPerHour": 1000,
    },
    "breaker": {
        "failurePercent": 40,
        "windowRuns": 20,
        "window": "5m",
        "minRuns": 5,
        "discrepancyCap": 500,
        "cooldown": "1m",
        "trialRuns": 2,
    },
    "scrub": {"rate": 0, "backstopRows": 100},
}
