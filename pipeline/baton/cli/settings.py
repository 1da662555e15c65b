"""``baton settings``."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from baton.settings.exits import Exit
from baton.settings.loading import every_setting


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(*, as_json: bool) -> int:
    r"""List every variable that Baton reads, with its default and meaning.

    \b
    Example:
        baton settings --json | jq -r '.[].variable'
    """
    rows = [
        {"variable": each.variable, "default": _shown(each.default), "unit": each.unit, "meaning": each.meaning}
        for each in every_setting()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return Exit.OK
    table = Table("variable", "default", "unit", "meaning")
    for row in rows:
        table.add_row(row["variable"], row["default"], row["unit"] or "", row["meaning"])
    Console().print(table)
    return Exit.OK


def _shown(value: object) -> str:
    return "" if value is None else str(value)
