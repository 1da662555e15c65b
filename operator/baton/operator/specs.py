"""From a resource, as the API server hands it out, to what a loop works by.

The server has checked it against the schema and filled the defaults in. What is read here is still not trusted: a value
that cannot be is the resource's fault, said in its condition, and never a crash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from baton.operator.vocabulary import RECONCILE_AT
from baton.reconcilers.results import Mode
from baton.settings import checks
from baton.settings.agents import Breaker, Runs
from baton.settings.errors import SettingsError
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from baton.settings.secret import Secret
from baton.settings.stores import Aws, Bucket, Queues

_QUEUES: Final = Queues()
_RUNS: Final = Runs()
_BREAKER: Final = Breaker()
_RECONCILE: Final = Reconcile()
_BUCKET: Final = Bucket()
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE: Final = re.compile(r"(\d+)(ms|s|m|h)", re.ASCII)


class SpecInvalid(Exception):
    """The spec says what cannot be; the message names the field, never a secret."""


@dataclass(frozen=True, slots=True)
class Key:
    """One resource, and not another one of the same name."""

    namespace: str
    name: str
    uid: str

    @property
    def owner(self) -> str:
        """The name under which it works on a database."""
        return f"{self.namespace}/{self.name} {self.uid}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Suspension:
    """Repairs are held back."""

    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Window:
    """Repairs are held back between two moments."""

    reason: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One resource's latest wish."""

    key: Key
    generation: int
    version: str
    """``resourceVersion``: of the whole resource, its status included."""
    spec: Mapping[str, Any]
    asked_at: str | None = None
    """The value of the annotation that asks for a pass now."""
    status: Mapping[str, Any] | None = None
    """As it stands."""
    created: str = ""
    """When it was, in a form that sorts."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """Read a resource."""
        metadata = body["metadata"]
        annotations = metadata.get("annotations") or {}
        return cls(
            key=Key(metadata["namespace"], metadata["name"], metadata["uid"]),
            generation=int(metadata.get("generation", 0)),
            version=str(metadata["resourceVersion"]),
            spec=body.get("spec") or {},
            asked_at=annotations.get(RECONCILE_AT),
            status=body.get("status"),
            created=str(metadata.get("creationTimestamp") or ""),
        )

    @property
    def mode(self) -> Mode:
        """What passes may do. Whatever is not known may not repair."""
        return Mode.REPAIR if self.spec.get("mode") == "Repair" else Mode.OBSERVE

    @property
    def interval(self) -> float:
        """Seconds between two passes."""
        return seconds(self.spec, "interval", _RECONCILE.interval)

    @property
    def suspension(self) -> Suspension | None:
        """What the spec says of a suspension, whether or not its end has come."""
        told = self.spec.get("suspend")
        if not told:
            return None
        return Suspension(str(told.get("reason", "")), _moment(told.get("until"), "suspend.until"))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the spec, past ones too."""
        found = []
        for number, each in enumerate(self.spec.get("maintenanceWindows") or ()):
            start, end = (_moment(each.get(name), f"maintenanceWindows[{number}].{name}") for name in ("start", "end"))
            if start is None or end is None:
                raise SpecInvalid(f"maintenanceWindows[{number}]: start or end is missing")
            found.append(Window(str(each.get("reason", "")), start, end))
        return tuple(found)

    def settings(self, *, database: Secret, aws: Aws, ambient: Settings) -> Settings:
        """What the resource's loop works by.

        :param database: the URL, out of its secret.
        :param ambient: the operator's own settings: whatever the spec does not speak of.
        :raises SpecInvalid: values that do not go together.
        """
        try:
            settings = replace(
                ambient,
                database=replace(ambient.database, url=database, direct_url=None),
                aws=aws,
                queues=_queues(self.spec.get("queues") or {}),
                bucket=replace(ambient.bucket, name=str(self.spec.get("bucket", _BUCKET.name))),
                runs=_runs(self.spec.get("limits") or {}, ambient.runs),
                breaker=_breaker(self.spec.get("breaker") or {}),
                reconcile=_reconcile(self.spec, self.key, ambient.reconcile),
            )
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise SpecInvalid("a value of the spec is not of its kind") from error
        faults = list(checks.faults(settings))
        if faults:
            raise SpecInvalid("; ".join(SettingsError(faults).faults))
        return settings


