"""``baton reconcile``."""

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


@click.command("reconcile")
@click.option("--once", is_flag=True, help="One pass, and what came of it; else pass after pass until it is stopped.")
@click.option("--observe", is_flag=True, help="Find and report, repair nothing; connects as baton_observer.")
@click.option("--limit", type=click.IntRange(0, 1000), default=20, show_default=True, help="Documents listed.")
@JSON
def command(*, once: bool, observe: bool, limit: int, as_json: bool) -> int:
    r"""Find every document whose state and runs disagree, and put it right within the limits.

    Run as many as you like: limits are kept in the database, and hold for all of them together. Connects as
    baton_reconciler. With --once it ends with 0 when everything that was due was repaired or held back.

    \b
    Examples:
        DATABASE_URL=postgresql://baton_reconciler@db/baton baton reconcile
        baton reconcile --once --json | jq '.effects'
    """
    if as_json and not once:
        raise click.UsageError("--json is of one pass: add --once")
    settings = load(required=("DATABASE_URL",), unless_set=QUIET if once else None)
    result = process.run(settings, stop=stop_on_signals(), once=once, observe=observe)
    if result is None:
        return Exit.TEMPORARY if once else Exit.OK
    if as_json:
        print_json(pass_json(result))
    else:
        draw(result, console(), shown=limit)
    return exit_of(result)
