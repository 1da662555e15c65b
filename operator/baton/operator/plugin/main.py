"""The program ``kubectl-baton``, which kubectl finds on the PATH and runs as ``kubectl baton``."""

from __future__ import annotations

import signal
import sys
from importlib.metadata import version
from types import FrameType
from typing import Any

import click

from baton.operator.plugin import changing, looking, redriving, reporting
from baton.operator.plugin.drawing import tell
from baton.operator.plugin.failures import Failed
from baton.operator.plugin.options import everywhere
from baton.settings.exits import Exit
from baton.settings.options import in_words


class _Commands(click.Group):
    """Lists commands in the order in which they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them."""
        del ctx
        return list(self.commands)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@everywhere
@click.version_option(version("baton"), message="%(version)s")
@click.pass_context
def program(ctx: click.Context, /, **said: Any) -> None:
    """See what the Baton operator sees, and ask it to repair, by your own rights in the cluster.

    What is looked at beyond the resources is asked of the operator through a forwarded port, with your token; what
    changes something is a change of a resource. Neither needs a database's password or a shell in a pod.

    Namespace, context, kubeconfig and output may be said before a command or behind it; said twice, behind it counts.

    Exit codes: 0 done, 1 tried and failed, 2 wrong usage, 69 something needed does not answer, 70 a fault of Baton's
    own, 75 not yet, try again later, 77 you may not.
    """
    ctx.obj = said


in_words(program)
for each in (
    looking.status,
    looking.explain,
    looking.plan,
    changing.reconcile,
    redriving.redrive,
    changing.suspend,
    changing.resume,
    reporting.report,
):
    # in a raw docstring the mark that keeps the lines of a paragraph is two characters
    each.help = (each.help or "").replace("\\b\n", "\b\n")
    program.add_command(in_words(each))


def main(arguments: list[str] | None = None) -> int:
    """Run it; returns the exit code."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        answer = program.main(arguments, prog_name="kubectl baton", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return Exit.SETTINGS
    except Failed as failure:
        tell(f"kubectl baton: {failure}")
        return failure.code
    return answer if isinstance(answer, int) else Exit.OK


def _leave(number: int, _: FrameType | None) -> None:
    """End as by an exception, so that a kubectl of ours ends, too."""
    sys.exit(128 + number)
