"""``baton show``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.desks import FIRM, JSON, open_desk
from baton.cli.dossiers import read_dossier
from baton.cli.portraits import draw, draw_text
from baton.cli.printing import console, print_json
from baton.settings.exits import Exit


@click.command("show")
@click.argument("document", metavar="DOCUMENT", type=click.UUID)
@FIRM
@click.option("--text", "with_text", is_flag=True, help="The text of every page, and nothing else.")
@click.option("--all", "all_of_it", is_flag=True, help="Runs, tickets, and all of the Record, what was superseded too.")
@JSON
def command(*, document: UUID, firm: str | None, with_text: bool, all_of_it: bool, as_json: bool) -> int:
    r"""Show one document: where it stands and why, what the Record says of it, and what happened to it when.

    \b
    Examples:
        baton show 0198c0de-0000-7000-8000-000000000001
        baton show --text 0198c0de-0000-7000-8000-000000000001 | less
        baton show --json 0198c0de-0000-7000-8000-000000000001 | jq .record
    """
    with open_desk(firm) as desk, desk.transaction() as connection:
        dossier = read_dossier(connection, document, with_text=with_text, all_of_it=all_of_it)
    if as_json:
        print_json(dossier.as_json())
    elif with_text:
        draw_text(dossier, console())
    else:
        draw(dossier, console(), everything=all_of_it)
    return Exit.OK
