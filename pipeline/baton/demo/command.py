"""``baton demo``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click
from rich.console import Console

from baton.demo.acts import Plot, play
from baton.demo.given import Given, given_servers
from baton.demo.keeping import show_kept, tell_kept
from baton.demo.stage import open_stage
from baton.demo.telling import tell
from baton.demo.verdicts import Summary, as_json
from baton.demo.views import watching
from baton.settings.exits import Exit
from baton.settings.inheriting import in_ci
from baton.settings.options import Number

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("demo")
@click.option(
    "--json", "as_machine", is_flag=True, help="Print the summary as one JSON object; all else goes to stderr."
)
@click.option("--plain", is_flag=True, help="Lines instead of a live table, on a terminal too.")
@click.option("--keep", is_flag=True, help="Keep the folder (database, objects, logs) and say how to look inside.")
@click.option(
    "--open",
    "kept",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Instead of a demo: start the servers of a folder that was kept, until Ctrl-C.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="For the case file's facts.")
@click.option("--kill/--no-kill", default=True, show_default=True, help="Kill processes and let things go wrong.")
@click.option(
    "--patience",
    type=Number(min=10, max=3600),
    default=300.0,
    show_default=True,
    help="Seconds after which a document that still moves counts as lost.",
)
def command(
    *, as_machine: bool, plain: bool, keep: bool, kept: Path | None, seed: int, kill: bool, patience: float
) -> int:
    """Show everything on this machine: a case file on its way into the Record, and what kill -9 cannot change.

    Postgres, SQS and S3 are real servers, started in a folder of their own and gone afterwards. With DATABASE_URL (an
    administrator's), or with AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL_S3, those servers are used: what the demo makes
    on them has names of its own and is removed at the end. The exit code is 1 when a single document is not where it
    was said beforehand that it would be.
    """
    with _ending_in_order():
        if kept is not None:
            show_kept(kept)
            return Exit.OK
        given = given_servers()
        console = Console(stderr=as_machine)
        live = not plain and console.file.isatty() and not console.is_dumb_terminal and not in_ci()
        summary = _played(Plot(seed=seed, patience=patience, kill=kill), console, live=live, keep=keep, given=given)
    if as_machine:
        sys.stdout.write(json.dumps(as_json(summary), indent=2, ensure_ascii=False) + "\n")
    else:
        tell(summary, console)
    return Exit.OK if summary.right else Exit.FAILED


def _played(plot: Plot, console: Console, *, live: bool, keep: bool, given: Given) -> Summary:
    began = time.monotonic()
    with watching(console, live=live) as view:
        view.say(_opening(given))
        with open_stage(keep=keep, given=given, say=view.say) as stage:
            summary = play(stage, plot, view, began=began)
    if keep:
        tell_kept(stage, console)
    return summary


def _opening(given: Given) -> str:
    own = (("Postgres", given.database_url is None), ("SQS and S3", given.aws is None))
    return "; ".join(f"{'starting' if is_own else 'using the given'} {name}" for name, is_own in own)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let the first signal end the block as Ctrl-C does; further ones must not disturb its tidying up."""

    def ended(_number: int, _frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        os.write(2, b"\nstopping, a moment\n")  # a buffered stream may be in the middle of a write of its own
        raise KeyboardInterrupt

    before = {each: signal.signal(each, ended) for each in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
