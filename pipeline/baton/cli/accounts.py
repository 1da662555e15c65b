"""The explanation of a document, for somebody who was woken by it: the answer first, then why, then what happened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from baton.cli.printing import moment, plain, status, table
from baton.cli.spans import relative, span
from baton.reconcilers.aspects import Owner, Severity
from baton.reconcilers.explain import AspectSeen, ClauseSeen, Explanation, RowSeen
from baton.reconcilers.results import Guard

_STYLES: Final = {Severity.INFO: "cyan", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}
_MOVES: Final = {
    Owner.NOBODY: "nobody has to do anything",
    Owner.PERSON: "a person decides",
    Owner.UPLOADER: "whoever uploads it has the next move",
    Owner.INGEST: "its text comes first",
    Owner.REGISTRATION: "the registration, or the part before it, comes first",
}
_GUARDS: Final = {
    Guard.SUSPENDED: "repairs are suspended",
    Guard.WINDOW: "a maintenance window is open",
    Guard.OWNER: "loops of another resource work on this database",
    Guard.RATE: "this minute's repairs are made",
    Guard.BACKOFF: "an earlier repair is given its time",
    Guard.BUDGET: "this hour's agent runs are spent",
    Guard.BREAKER: "the breaker is open: the agent fails too often",
    Guard.STORE: "the object store could not be asked",
    Guard.LOCKED: "live work holds the document",
}


def draw(found: Explanation, out: Console, *, everything: bool) -> None:
    """Print it."""
    out.print(_head(found))
    out.print()
    out.print(_headline(found))
    for seen in found.aspects:
        out.print()
        out.print(_answer(seen, found.now))
        for line in (*_sooner(seen, found.document.id), *_lines(seen, found.now)):
            out.print(Padding(line, (0, 0, 0, 4), expand=False))
        for row in seen.rows if everything else _worth_showing(seen):
            out.print(Padding(_row(row, seen), (0, 0, 0, 4), expand=False))
    out.print()
    out.print(Text("Lanes", style="bold"))
    out.print(Padding(_lanes(found), (0, 0, 0, 2), expand=False))
    out.print()
    out.print(Text("Timeline (UTC)" + (", the newest of it" if found.timeline.cut else ""), style="bold"))
    out.print(Padding(_timeline(found), (0, 0, 0, 2), expand=False))


def _worth_showing(seen: AspectSeen) -> list[RowSeen]:
    """The row that is the answer; where nobody has a move, its name says enough."""
    return [] if seen.answer is None or seen.verdict.owner is Owner.NOBODY else [seen.answer]


def _head(found: Explanation) -> Table:
    document = found.document
    grid = table("", "")
    grid.show_header = False
    name = plain(document.name)
    name.stylize("bold")
    grid.add_row("name", name)
    grid.add_row("document", str(document.id))
    grid.add_row("firm, matter", f"{document.firm_id}, {document.matter_id}")
    text = f" since {moment(document.processing_status_since)} UTC, epoch {document.extraction_epoch}"
    grid.add_row("text", status(document.processing_status).append(text, style="dim"))
    record = f" since {moment(document.registration_status_since)} UTC, attempt {document.registration_attempt}"
    grid.add_row("Record", status(document.registration_status).append(record, style="dim"))
    for message in (document.processing_message, document.registration_message):
        if message:
            grid.add_row("counsel reads", plain(message))
    if document.deleted_at is not None:
        grid.add_row("deleted", Text(f"{moment(document.deleted_at)} UTC", style="red"))
    grid.add_row("looked at", f"{moment(found.now)} UTC, by the database's clock")
    return grid


def _headline(found: Explanation) -> Text:
    wrong = [seen for seen in found.aspects if not seen.verdict.healthy]
    if wrong:
        line = Text("Disagrees: ", style="bold")
        return line.append("; ".join(f"{seen.aspect}: {seen.verdict.name}" for seen in wrong), style="bold red")
    moving = [seen for seen in found.aspects if seen.verdict.due is not None]
    if not moving:
        return Text("Nothing disagrees, and nothing moves.", style="bold green")
    soonest = min(moving, key=lambda seen: seen.verdict.due or found.now)
    who = f"next is the {soonest.verdict.owner}'s move on {soonest.aspect}"
    return Text("Nothing disagrees; ", style="bold green").append(who)


def _answer(seen: AspectSeen, now: datetime) -> Text:
    verdict = seen.verdict
    style = _STYLES.get(verdict.severity, "") if verdict.severity else "green"
    name = f"settling ({verdict.settling.name})" if verdict.settling else verdict.name
    line = Text(f"{seen.aspect:13}", style="bold").append(name, style=style).append(f"  {seen.meaning}")
    if verdict.healthy and verdict.due is not None:
        line.append(f"; {verdict.owner} by {relative(verdict.due, now=now)}", style="dim")
    elif verdict.healthy:
        line.append(f"; {_MOVES.get(verdict.owner, verdict.owner.value)}", style="dim")
    elif verdict.due is not None:
        line.append(f"; due since {relative(verdict.due, now=now)}", style="dim")
    return line


def _sooner(seen: AspectSeen, document_id: UUID) -> Iterator[Text]:
    """The retention's end is the very last; an operator who reads it alone would wait for days."""
    if seen.lost_if_empty_for is not None:
        empty = span(seen.lost_if_empty_for)
        yield Text("lost sooner: ", style="bold").append(
            f"if its queue is seen empty for {empty} after it was sent, while a consumer polls"
        )
        yield Text("not to wait: ", style="bold").append(f"baton redrive {document_id} --under-way --reason …")


