"""How far a redrive is: its conditions and its status. Pure; single documents never stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from baton.operator.conditions import Failure, Said, moment, stamped, suspended
from baton.operator.vocabulary import ConditionType, Phase, Reason, Status
from baton.reconcilers.tallies import OTHERS, Counts
from baton.reconcilers.windows import Held

#: Firms that stand in a status by themselves; the rest are counted together.
FIRMS: Final = 50
#: Reasons for leaving something alone that stand in a status.
_REASONS: Final = 40
_NAMED: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One redrive, as far as it has come."""

    generation: int
    request_id: str
    dry: bool = False
    phase: Phase = Phase.PENDING
    failure: Failure | None = None
    """What keeps it from going on; of one that was refused, why."""
    held: Held | None = None
    plan: Counts | None = None
    """What would be done, counted before anything was done; ``None``: not known here."""
    planned_all: bool = True
    """Whether every document that may be meant was looked at for the plan."""
    done: Counts | None = None
    """What was done; ``None``: nothing was begun."""
    began: datetime | None = None
    finished: datetime | None = None

    def status(self, *, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
        """The whole status as a patch; a plan that another operator made stays."""
        stood = before or {}
        written: dict[str, Any] = {
            "observedGeneration": self.generation,
            "conditions": stamped(
                _said(self), generation=self.generation, before=stood.get("conditions") or (), now=now
            ),
            "state": self.phase.value,
            "requestId": self.request_id,
        }
        if self.began is not None:
            written["startedAt"] = moment(self.began)
        if self.phase.final:
            written["finishedAt"] = stood.get("finishedAt") or moment(self.finished or now)
        if self.plan is not None:
            written |= {"planned": self.plan.redriven, "planComplete": self.planned_all, "plan": _plan(self.plan)}
        if self.done is not None:
            written |= {"examined": self.done.examined, "redriven": self.done.redriven, "failed": self.done.failed}
        counts = self.done or self.plan
        if counts is not None:
            written |= {"refused": _refused(counts), "firms": _firms(self.plan, self.done, stood.get("firms") or ())}
        return written


def _said(course: Course) -> dict[ConditionType, Said]:
    failure, held = course.failure, course.held
    stalled = Said(Status.FALSE, Reason.PROGRESSING)
    if course.phase is Phase.FINISHED:
        ready, reconciling = _finished(course), Said(Status.FALSE, Reason.SETTLED)
    elif failure is not None:
        ready = Said(Status.FALSE, failure.reason, failure.message)
        reconciling = Said(Status.TRUE, failure.reason, f"{failure.message} It is tried again.")
        if failure.reason.needs_somebody or course.phase is Phase.REFUSED:
            stalled, reconciling = (
                Said(Status.TRUE, failure.reason, failure.message),
                Said(Status.FALSE, Reason.SETTLED),
            )
    else:
        reason = Reason.RUNNING if course.phase is Phase.RUNNING else Reason.QUEUED
        if held is not None:
            reason = suspended(held).reason
        ready = Said(Status.FALSE, reason, _under_way(course))
        reconciling = Said(Status.TRUE, reason, _under_way(course))
    return {
        ConditionType.READY: ready,
        ConditionType.RECONCILING: reconciling,
        ConditionType.STALLED: stalled,
        ConditionType.SUSPENDED: suspended(held),
    }


def _under_way(course: Course) -> str:
    if course.held is not None:
        return "Repairs are held back; it goes on when they are not."
    return "Documents are being redriven." if course.phase is Phase.RUNNING else "Nothing has been done yet."


def _finished(course: Course) -> Said:
    if course.dry:
        plan = course.plan or Counts()
        return Said(Status.TRUE, Reason.REHEARSED, f"{plan.redriven} would be redriven; nothing was done.")
    done = course.done or Counts()
    if done.failed:
        return Said(Status.TRUE, Reason.PARTLY_FAILED, f"{done.redriven} redriven; busy or failed: {done.failed}.")
    return Said(Status.TRUE, Reason.FINISHED, f"{done.redriven} redriven.")


def _plan(counts: Counts) -> list[dict[str, Any]]:
    left = counts.left
    acts = {what: number for what, number in counts.totals.items() if what not in left}
    return [{"action": what, "count": acts[what]} for what in sorted(acts)]


def _refused(counts: Counts) -> list[dict[str, Any]]:
    left = sorted(counts.left.items())[:_REASONS]
    return [{"reason": why[:_NAMED], "count": number} for why, number in left]


def _firms(plan: Counts | None, done: Counts | None, stood: Any) -> list[dict[str, Any]]:
    """By firm what was to be done and what was; the largest by name, so that the list stays as it is read."""
    planned = {each.get("firm"): each.get("planned", 0) for each in stood} if plan is None else _redriven(plan)
    redriven = {} if done is None else _redriven(done)
    names = sorted(
        {*planned, *redriven} - {OTHERS}, key=lambda each: (-max(planned.get(each, 0), redriven.get(each, 0)), each)
    )
    rows = {name: [planned.get(name, 0), redriven.get(name, 0)] for name in names[:FIRMS]}
    for name in [*names[FIRMS:], OTHERS]:
        some = rows.setdefault(OTHERS, [0, 0])
        some[0] += planned.get(name, 0)
        some[1] += redriven.get(name, 0)
    if not any(rows[OTHERS]):
        del rows[OTHERS]
    return [{"firm": name, "planned": some[0], "redriven": some[1]} for name, some in sorted(rows.items())]


def _redriven(counts: Counts) -> dict[str, int]:
    return {name: Counts({name: found}).redriven for name, found in counts.firms.items()}
