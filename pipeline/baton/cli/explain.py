"""``baton explain``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.accounts import draw
from baton.cli.desks import JSON
from baton.cli.failures import CommandFailed
from baton.cli.printing import console, print_json
from baton.cli.stations import open_station
from baton.reconcilers import explain
from baton.settings.exits import Exit


@click.command("explain")
@click.argument("document", metavar="DOCUMENT", type=click.UUID)
@click.option("--all", "everything", is_flag=True, help="Every row that was asked before the answer, clause by clause.")
@JSON
def command(*, document: UUID, everything: bool, as_json: bool) -> int:
    r"""Say of one document what disagrees, why, what happens next, by when, and what holds it back.

    The conditions that are shown are the very ones that find and repair documents, asked just now. Connects as
    baton_observer (or baton_reconciler) and changes nothing.

    \b
    Examples:
        DATABASE_URL=postgresql://baton_observer@db/baton baton explain 0198c0de-0000-7000-8000-000000000001
        baton explain --json 0198c0de-0000-7000-8000-000000000001 | jq '.aspects[] | {aspect, verdict, due}'
    """
    with open_station(connections=1) as station, station.engine.connect() as connection:
        found = explain.explain(connection, document, settings=station.settings)
    if found is None:
        raise CommandFailed(f"there is no document {document}")
    if as_json:
        print_json(explain.as_json(found))
    else:
        draw(found, console(), everything=everything)
    return Exit.OK
