"""A document's dossier, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from baton.cli.dossiers import Dossier
from baton.cli.printing import moment, plain, size, status, table

#: Entries of one kind and state that are shown where not everything is: a long statement names hundreds of dates.
_AT_MOST: Final = 12


def draw(dossier: Dossier, out: Console, *, everything: bool) -> None:
    """Print it section by section; an empty one is left out."""
    out.print(_head(dossier))
    sections = [
        ("Record", _record(dossier, everything=everything)),
        ("Inbox", _inbox(dossier)),
        ("Understanding", _parts(dossier)),
        ("Timeline (UTC)", _timeline(dossier)),
    ]
    if everything:
        sections[3:3] = [("Runs (UTC)", _runs(dossier)), ("Tickets (UTC)", _tickets(dossier))]
    for title, content in sections:
        if content is not None:
            out.print()
            out.print(Text(title, style="bold"))
            out.print(Padding(content, (0, 0, 0, 2)))


def draw_text(dossier: Dossier, out: Console) -> None:
    """Print the text, page after page."""
    for page in dossier.text:
        sure = "" if page["confidence"] is None else f", {page['confidence']:.0f} % sure"
        out.print(Text(f"── page {page['page']} ({page['source']}{sure})", style="dim"))
        for line in page["text"].splitlines():
            out.print(plain(line), soft_wrap=True)


def _head(dossier: Dossier) -> RenderableType:
    document, pages = dossier.document, dossier.pages
    grid = table("", "")
    grid.show_header = False
    name = plain(document.name)
    name.stylize("bold")
    grid.add_row("name", name)
    grid.add_row("document", str(document.id))
    grid.add_row("firm, matter", f"{document.firm_id}, {document.matter_id}")
    grid.add_row("file", plain(", ".join(each for each in (document.content_type, size(document.size_bytes)) if each)))
    if document.checksum_sha256:
        grid.add_row("SHA-256", document.checksum_sha256)
    if document.deleted_at is not None:
        grid.add_row("deleted", Text(f"{moment(document.deleted_at)} UTC", style="red"))
    grid.add_row(
        "text", _axis(document.processing_status, document.processing_status_since, document.processing_message)
    )
    grid.add_row(
        "Record", _axis(document.registration_status, document.registration_status_since, document.registration_message)
    )
    if document.failure_kind:
        grid.add_row("kind of failure", document.failure_kind)
    if document.next_attempt_at is not None:
        grid.add_row("next attempt", f"{moment(document.next_attempt_at)} UTC")
    grid.add_row(
        "attempts",
        f"{document.extraction_attempt} at reading (epoch {document.extraction_epoch}),"
        f" {document.registration_attempt} at registering",
    )
    if pages["pages"]:
        read = f"{pages['pages']}, {pages['characters']} characters"
        if pages["recognised"]:
            read += f"; {pages['recognised']} recognised"
            if pages["least_confidence"] is not None:
                read += f", the worst {pages['least_confidence']:.0f} % sure"
        grid.add_row("pages", read)
    return grid


def _axis(value: str, since: Any, message: str | None) -> Text:
    line = status(value).append(f" since {moment(since)} UTC", style="dim")
    return line.append("\n").append_text(plain(message)) if message else line


def _record(dossier: Dossier, *, everything: bool) -> RenderableType | None:
    if not dossier.record:
        return None
    grid = table("kind", "value", "state", "sure", "of document")
    seen: Counter[tuple[str, str]] = Counter()
    for row in dossier.record:
        seen[row["kind"], row["state"]] += 1
        if not everything and seen[row["kind"], row["state"]] > _AT_MOST:
            continue
        sure, target = f"{row['confidence']:.0%}", row["target"]
        grid.add_row(row["kind"], plain(row["value"]), row["state"], sure, str(target) if target else "")
    if not everything:
        for (kind, state), count in seen.items():
            if count > _AT_MOST:
                grid.add_row(kind, Text(f"… and {count - _AT_MOST} more: --all", style="dim"), state, "", "")
    return grid


def _inbox(dossier: Dossier) -> RenderableType | None:
    if not dossier.inbox:
        return None
    grid = table("kind", "what to look at", "")
    for row in dossier.inbox:
        done = (
            Text("open", style="yellow") if row["resolved_at"] is None else plain(f"resolved by {row['resolved_by']}")
        )
        grid.add_row(row["kind"], plain(row["summary"]), done)
    return grid


def _parts(dossier: Dossier) -> RenderableType | None:
    if not dossier.parts:
        return None
    grid = table("part", "state", "")
    for row in dossier.parts:
        told = "\n".join(_told(row["content"])) if row["content"] else row["message"]
        cell = Text("\n").join(plain(line) for line in (told or "").splitlines())
        if row["content"] and row["message"]:
            cell = Text("\n").join((plain(row["message"]), cell))
        grid.add_row(row["part"], row["state"], cell)
    return grid


def _told(content: Mapping[str, Any]) -> Iterator[str]:
    """A part's content in lines, whatever members it has: what a newer agent adds is shown, too."""
    for name, value in content.items():
        if name == "kind":
            continue
        if isinstance(value, list):
            for each in value:
                yield "- " + (_entry(each) if isinstance(each, Mapping) else str(each))
        elif value is not None:
            yield str(value)


def _entry(entry: Mapping[str, Any]) -> str:
    words = ": ".join(str(value) for value in entry.values() if isinstance(value, str))
    numbers = [f"{name.replace('_', ' ')} {value}" for name, value in entry.items() if isinstance(value, int)]
    return f"{words} ({', '.join(numbers)})" if numbers else words


def _runs(dossier: Dossier) -> RenderableType | None:
    if not dossier.runs:
        return None
    grid = table("run", "purpose", "state", "attempt", "called", "minted", "settled", "why")
    for row in dossier.runs:
        grid.add_row(
            str(row["id"]),
            row["purpose"],
            row["state"],
            str(row["attempt"]),
            str(row["invoked"]),
            moment(row["at"]),
            moment(row["settled_at"]),
            plain(row["message"]),
        )
    return grid


def _tickets(dossier: Dossier) -> RenderableType | None:
    if not dossier.tickets:
        return None
    grid = table("ticket", "event", "part", "generation", "written", "sent", "received", "handled", "outcome", "error")
    for row in dossier.tickets:
        grid.add_row(
            str(row["id"]),
            row["event"],
            row["part"] or "",
            str(row["generation"]),
            moment(row["at"]),
            "parked" if row["parked_at"] else moment(row["dispatched_at"]),
            str(row["received"]),
            moment(row["handled_at"]),
            row["outcome"] or "",
            plain(row["last_error"]),
        )
    return grid


def _timeline(dossier: Dossier) -> RenderableType | None:
    if not dossier.timeline:
        return None
    grid = table("at", "what", "by", "why")
    grid.columns[0].no_wrap = True
    for row in dossier.timeline:
        grid.add_row(moment(row["at"]), plain(row["what"]), plain(row["by"]), plain(row["why"]))
    return grid
