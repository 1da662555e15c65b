"""From a RegistrationRedrive to the request that is kept in the database.

Its id there is the resource's uid, so that however many operators carry it out, and however often one of them dies, it is
one request. Another resource of the same name is another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from baton.db.states import FailureKind, ProcessingStatus, RegistrationStatus
from baton.operator.roster import Roster
from baton.operator.specs import SpecInvalid, Wanted, seconds
from baton.operator.vocabulary import Phase
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.redrive import Request
from baton.reconcilers.selection import Selector, SelectorRefused

#: Seconds; a week.
_KEPT: Final = 604_800.0
_PER_MINUTE: Final = 600.0


@dataclass(frozen=True, slots=True)
class Place:
    """One reconciler by its name, there or not."""

    namespace: str
    reconciler: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.reconciler}"


def place_of(wanted: Wanted) -> Place:
    """Whose redrive it is."""
    return Place(wanted.key.namespace, str((wanted.spec.get("reconcilerRef") or {}).get("name", "")))


def phase_of(wanted: Wanted) -> Phase:
    """How far it is, by its own status."""
    told = (wanted.status or {}).get("state")
    return Phase(told) if told in set(Phase) else Phase.PENDING


def is_planned(wanted: Wanted) -> bool:
    """Whether its status says what would be done."""
    return phase_of(wanted) is Phase.PLANNED and "planned" in (wanted.status or {})


def unfinished(redrives: Roster, place: Place) -> list[Wanted]:
    """The redrives of a place that are not at their end, the oldest first."""
    found = [each for each in redrives.all() if not phase_of(each).final and place_of(each) == place]
    return sorted(found, key=lambda each: (each.created, each.key.name))


def is_dry(wanted: Wanted) -> bool:
    """Whether it is only planned; whatever else is said than a plain no."""
    return wanted.spec.get("dryRun", False) is not False


def per_minute(wanted: Wanted) -> float:
    """Documents a minute."""
    told = wanted.spec.get("perMinute")
    return float(told) if isinstance(told, int) and told > 0 else _PER_MINUTE


def request_of(wanted: Wanted) -> Request:
    """What is asked for.

    :raises SpecInvalid: it makes no sense.
    """
    try:
        return Request(
            id=UUID(wanted.key.uid),
            selector=_selector(wanted.spec.get("selector") or {}).checked(),
            reason=str(wanted.spec["reason"]),
            requested_by=str(wanted.spec["requestedBy"]),
        )
    except SelectorRefused as error:
        raise SpecInvalid(str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpecInvalid("a value of the spec is not of its kind") from error


def expired(wanted: Wanted, *, now: datetime) -> bool:
    """Whether it has finished and was kept for as long as it asked to be."""
    ended = (wanted.status or {}).get("finishedAt")
    if not phase_of(wanted).final or ended is None:
        return False
    try:
        kept = timedelta(seconds=seconds(wanted.spec, "ttlAfterFinished", _KEPT))
        return datetime.fromisoformat(str(ended)) + kept <= now
    except (SpecInvalid, ValueError, TypeError):  # kept rather than deleted by a mistake
        return False


def _selector(told: Mapping[str, Any]) -> Selector:
    return Selector(
        documents=tuple(UUID(each) for each in told.get("documents") or ()),
        firm=None if told.get("firm") is None else UUID(told["firm"]),
        matter=None if told.get("matter") is None else UUID(told["matter"]),
        discrepancies=tuple(str(each) for each in told.get("discrepancies") or ()),
        processing=tuple(ProcessingStatus(each) for each in told.get("processing") or ()),
        registration=tuple(RegistrationStatus(each) for each in told.get("registration") or ()),
        errors=tuple(FailureKind(each) for each in told.get("errors") or ()),
        aspects=tuple(Aspect(each) for each in told.get("aspects") or ()),
        older_than=None if told.get("olderThan") is None else timedelta(seconds=seconds(told, "olderThan", 0.0)),
        under_way=bool(told.get("underWay", False)),
    )
