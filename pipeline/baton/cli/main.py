"""The program's entry: the group of commands, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import version
from typing import Final

import click

from baton.cli.failures import told
from baton.settings.options import in_words

#: Command → module; the module's ``command`` is the click command.
_COMMANDS: Final = {
    "demo": "baton.demo.command",
    "upload": "baton.cli.upload",
    "status": "baton.cli.status",
    "show": "baton.cli.show",
    "search": "baton.cli.search",
    "reextract": "baton.cli.reextract",
    "resegment": "baton.cli.resegment",
    "retry": "baton.cli.retry",
    "delete": "baton.cli.delete",
    "restore": "baton.cli.restore",
    "explain": "baton.cli.explain",
    "plan": "baton.cli.plan",
    "reconcile": "baton.cli.reconcile",
    "redrive": "baton.cli.redrive",
    "doctor": "baton.cli.doctor",
    "relay": "baton.cli.relay",
    "extractor": "baton.cli.extractor",
    "registrar": "baton.cli.registrar",
    "settler": "baton.cli.settler",
    "agent": "baton.cli.agent",
    "migrate": "baton.cli.migrate",
    "settings": "baton.cli.settings",
}

#: Commands that need more than every process does → the extra that brings it.
_EXTRAS: Final = {"demo": "demo"}

_SECTIONS: Final = (
    (
        "Documents",
        ("demo", "upload", "status", "show", "search", "reextract", "resegment", "retry", "delete", "restore"),
    ),
    ("Care", ("explain", "plan", "reconcile", "redrive", "doctor")),
    ("Processes", ("relay", "extractor", "registrar", "settler", "agent", "migrate")),
    ("More", ("settings",)),
)


class Commands(click.Group):
    """Lists commands without importing them, by what they are for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the sections."""
        del ctx
        return [name for _, names in _SECTIONS for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        del ctx
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        try:
            command: click.Command = importlib.import_module(module).command
        except ModuleNotFoundError as missing:
            extra = _EXTRAS.get(cmd_name)
            if extra is None or (missing.name or "").startswith("baton"):
                raise
            return _absent(cmd_name, extra)
        return in_words(_laid_out(command))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help."""
        for title, names in _SECTIONS:
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None:
                    rows.append((name, command.get_short_help_str(limit=150)))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("baton"), prog_name="baton")
def group() -> None:
    r"""Baton: a finished upload ends registered in the Record, or visibly failed with a reason.

    \b
    Try it on this machine, with nothing else running:
        baton demo

    Settings come from the environment; 'baton settings' lists them.
    Exit codes: 0 done, 1 tried and failed, 2 wrong usage or settings, 69 something needed does not
    answer, 70 a fault of Baton's own, 75 try again later, 77 refused by the database.
    """


def _absent(name: str, extra: str) -> click.Command:
    """In the place of a command whose extra is not installed, as in the image."""

    def refuse() -> None:
        raise click.UsageError(f"'{name}' is not installed here: it needs baton[{extra}]")

    return click.Command(name, callback=refuse, help=f"Not installed here; it needs baton[{extra}].")


def _laid_out(command: click.Command) -> click.Command:
    r"""Have click keep the lines of paragraphs that are marked: in a raw docstring ``\b`` is two characters."""
    if command.help:
        command.help = command.help.replace("\\b\n", "\b\n")
    return command


_laid_out(group)


def _open_standard_streams() -> None:
    """Lead those that the caller closed to nowhere: a connection that got the number of one would be written into."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False, encoding="utf-8"))


def main() -> None:
    """Run the program and exit."""
    _open_standard_streams()
    sys.exit(told(lambda: group.main(prog_name="baton", standalone_mode=False)))
