"""``baton doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.text import Text

from baton.aws.clients import Clients
from baton.cli.desks import JSON
from baton.cli.printing import console, plain, print_json
from baton.cli.stations import open_station
from baton.reconcilers.doctor.examination import examine
from baton.reconcilers.doctor.findings import Finding, Level
from baton.settings.exits import Exit
from baton.settings.model import Settings

_STYLES: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.FAULT: "bold red", Level.UNKNOWN: "magenta"}


@click.command("doctor")
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too, and on what could not be looked at.")
@click.option("--quiet", is_flag=True, help="Only what is wrong.")
@JSON
def command(*, strict: bool, quiet: bool, as_json: bool) -> int:
    r"""Examine what Baton stands on, and say of everything that is wrong what to do.

    Roles, policies and versions of the database, long transactions, vacuum and indexes, relays and consumers, parked
    tickets and dead letters, queues, bucket and notification. Connects as baton_observer (or baton_reconciler) and
    changes nothing. Exits with 1 when something is at fault.

    \b
    Examples:
        DATABASE_URL=postgresql://baton_observer@db/baton baton doctor
        baton doctor --json | jq '.findings[] | select(.level == "fault")'
    """
    with open_station(connections=1, checked=False) as station, _clients(station.settings) as clients:
        found = examine(station.engine, station.settings, clients)
        seen = list(found) if as_json else list(_telling(found, quiet=quiet))
    bad = {Level.FAULT} | ({Level.WARNING, Level.UNKNOWN} if strict else set())
    healthy = not any(each.level in bad for each in seen)
    if as_json:
        print_json({"healthy": healthy, "findings": [each.as_json() for each in seen]})
    else:
        console().print(plain(_sum(seen)))
    return Exit.OK if healthy else Exit.FAILED


@contextmanager
def _clients(settings: Settings) -> Iterator[Clients]:
    clients = Clients(settings.aws)
    try:
        yield clients
    finally:
        clients.close()


def _telling(found: Iterable[Finding], *, quiet: bool) -> Iterator[Finding]:
    out = console()
    for each in found:
        if each.level is not Level.OK or not quiet:
            line = Text(f"{each.level.value:8}", style=_STYLES[each.level])
            out.print(line.append(f"{each.check:14}", style="dim").append_text(plain(each.whole)))
            if each.todo is not None:
                out.print(Text(" " * 22 + "→ ").append_text(plain(each.todo)))
        yield each


def _sum(seen: list[Finding]) -> str:
    counts = {level: sum(each.level is level for each in seen) for level in Level}
    return ", ".join(f"{number} {level.value}" for level, number in counts.items() if number)
