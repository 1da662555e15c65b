"""``baton settler``."""

from __future__ import annotations

import click

from baton.cli.processes import run_process
from baton.runs import process


@click.command("settler")
def command() -> int:
    r"""Settle runs: verify delivered artifacts, expire what is overdue.

    \b
    Example:
        DATABASE_URL=postgresql://baton_settler@db/baton baton settler
    """
    return run_process(lambda settings, stop: process.run(settings, stop=stop), required=("DATABASE_URL",))
