"""What an examination brings: findings, each with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and will not for ever, or not as fast as it could."""
    FAULT = "fault"
    """Work stands still, or what holds it together is missing."""
    UNKNOWN = "unknown"
    """It could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """Which look it comes from, a word for machines."""
    level: Level
    what: str
    todo: str | None = None
    """What to do about it; ``None`` where there is nothing to be done."""
    quoted: str | None = None
    """What goes with it in the words of an error, which may say anything."""

    @property
    def whole(self) -> str:
        """What was found, with what is quoted."""
        return self.what if self.quoted is None else f"{self.what}; {self.quoted}"

    def as_json(self, *, quoting: bool = True) -> dict[str, object]:
        """For machines.

        :param quoting: whether whoever reads it may read what errors say.
        """
        what = self.whole if quoting else self.what
        return {"check": self.check, "level": self.level, "what": what, "todo": self.todo}


def ok(check: str, what: str) -> Finding:
    """All is well."""
    return Finding(check=check, level=Level.OK, what=what)


def warning(check: str, what: str, *, todo: str, quoted: str | None = None) -> Finding:
    """Something to see to."""
    return Finding(check=check, level=Level.WARNING, what=what, todo=todo, quoted=quoted)


def fault(check: str, what: str, *, todo: str, quoted: str | None = None) -> Finding:
    """Something to see to at once."""
    return Finding(check=check, level=Level.FAULT, what=what, todo=todo, quoted=quoted)


def unknown(check: str, what: str, *, todo: str) -> Finding:
    """It could not be looked at."""
    return Finding(check=check, level=Level.UNKNOWN, what=what, todo=todo)


def or_ok(found: Sequence[Finding], check: str, what: str) -> tuple[Finding, ...]:
    """What was found, or one finding that all is well."""
    return tuple(found) or (ok(check, what),)


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
