"""``baton registrar``."""

from __future__ import annotations

import click

from baton.cli.processes import run_process
from baton.registrar import process


@click.command("registrar")
def command() -> int:
    r"""Dispatch runs to the agent and apply what it delivered.

    \b
    Example:
        DATABASE_URL=postgresql://baton_registrar@db/baton BATON_AGENT_URL=http://agent:8081 \
        BATON_AGENT_TOKEN=… baton registrar
    """
    return run_process(
        lambda settings, stop: process.run(settings, stop=stop),
        required=("DATABASE_URL", "BATON_AGENT_URL", "BATON_AGENT_TOKEN"),
    )
