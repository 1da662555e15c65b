"""``baton search``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import click
from rich.text import Text
from sqlalchemy import Row, text

from baton.cli.desks import FIRM, JSON, open_desk
from baton.cli.identities import matter_id
from baton.cli.printing import console, plain, print_json, table
from baton.settings.exits import Exit

_MOST: Final = 1000
_LONGEST: Final = 1000
_FOUND: Final = text("SELECT document_id, matter_id, name, page_number, rank, snippet FROM app.search(:words, :most)")
_MARKED: Final = re.compile(r"<b>(.*?)</b>", re.DOTALL)


@click.command("search")
@click.argument("words", metavar="WORDS…", nargs=-1, required=True)
@FIRM
@click.option("--matter", metavar="MATTER", help="Only in this matter: its id, or its name.")
@click.option("--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="Pages shown, best first.")
@JSON
def command(*, words: tuple[str, ...], firm: str | None, matter: str | None, limit: int, as_json: bool) -> int:
    r"""Search the text of a firm's documents, page by page.

    Words are all to be on one page; "a phrase" in quotation marks, or, and -word mean what they mean elsewhere, in at
    most 1,000 characters. Of more than 1,000 pages that hold the words, the best 1,000 are looked at.

    \b
    Examples:
        baton search harbour lease
        baton search '"notice of termination" -draft' --matter "Harbour lease"
    """
    asked = " ".join(words)
    if len(asked) > _LONGEST:
        raise click.UsageError(f"a search has at most {_LONGEST:,} characters")
    with open_desk(firm) as desk:
        chosen = None if matter is None else matter_id(matter, firm=desk.firm)
        values = {"words": asked, "most": limit if chosen is None else _MOST}
        with desk.transaction() as connection:
            found = connection.execute(_FOUND, values).all()
    hits = [each for each in found if chosen in (None, each.matter_id)][:limit]
    if as_json:
        print_json(_as_json(desk.firm, hits))
    else:
        _print(hits)
    return Exit.OK


def _as_json(firm: UUID, hits: Sequence[Row[Any]]) -> dict[str, object]:
    pages = [
        {
            "document": each.document_id,
            "matter": each.matter_id,
            "name": each.name,
            "page": each.page_number,
            "rank": each.rank,
            "snippet": _MARKED.sub(r"\1", each.snippet),
        }
        for each in hits
    ]
    return {"firm": firm, "pages": pages}


def _print(hits: Sequence[Row[Any]]) -> None:
    if not hits:
        click.echo("no page has these words", err=True)
        return
    grid = table("document", "name", "page", "text")
    grid.columns[0].no_wrap = True
    for each in hits:
        grid.add_row(str(each.document_id), plain(each.name), str(each.page_number), _snippet(each.snippet))
    console().print(grid)


def _snippet(words: str) -> Text:
    """The words that were found in bold."""
    line = Text()
    for position, piece in enumerate(_MARKED.split(" ".join(words.split()))):
        found = plain(piece)
        if position % 2:
            found.stylize("bold")
        line.append_text(found)
    return line
