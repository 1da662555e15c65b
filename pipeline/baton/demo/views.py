"""How the demo is watched: a live table on a terminal, lines everywhere else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from baton.db.states import Part, ProcessingStatus, RegistrationStatus
from baton.demo.arrivals import Filed
from baton.demo.sights import Sight

_NOT_YET: Final = Sight()
_EVERY: Final = 5.0  # seconds between two lines that only tell how far it is
#: The columns and the least width of each: a narrow terminal shortens names, not statuses.
_COLUMNS: Final = (
    ("document", 12),
    ("what it is", 4),
    ("text", max(len(status) for status in ProcessingStatus)),
    ("Record", max(len(status) for status in RegistrationStatus)),
    ("parts", len("3 of 3")),
)
_AROUND: Final = 8  # lines of a terminal that are not rows of the table


class View(Protocol):
    """What the acts tell."""

    def say(self, line: str) -> None:
        """Something happened."""

    def show(self, filed: Sequence[Filed], seen: Mapping[UUID, Sight], *, starts: Mapping[str, int]) -> None:
        """Where the documents are now."""


@dataclass(slots=True)
class PlainView:
    """Lines: a document that comes to rest, and every few seconds how many there are of each status."""

    console: Console
    began: float = field(default_factory=time.monotonic)
    _rested: set[UUID] = field(default_factory=set)
    _told: float = 0.0

    def say(self, line: str) -> None:
        """Print it with the seconds since the beginning."""
        self.console.print(f"{time.monotonic() - self.began:5.1f} s  {escape(line)}", soft_wrap=True, highlight=False)

    def show(self, filed: Sequence[Filed], seen: Mapping[UUID, Sight], *, starts: Mapping[str, int]) -> None:
        """Print what has come to rest since the last call."""
        del starts
        for each in filed:
            sight = seen.get(each.id, _NOT_YET)
            if sight.at_rest and each.id not in self._rested:
                self._rested.add(each.id)
                self.say(f"{each.exhibit.name}: {sight.processing}, {sight.registration}")
        now = time.monotonic()
        if now - self._told >= _EVERY and len(self._rested) < len(filed):
            self._told = now
            counts = Counter(
                f"{sight.processing}/{sight.registration}" for each in filed for sight in [seen.get(each.id, _NOT_YET)]
            )
            self.say("... " + ", ".join(f"{number} {status}" for status, number in sorted(counts.items())))


@dataclass(slots=True)
class LiveView:
    """A table that changes in place, with what happened below it."""

    live: Live
    console: Console
    began: float = field(default_factory=time.monotonic)
    _happened: list[str] = field(default_factory=list)
    _table: RenderableType = ""

    def say(self, line: str) -> None:
        """Add it below the table."""
        self._happened = [*self._happened[-4:], f"{time.monotonic() - self.began:5.1f} s  {line}"]
        self._draw()

    def show(self, filed: Sequence[Filed], seen: Mapping[UUID, Sight], *, starts: Mapping[str, int]) -> None:
        """Draw the table anew. Where the screen is too short, documents at rest make room first."""
        room = max(5, self.console.height - _AROUND - len(self._happened))
        moving = [each for each in filed if not seen.get(each.id, _NOT_YET).at_rest]
        resting = [each for each in filed if seen.get(each.id, _NOT_YET).at_rest]
        shown = (moving + resting[::-1])[:room]
        chosen = {each.id for each in shown}
        table = Table(box=None, pad_edge=False, expand=False)
        for title, least in _COLUMNS:
            table.add_column(title, no_wrap=True, overflow="ellipsis", min_width=least)
        for each in filed:
            if each.id in chosen:
                table.add_row(*_cells(each, seen.get(each.id, _NOT_YET)))
        lines: list[RenderableType] = [table]
        if len(shown) < len(filed):
            hidden = [each for each in filed if each.id not in chosen]
            at_rest = sum(seen.get(each.id, _NOT_YET).at_rest for each in hidden)
            lines.append(Text(f"... and {len(hidden)} more, {at_rest} of them at rest", style="dim"))
        running = "  ".join(f"{name} x{times}" if times > 1 else name for name, times in starts.items())
        lines.append(Text(f"running: {running}", style="dim"))
        self._table = Group(*lines)
        self._draw()

    def _draw(self) -> None:
        self.live.update(
            Group(self._table, *(Text(line, overflow="ellipsis", no_wrap=True) for line in self._happened))
        )


@contextmanager
def watching(console: Console, *, live: bool) -> Iterator[View]:
    """A view for the length of a block; the last picture of a live one stays on the screen."""
    if not live:
        yield PlainView(console)
        return
    with Live(console=console, refresh_per_second=8, transient=False) as shown:
        yield LiveView(shown, console)


def _cells(filed: Filed, sight: Sight) -> tuple[RenderableType, ...]:
    style = "dim" if not sight.at_rest else "green" if sight.as_expected(filed.exhibit) else "bold red"
    parts = f"{sight.parts_ready} of {len(Part)}" if sight.parts_ready or sight.registration == "registered" else ""
    return (
        Text(filed.exhibit.name),
        Text(filed.exhibit.kind, style="dim"),
        Text(sight.processing.value, style=style),
        Text(sight.registration.value, style=style),
        Text(parts, style=style),
    )
