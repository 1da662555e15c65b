"""What commands print: JSON for machines, tables for people, nothing that a terminal would obey."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from baton.db.jsonforms import encoded

#: Columns of a page that is not a terminal: wide enough that lines are whole, for grep.
_PAGE: Final = 240
_STYLES: Final = {
    "failed": "red",
    "registration_failed": "red",
    "needs_review": "yellow",
    "registration_needs_review": "yellow",
    "indexed": "green",
    "registered": "green",
}


def print_json(value: object) -> None:
    """One JSON value on standard output; times are UTC. What the output cannot carry as it is (a file's name may be no
    text at all) makes it all ASCII.
    """
    written = json.dumps(value, indent=2, ensure_ascii=False, default=encoded)
    try:
        written.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        written = json.dumps(value, indent=2, default=encoded)
    click.echo(written)


def console(*, stderr: bool = False) -> Console:
    """Where tables go."""
    file = sys.stderr if stderr else sys.stdout
    return Console(file=file, highlight=False, width=None if file.isatty() else _PAGE)


def table(*titles: str) -> Table:
    """A table without a frame, its titles dim."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        made.add_column(title, overflow="fold")
    return made


def status(value: str) -> Text:
    """A status in its colour."""
    return Text(value, style=_STYLES.get(value, ""))


def plain(value: object) -> Text:
    """Somebody else's words: no markup, and no control characters that a terminal would obey."""
    return Text("" if value is None else printable(str(value)))


def printable(words: str) -> str:
    """The words with each character that is not to be seen replaced by a space."""
    return "".join(" " if unicodedata.category(each) in ("Cc", "Cs") or _turns(each) else each for each in words)


def moment(value: datetime | None) -> str:
    """A time, to the second, in UTC."""
    return "" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def size(value: int | None) -> str:
    """Bytes for people."""
    if value is None:
        return ""
    amount = float(value)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def listed(words: Iterable[str]) -> str:
    """Joined by commas."""
    return ", ".join(words)


def _turns(character: str) -> bool:
    """Whether it changes the direction of writing, by which a name can read as another."""
    return character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
