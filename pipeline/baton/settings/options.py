"""Kinds of values for options of commands that click does not have; for every program of ours."""

from __future__ import annotations

import math
from typing import Any, Final

import click


class Number(click.FloatRange):
    """A finite number within bounds; ``nan`` is within none, though it compares as if it were."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return found


class Words(click.types.StringParamType):
    """A text: bytes of the command line that are none can name a file, and nothing else."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        found = super().convert(value, param, ctx)
        try:
            str(found).encode()
        except UnicodeEncodeError:
            self.fail("holds bytes that are no text", param, ctx)
        return found


WORDS: Final = Words()


def in_words(command: click.Command) -> click.Command:
    """The command, each parameter of which that takes a text takes nothing else."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = WORDS
    return command
