"""Reads the frozen SQL of a version."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

#: Stands alone on a line between two statements: bodies of functions hold semicolons.
SEPARATOR = "--;;"


def statements(name: str) -> Iterator[str]:
    """The statements of ``sql/<name>``, in order."""
    text = resources.files("baton.db.migrations").joinpath("sql", name).read_text(encoding="utf-8")
    for statement in text.split(f"\n{SEPARATOR}\n"):
        if statement.strip():
            yield statement.strip()
