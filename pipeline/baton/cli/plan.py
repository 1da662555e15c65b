"""``baton plan``."""

from __future__ import annotations

import click

from baton.cli.desks import JSON
from baton.cli.passes import QUIET, draw, exit_of
from baton.cli.passes import as_json as pass_json
from baton.cli.printing import console, print_json
from baton.cli.processes import stop_on_signals
from baton.reconcilers import process
from baton.settings.exits import Exit
from baton.settings.loading import load


@click.command("plan")
@click.option("--limit", type=click.IntRange(0, 1000), default=20, show_default=True, help="Documents listed.")
@JSON
def command(*, limit: int, as_json: bool) -> int:
    r"""Say what a pass of the reconcile loops would repair just now, and what holds the rest back.

    It is the pass itself, up to the first lock, by a role that cannot write: connects as baton_observer.

    \b
    Examples:
        DATABASE_URL=postgresql://baton_observer@db/baton baton plan
        baton plan --json | jq '.found'
    """
    settings = load(required=("DATABASE_URL",), unless_set=QUIET)
    result = process.run(settings, stop=stop_on_signals(), once=True, observe=True)
    if result is None:
        return Exit.TEMPORARY
    if as_json:
        print_json(pass_json(result))
    else:
        draw(result, console(), shown=limit)
    return exit_of(result)
