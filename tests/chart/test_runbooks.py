"""The runbooks tell people to type what can be typed."""

from pathlib import Path

import click
import pytest

from baton.cli.main import group as baton
from baton.operator.plugin.main import program as plugin
from support.charts.runbooks import commands, pages

pytestmark = pytest.mark.check


def parsed(group: click.Group, words: list[str]) -> None:
    """Have a program read a command without carrying it out."""
    name, command, rest = group.resolve_command(click.Context(group), words)
    assert command is not None
    command.make_context(name, list(rest))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_command_of_baton_is_one(page: Path) -> None:
    """With its arguments and options; each page looks somewhere."""
    told = commands(page)
    assert told
    for words in told:
        if words[:2] == ["kubectl", "baton"]:
            parsed(plugin, words[2:])
        elif words[0] == "baton":
            parsed(baton, words[1:])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_other_command_names_its_namespace(page: Path) -> None:
    """What is typed at three in the morning does not depend on a context that somebody left."""
    for words in commands(page):
        if words[0] in ("kubectl", "helm") and words[1] != "baton":
            assert words[1:3] == ["-n", "baton"], words
