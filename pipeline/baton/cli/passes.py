"""One pass of a reconcile loop, for people and for machines."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from baton.cli.printing import moment, plain, table
from baton.cli.spans import relative
from baton.reconcilers.classification import DISCREPANCIES, IMPOSSIBLE
from baton.reconcilers.results import Mode, PassResult, Planned
from baton.settings.exits import Exit

#: Of one pass a person wants its result, not the process's diary; a level that is set stands.
QUIET: Final = {"BATON_LOG_LEVEL": "warning"}


def exit_of(result: PassResult) -> Exit:
    """Success even where something was found: only what failed, or was told to stop, is none."""
    if not result.finished:
        return Exit.TEMPORARY
    return Exit.FAILED if result.failures or result.errors else Exit.OK


def as_json(result: PassResult) -> dict[str, object]:
    """For machines; members are added, never renamed."""
    effects: dict[str, dict[str, int]] = {}
    for (name, effect), number in result.effects.items():
        effects.setdefault(name, {})[effect.value] = number
    return {
        "mode": result.mode,
        "began": result.began,
        "seconds": round(result.seconds, 3),
        "finished": result.finished,
        "judged": result.judged,
        "scrubbed": result.scrubbed,
        "found": dict(result.found),
        "oldest": dict(result.oldest),
        "reported": dict(result.reported),
        "refused": {guard.value: number for guard, number in result.refused.items()},
        "effects": effects,
        "repaired": result.repaired,
        "vanished": result.vanished,
        "stalled_lanes": list(result.stalled),
        "failures": list(result.failures),
        "plans": [_plan_json(each) for each in result.plans],
    }


def _plan_json(each: Planned) -> dict[str, object]:
    return {
        "document": each.finding.document_id,
        "aspect": each.finding.aspect,
        "discrepancy": each.finding.name,
        "severity": each.finding.severity,
        "since": each.finding.since,
        "action": each.action,
        "ready": each.ready,
        "held_back_by": each.guard,
        "held_back_until": each.due,
        "last_attempt": each.exhausted,
    }


def draw(result: PassResult, out: Console, *, shown: int) -> None:
    """Print it: what was found by kind, what comes of it, then the single documents."""
    for lane in result.stalled:
        line = Text(
            f"the {lane} lane is stalled: nobody consumes it, so nothing of it counts as lost", style="bold red"
        )
        out.print(line.append("; 'baton doctor' says more", style=""))
    for failure in result.failures:
        out.print(Text(f"could not be asked: {failure}", style="bold red"))
    if not result.total:
        out.print(Text(f"nothing disagrees, {result.judged} documents judged", style="green"))
        return
    now = result.began
    out.print(_kinds(result, now))
    if result.refused:
        told = ", ".join(f"{guard.value} {number}" for guard, number in result.refused.most_common())
        out.print(Text(f"\nheld back: {told}", style="yellow"))
    if shown and result.plans:
        out.print()
        out.print(_documents(result, shown=shown, now=now))


def _kinds(result: PassResult, now: datetime | None) -> object:
    observing = result.mode is Mode.OBSERVE
    ready = Counter(each.finding.name for each in result.plans if each.ready)
    done: Counter[str] = Counter()
    for (name, _effect), number in result.effects.items():
        done[name] += number
    grid = table(
        "discrepancy", "found", "to be repaired" if observing else "repaired", "oldest since (UTC)", "what is done"
    )
    for column in grid.columns[1:3]:
        column.justify = "right"
    for name, number in result.found.most_common():
        known = DISCREPANCIES.get(name)
        action = "a person must look" if name == IMPOSSIBLE or known is None else known.action
        oldest = result.oldest.get(name)
        since = "" if oldest is None else moment(oldest) if now is None else relative(oldest, now=now)
        grid.add_row(name, str(number), str((ready if observing else done)[name] or ""), since, plain(action))
    return grid


def _documents(result: PassResult, *, shown: int, now: datetime | None) -> object:
    grid = table("document", "aspect", "discrepancy", "then")
    grid.columns[0].no_wrap = True
    for each in result.plans[:shown]:
        if each.action is None:
            then = "reported: a person decides"
        elif each.guard is None:
            then = each.action + (" (the last attempt: it fails visibly)" if each.exhausted else "")
        else:
            until = "" if each.due is None or now is None else f" until {relative(each.due, now=now)}"
            then = f"held back by {each.guard.value}{until}"
        grid.add_row(str(each.finding.document_id), each.finding.aspect, each.finding.name, plain(then))
    left = len(result.plans) - shown
    if left > 0:
        grid.add_row(f"and {left} more", "", "", "")
    return grid
