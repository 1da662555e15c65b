"""What people read: columns as kubectl has them, times in UTC, and nothing that a terminal would obey."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

_GAP = "   "


def show(line: str = "") -> None:
    """Print a line."""
    click.echo(line)


def tell(line: str) -> None:
    """Print a line that is no result."""
    click.echo(line, err=True)


def show_json(value: object) -> None:
    """Print one JSON value."""
    click.echo(json.dumps(value, indent=2))


def show_table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = "") -> None:
    """Print columns; without a row nothing."""
    cells = [[plain(each) for each in row] for row in rows]
    if not cells:
        return
    cells.insert(0, list(titles))
    widths = [max(len(row[number]) for row in cells) for number in range(len(titles))]
    for row in cells:
        line = _GAP.join(each.ljust(width) for each, width in zip(row, widths, strict=True))
        show(indent + line.rstrip())


def plain(value: object) -> str:
    """Somebody else's words, each character that is not to be seen replaced by a space."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "".join(each if each.isprintable() else " " for each in str(value))


def moment(value: object) -> str:
    """A time to the second."""
    return "-" if not value else str(value)[:19].replace("T", " ")
