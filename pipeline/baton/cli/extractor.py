"""``baton extractor``."""

from __future__ import annotations

import click

from baton.cli.processes import run_process
from baton.extraction import process


@click.command("extractor")
def command() -> int:
    r"""Read documents: fetch, scan, extract, index, and ask for registration.

    \b
    Example:
        DATABASE_URL=postgresql://baton_extractor@db/baton BATON_HEALTH_PORT=8080 baton extractor
    """
    return run_process(lambda settings, stop: process.run(settings, stop=stop), required=("DATABASE_URL",))
