"""``baton relay``."""

from __future__ import annotations

import click

from baton.cli.processes import run_process
from baton.db.states import Lane
from baton.outbox import process


@click.command("relay")
@click.option("--lane", type=click.Choice([lane.value for lane in Lane]), required=True, help="Whose tickets to send.")
def command(lane: str) -> int:
    r"""Send a lane's tickets to its queue; run as many as you like.

    \b
    Example:
        DATABASE_URL=postgresql://baton_relay@db/baton baton relay --lane ingest
    """
    return run_process(lambda settings, stop: process.run(settings, lane=Lane(lane), stop=stop))
