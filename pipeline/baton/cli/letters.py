"""Dead letters at the command line: collected, listed, sent again or kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.cli.printing import console, moment, plain, print_json, table
from baton.cli.processes import stop_on_signals
from baton.cli.stations import Station, open_station
from baton.reconcilers import deadletters
from baton.reconcilers.deadletters import Letter, Postmaster
from baton.reconcilers.explain import ground_of
from baton.settings.exits import Exit

_PAGE = 100
_LISTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be done with which letters."""

    queue: str | None
    numbers: tuple[int, ...]
    keep: bool
    reason: str | None
    dry_run: bool
    rate: float


def redrive(wanted: Wanted, *, as_json: bool) -> int:
    """Collect the letters and settle them; or list them."""
    if wanted.dry_run:
        return _list(wanted, as_json=as_json)
    reason = (wanted.reason or "").strip()
    if not reason or len(reason) > 1000:
        raise click.UsageError("a redrive has a reason, of at most 1000 characters: --reason")
    with open_station(writes=True) as station, _aws(station) as (clients, queues):
        named = [(name, queue) for name, queue in deadletters.named(queues) if wanted.queue in (None, name)]
        collected = deadletters.collect_all(station.engine, named)
        store = Store(clients, station.settings.bucket, create=False)
        master = Postmaster(
            engine=station.engine,
            settings=station.settings,
            store=store,
            reason=reason,
            requested_by=station.actor,
        )
        counts = _settle(station, master, wanted)
        with station.engine.begin() as connection:
            counts["obsolete"] += deadletters.retire(connection)
    if as_json:
        print_json({"collected": collected, **{name: counts[name] for name in ("redriven", "kept", "obsolete")}})
    else:
        told = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing to settle"
        click.echo(f"{collected} collected; {told}")
    return Exit.OK


def _settle(station: Station, master: Postmaster, wanted: Wanted) -> Counter[str]:
    stop: threading.Event = stop_on_signals()
    counts: Counter[str] = Counter()
    for letter in _letters(station, wanted):
        if stop.is_set():
            break
        if wanted.keep:
            outcome = master.keep(letter)
        else:
            with station.engine.connect() as connection:
                ground = ground_of(connection, settings=station.settings)
            outcome = master.redrive(letter, ground=ground)
        if outcome is not None:
            counts[outcome.value] += 1
            stop.wait(60.0 / wanted.rate)
    return counts


def _letters(station: Station, wanted: Wanted, *, kept: bool = False) -> Iterator[Letter]:
    after = 0
    while True:
        with station.engine.connect() as connection:
            found = deadletters.opened(connection, queue=wanted.queue, after=after, limit=_PAGE, kept=kept)
        yield from (each for each in found if not wanted.numbers or each.id in wanted.numbers)
        if len(found) < _PAGE:
            return
        after = found[-1].id


def _list(wanted: Wanted, *, as_json: bool) -> int:
    """What was collected, and how many lie on the queues still: reading them would hide them from others."""
    with open_station(connections=1) as station, _aws(station) as (_clients, queues):
        found: list[Letter] = []
        for kept in (False, True):
            for letter in _letters(station, wanted, kept=kept):
                if len(found) < _LISTED:
                    found.append(letter)
        lying = {}
        for name, queue in deadletters.named(queues):
            if queue.dead is not None and wanted.queue in (None, name):
                depth = queue.dead.depth()
                lying[name] = depth.visible + depth.in_flight + depth.delayed
    if as_json:
        print_json({"dry_run": True, "on_queues": lying, "letters": [each.as_json() for each in found]})
        return Exit.OK
    for name, number in lying.items():
        click.echo(f"{name}: about {number} on its dead-letter queue, not collected yet")
    grid = table("letter", "queue", "found (UTC)", "ticket", "", "why")
    for each in found:
        state = "open" if each.outcome is None else each.outcome.value
        grid.add_row(
            str(each.id), each.queue, moment(each.found_at), str(each.ticket_id or "none"), state, plain(each.reason)
        )
    console().print(grid)
    return Exit.OK


@contextmanager
def _aws(station: Station) -> Iterator[tuple[Clients, tuple[Queue, Queue, Queue]]]:
    clients = Clients(station.settings.aws)
    try:
        yield clients, configured(clients, station.settings.queues)
    finally:
        clients.close()
