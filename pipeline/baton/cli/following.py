"""Following documents until they are at rest: a live table on a terminal, lines everywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from baton.cli import sights
from baton.cli.desks import Desk
from baton.cli.printing import console, plain, printable, status, table
from baton.cli.sights import Sight
from baton.db.states import Part

_EVERY: Final = 0.5  # seconds between two looks
_CHUNK: Final = 1000
_AROUND: Final = 4  # lines of a terminal that are not rows


def follow(desk: Desk, ids: Sequence[UUID], *, patience: float) -> tuple[Sight, ...]:
    """Look until every document is at rest or ``patience`` (seconds) is over; returns them all as last seen."""
    never = threading.Event()
    deadline = time.monotonic() + patience
    rested: dict[UUID, Sight] = {}
    moving = list(ids)
    with _watching() as view:
        while True:
            seen: dict[UUID, Sight] = {}
            for first in range(0, len(moving), _CHUNK):
                with desk.transaction() as connection:
                    for each in sights.look(connection, moving[first : first + _CHUNK]):
                        seen[each.id] = each
            rested |= {each.id: each for each in seen.values() if each.at_rest}
            moving = [each for each in moving if each in seen and each not in rested]
            everything = tuple({**seen, **rested}[each] for each in ids if each in seen or each in rested)
            view.show(everything)
            if not moving or time.monotonic() >= deadline:
                return everything
            never.wait(_EVERY)


class _View(Protocol):
    def show(self, found: Sequence[Sight]) -> None: ...


@dataclass(slots=True)
class _Lines:
    """A line for each document that comes to rest."""

    told: set[UUID] = field(default_factory=set)

    def show(self, found: Sequence[Sight]) -> None:
        for each in found:
            if each.at_rest and each.id not in self.told:
                self.told.add(each.id)
                why = f": {printable(each.message)}" if each.message else ""
                click.echo(
                    f"{each.id} {printable(each.name)}: {each.processing.value}, {each.registration.value}{why}",
                    err=True,
                )


@dataclass(slots=True)
class _Picture:
    """A table that changes in place; where the screen is too short, documents at rest make room."""

    live: Live
    screen: Console

    def show(self, found: Sequence[Sight]) -> None:
        room = max(3, self.screen.height - _AROUND)
        moving = [each for each in found if not each.at_rest]
        resting = [each for each in found if each.at_rest]
        shown = {each.id for each in (moving + resting[::-1])[:room]}
        grid: Table = table("name", "text", "Record", "understood")
        for each in found:
            if each.id in shown:
                parts = f"{each.parts_ready} of {len(Part)}" if each.parts_ready or each.parts_failed else ""
                grid.add_row(plain(each.name), status(each.processing), status(each.registration), parts)
        grid.caption = f"{len(resting)} of {len(found)} at rest"
        grid.caption_justify = "left"
        self.live.update(grid)


@contextmanager
def _watching() -> Iterator[_View]:
    screen = console(stderr=True)
    if not screen.is_terminal or screen.is_dumb_terminal:
        yield _Lines()
        return
    with Live(console=screen, refresh_per_second=4, transient=True) as live:
        yield _Picture(live, screen)