def _queues(told: Mapping[str, Any]) -> Queues:
    return Queues(
        ingest=str(told.get("ingest", _QUEUES.ingest)),
        registrar=str(told.get("registrar", _QUEUES.registrar)),
        results=str(told.get("results", _QUEUES.results)),
        create=bool(told.get("create", _QUEUES.create)),
        visibility=int(seconds(told, "visibility", _QUEUES.visibility)),
        retention=int(seconds(told, "retention", _QUEUES.retention)),
    )


def _runs(told: Mapping[str, Any], ambient: Runs) -> Runs:
    budget = told.get("runsPerHour")
    return replace(
        ambient,
        max_attempts=int(told.get("runAttempts", _RUNS.max_attempts)),
        hourly_budget=None if budget is None else int(budget),
    )


def _breaker(told: Mapping[str, Any]) -> Breaker:
    percent = told.get("failurePercent")
    return Breaker(
        window_runs=int(told.get("windowRuns", _BREAKER.window_runs)),
        window_time=seconds(told, "window", _BREAKER.window_time),
        failure_ratio=_BREAKER.failure_ratio if percent is None else int(percent) / 100,
        min_runs=int(told.get("minRuns", _BREAKER.min_runs)),
        discrepancy_cap=int(told.get("discrepancyCap", _BREAKER.discrepancy_cap)),
        cooldown=seconds(told, "cooldown", _BREAKER.cooldown),
        trial_runs=int(told.get("trialRuns", _BREAKER.trial_runs)),
    )


def _reconcile(spec: Mapping[str, Any], key: Key, ambient: Reconcile) -> Reconcile:
    limits, scrub = spec.get("limits") or {}, spec.get("scrub") or {}
    graces = tuple((str(each["discrepancy"]), seconds(each, "grace", 0.0)) for each in spec.get("graces") or ())
    return replace(
        ambient,
        resource=key.owner,
        interval=seconds(spec, "interval", _RECONCILE.interval),
        backstop_rows=int(scrub.get("backstopRows", _RECONCILE.backstop_rows)),
        scrub_rate=float(scrub.get("rate", _RECONCILE.scrub_rate)),
        repairs_per_minute=int(limits.get("repairsPerMinute", _RECONCILE.repairs_per_minute)),
        max_attempts=int(limits.get("maxAttempts", _RECONCILE.max_attempts)),
        backoff_initial=seconds(limits, "backoffInitial", _RECONCILE.backoff_initial),
        backoff_max=seconds(limits, "backoffMax", _RECONCILE.backoff_max),
        parked_attempts=int(limits.get("parkedAttempts", _RECONCILE.parked_attempts)),
        parked_interval=seconds(limits, "parkedInterval", _RECONCILE.parked_interval),
        graces=graces or None,
    )


def seconds(told: Mapping[str, Any], name: str, default: float) -> float:
    """A duration of a spec, such as ``30s`` or ``1h30m``.

    :raises SpecInvalid: it is none.
    """
    value = told.get(name)
    if value is None:
        return float(default)
    pieces = _PIECE.findall(str(value))
    if not pieces or "".join(number + unit for number, unit in pieces) != value:
        raise SpecInvalid(f"{name}: not a duration such as 30s or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in pieces)


def _moment(value: object, name: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value).upper().replace(" ", "T"))
    except ValueError:
        raise SpecInvalid(f"{name}: not a moment such as 2030-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise SpecInvalid(f"{name}: has no offset such as Z")
    return moment
