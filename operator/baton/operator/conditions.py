"""From what was seen to conditions: pure, and each in one place. ``Ready`` is only ever a summary.

Times are the operator's: they say when somebody could see a change, and decide nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from baton.operator.vocabulary import ConditionType, Reason, Status
from baton.reconcilers.results import Guard
from baton.reconcilers.windows import Held
from baton.runs.breaker import State as Breaker

_LONGEST: Final = 1024
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there was no pass, or none that ended."""

    reason: Reason
    message: str
    """A sentence for people, without a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How things stand for one resource."""

    generation: int
    passed: bool = False
    """Whether a pass has ended under this operator."""
    failure: Failure | None = None
    """What kept the last pass from being made."""
    found: Mapping[str, int] | None = None
    """By discrepancy; ``None``: not known."""
    held: Held | None = None
    breaker: Breaker | None = None
    """``None``: not known."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of one condition."""

    status: Status
    reason: Reason
    message: str = ""


def conditions(seen: Seen, *, before: Iterable[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """All conditions of a reconciler, in a fixed order.

    :param before: those that stand.
    """
    return stamped(_all(seen), generation=seen.generation, before=before, now=now)


def stamped(
    all_said: Mapping[ConditionType, Said], *, generation: int, before: Iterable[Mapping[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """Conditions as they are written.

    :param before: those that stand; a condition keeps its time while its status does.
    """
    stood = {each.get("type"): each for each in before}
    found = []
    for kind, said in all_said.items():
        old = stood.get(kind.value)
        kept = old is not None and old.get("status") == said.status.value
        found.append(
            {
                "type": kind.value,
                "status": said.status.value,
                "reason": said.reason.value,
                "message": said.message[:_LONGEST],
                "lastTransitionTime": old["lastTransitionTime"] if old is not None and kept else moment(now),
                "observedGeneration": generation,
            }
        )
    return found


def moment(value: datetime) -> str:
    """A time as the API server writes it: of whole seconds, in UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _all(seen: Seen) -> dict[ConditionType, Said]:
    return {
        ConditionType.READY: _ready(seen),
        ConditionType.RECONCILING: _reconciling(seen),
        ConditionType.STALLED: _stalled(seen),
        ConditionType.DRIFTED: _drifted(seen),
        ConditionType.SUSPENDED: _suspended(seen),
        ConditionType.BREAKER_OPEN: _breaker(seen),
    }


def _ready(seen: Seen) -> Said:
    if seen.failure is not None:
        return Said(Status.FALSE, seen.failure.reason, seen.failure.message)
    if not seen.passed:
        return Said(Status.UNKNOWN, Reason.FIRST_PASS, "No pass has ended yet.")
    drifted = _drifted(seen)
    return Said(Status.TRUE, drifted.reason, drifted.message)


def _reconciling(seen: Seen) -> Said:
    if seen.failure is not None and not seen.failure.reason.needs_somebody:
        return Said(Status.TRUE, seen.failure.reason, f"{seen.failure.message} It is tried again.")
    if seen.failure is None and not seen.passed:
        return Said(Status.TRUE, Reason.FIRST_PASS, "The first pass is under way.")
    return Said(Status.FALSE, Reason.SETTLED)


def _stalled(seen: Seen) -> Said:
    if seen.failure is not None and seen.failure.reason.needs_somebody:
        return Said(Status.TRUE, seen.failure.reason, seen.failure.message)
    return Said(Status.FALSE, Reason.PROGRESSING)


def _drifted(seen: Seen) -> Said:
    if seen.found is None:
        return Said(Status.UNKNOWN, Reason.FIRST_PASS, "No pass has ended yet.")
    total = sum(seen.found.values())
    if not total:
        return Said(Status.FALSE, Reason.IN_ORDER, "Every document that was judged is as it should be.")
    named = ", ".join(f"{name} {count}" for name, count in Counter(seen.found).most_common(_NAMED))
    more = "" if len(seen.found) <= _NAMED else f", and {len(seen.found) - _NAMED} kinds more"
    return Said(Status.TRUE, Reason.DISCREPANCIES_FOUND, f"{total} found: {named}{more}.")


def _suspended(seen: Seen) -> Said:
    if seen.failure is not None and seen.held is None:  # the database would know
        return Said(Status.UNKNOWN, seen.failure.reason, "Not known while no pass is made.")
    return suspended(seen.held)


def suspended(held: Held | None) -> Said:
    """What is said of what holds repairs back."""
    if held is None:
        return Said(Status.FALSE, Reason.NOT_SUSPENDED)
    until = "" if held.until is None else f" Until {moment(held.until)}."
    reason = Reason.SUSPENDED if held.guard is Guard.SUSPENDED else Reason.MAINTENANCE_WINDOW
    return Said(Status.TRUE, reason, f"{held.reason} (by {held.set_by}).{until}")


def _breaker(seen: Seen) -> Said:
    if seen.breaker is None:
        return Said(Status.UNKNOWN, Reason.FIRST_PASS, "No pass has ended yet.")
    if seen.breaker is Breaker.CLOSED:
        return Said(Status.FALSE, Reason.BREAKER_CLOSED)
    reason = Reason.BREAKER_TRIAL if seen.breaker is Breaker.TRIAL else Reason.BREAKER_OPEN
    return Said(Status.TRUE, reason, "Agent runs are held back; everything that costs none goes on.")
