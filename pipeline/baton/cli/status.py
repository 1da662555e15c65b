"""``baton status``."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from baton.cli import sights
from baton.cli.desks import FIRM, JSON, open_desk
from baton.cli.identities import matter_id
from baton.cli.printing import console, plain, print_json, status, table
from baton.cli.sights import Counts, Sight
from baton.settings.exits import Exit


@click.command("status")
@FIRM
@click.option("--matter", metavar="MATTER", help="Only this matter: its id, or its name.")
@click.option("--attention", is_flag=True, help="List only documents that failed or wait for a person.")
@click.option(
    "--limit", type=click.IntRange(0, 1000), default=20, show_default=True, help="Documents listed, newest first."
)
@JSON
def command(*, firm: str | None, matter: str | None, attention: bool, limit: int, as_json: bool) -> int:
    r"""Count a firm's documents by where they stand, and list the newest.

    \b
    Examples:
        baton status --firm "Doe & Partners"
        baton status --firm "Doe & Partners" --matter "Harbour lease" --attention
        baton status --json | jq .registration
    """
    with open_desk(firm) as desk:
        chosen = None if matter is None else matter_id(matter, firm=desk.firm)
        with desk.transaction() as connection:
            counts = sights.count(connection, matter=chosen)
            newest = sights.newest(connection, matter=chosen, shown=limit, attention=attention)
    if as_json:
        print_json(_as_json(desk.firm, chosen, counts, newest))
    else:
        _print(desk.firm, chosen, counts, newest)
    return Exit.OK


def _as_json(firm: UUID, matter: UUID | None, counts: Counts, newest: Sequence[Sight]) -> dict[str, object]:
    return {
        "firm": firm,
        "matter": matter,
        "total": counts.total,
        "complete": not counts.cut,
        "processing": counts.by_processing(),
        "registration": counts.by_registration(),
        "documents": [each.as_json() for each in newest],
    }


def _print(firm: UUID, matter: UUID | None, counts: Counts, newest: Sequence[Sight]) -> None:
    out = console()
    where = f"firm {firm}" + (f", matter {matter}" if matter else "")
    if not counts.total:
        out.print(plain(f"{where}: no documents"))
        return
    number = f"more than {sights.COUNTED}" if counts.cut else str(counts.total)
    out.print(plain(f"{where}: {number} document{'' if counts.total == 1 else 's'}"))
    out.print()
    grid = table("text", "Record", "documents")
    grid.columns[2].justify = "right"
    for (processing, registration), found in sorted(counts.pairs.items(), key=lambda pair: -pair[1]):
        grid.add_row(status(processing), status(registration), str(found))
    out.print(grid)
    if newest:
        out.print()
        print_sights(newest)


def print_sights(found: Sequence[Sight]) -> None:
    """A table of documents, each with the reason of where it is."""
    grid = table("document", "name", "text", "Record", "why")
    grid.columns[0].no_wrap = True
    for each in found:
        grid.add_row(
            str(each.id), plain(each.name), status(each.processing), status(each.registration), plain(each.message)
        )
    console().print(grid)