def _lines(seen: AspectSeen, now: datetime) -> Iterator[Text]:
    if seen.action is None:
        return
    yield Text("repair: ", style="bold").append(seen.action)
    planned = seen.planned
    if planned is not None and planned.exhausted:
        yield Text("its attempts are used up: the next repair fails it visibly", style="yellow")
    if seen.grace_until is not None:
        yield Text("held back: ", style="bold").append(f"its grace ends at {relative(seen.grace_until, now=now)}")
    if planned is not None and planned.guard is not None:
        until = "" if planned.due is None else f", until {relative(planned.due, now=now)}"
        yield Text("held back: ", style="bold").append(f"{_GUARDS[planned.guard]} ({planned.guard}){until}")
    if seen.grace_until is None and planned is not None and planned.ready:
        yield Text("nothing holds it back: the next pass of a reconcile loop makes it")
    if not seen.verdict.healthy and planned is not None and planned.action is None:
        yield Text("nothing automatic is done about it", style="yellow")


def _row(row: RowSeen, seen: AspectSeen) -> Table:
    grid = table("", "", "", "")
    grid.show_header = False
    title = row.name if row is not seen.answer else "because"
    for number, clause in enumerate(row.clauses):
        mark = Text("yes", style="green") if clause.holds else Text("no", style="red")
        grid.add_row(Text(title if number == 0 else "", style="dim"), mark, plain(clause.text), _compared(clause))
    return grid


def _compared(clause: ClauseSeen) -> Text:
    return Text("\n").join(
        Text(f"{each.name} ", style="dim").append_text(plain(_value(each.value))) for each in clause.compared
    )


def _value(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, datetime):
        return moment(value) if value.year > 1 else "never"
    if isinstance(value, timedelta):
        return span(value)
    return str(value)


def _lanes(found: Explanation) -> Table:
    grid = table("lane", "consumers", "unreceived tickets passed by when sent before")
    for lane, state in found.lanes.items():
        alive = (
            Text("alive", style="green")
            if state.alive
            else Text("none alive: what is sent waits, and nothing counts as lost", style="red")
        )
        before = state.passed_before
        grid.add_row(lane, alive, moment(before) if before.year > 1 else "nothing is known to have been passed by")
    return grid


def _timeline(found: Explanation) -> Table:
    grid = table("at", "what", "by", "why")
    grid.columns[0].no_wrap = True
    for event in found.timeline.events:
        grid.add_row(moment(event.at), plain(event.what), plain(event.by), plain(event.why))
    return grid
