"""The commands that the runbooks tell people to type."""

import re
import shlex
from pathlib import Path

from support.charts.places import RUNBOOKS

_INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
_INLINE = re.compile(r"`((?:kubectl|baton|helm) [^`]+)`")


def pages() -> list[Path]:
    """One for each alert."""
    return sorted(RUNBOOKS.glob("Baton*.md"))


def commands(page: Path) -> list[list[str]]:
    """Every command of a page, as words; what only names a command without its object is left out."""
    text = page.read_text(encoding="utf-8")
    found = [*_INDENTED.findall(text), *(" ".join(each.split()) for each in _INLINE.findall(text))]
    told = [shlex.split(each) for each in found]
    return [each for each in told if each not in (["kubectl", "describe"], ["helm", "upgrade"])]
