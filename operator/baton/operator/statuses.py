"""From what was seen to a status, and whether it is worth a write. Single documents never stand in it.

A merge patch: what is no longer so is taken away by ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from baton.operator.conditions import Seen, conditions, moment
from baton.reconcilers.results import PassResult

#: ``lastPass`` alone is not written again before.
QUIET: Final = timedelta(minutes=5)
_AGEING: Final = "lastPass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a loop wants to be read of its resource."""

    seen: Seen
    result: PassResult | None = None
    """The last pass that ended."""
    ended: datetime | None = None
    """When it did, by the database's clock."""
    handled: str | None = None
    """The value of the annotation that the last pass on demand was made for."""

    def status(self, *, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
        """The whole status as a patch."""
        return status(self, before=before, now=now)


def status(report: Report, *, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    """The whole status as a patch."""
    stood = before or {}
    written: dict[str, Any] = {
        "observedGeneration": report.seen.generation,
        "conditions": conditions(report.seen, before=stood.get("conditions") or (), now=now),
    }
    if report.handled is not None:
        written["lastHandledReconcileAt"] = report.handled[:256]
    if report.result is not None:
        written |= _of_pass(report.result, report.ended or now)
    return written


def worth_writing(patch: Mapping[str, Any], *, before: Mapping[str, Any] | None) -> bool:
    """Whether the patch changes anything but what ages by itself; that, too, now and then."""
    stood = before or {}
    if any(stood.get(name) != value for name, value in patch.items() if name != _AGEING):
        return True
    if patch.get(_AGEING) is None:
        return False
    return _apart((stood.get(_AGEING) or {}).get("endedAt"), patch[_AGEING]["endedAt"])


def _apart(old: object, new: str) -> bool:
    """Whether two passes ended so long after each other that the later one is told; of what is no moment it is.

    Either may be the later one: a clock was set back, or somebody else wrote the status.
    """
    try:
        return abs(datetime.fromisoformat(new) - datetime.fromisoformat(str(old))) >= QUIET
    except (ValueError, TypeError, OverflowError):
        return True


def _of_pass(result: PassResult, ended: datetime) -> dict[str, Any]:
    oldest = min(result.oldest.values(), default=None)
    return {
        "found": result.total,
        "oldestSince": None if oldest is None else moment(oldest),
        "discrepancies": [_discrepancy(result, name) for name in sorted(result.found) if result.found[name]],
        "held": [{"guard": guard.value, "count": count} for guard, count in sorted(result.refused.items()) if count],
        "lastPass": {"endedAt": moment(ended), "repaired": result.repaired, "failed": result.errors},
    }


def _discrepancy(result: PassResult, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "count": result.found[name]}
    if name in result.oldest:
        found["oldestSince"] = moment(result.oldest[name])
    return found
