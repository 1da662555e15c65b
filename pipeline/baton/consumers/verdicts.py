"""What a handler may say about a message when it returns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Ack:
    """Done with, whatever came of it: the message is deleted."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now: the message is hidden for ``after`` and comes again.

    ``spent`` says whose fault it was. By default nobody's attempt is spent, because what was missing is outside the
    ticket (a store or a scanner that is away). An exception counts as a spent attempt.
    """

    after: timedelta
    spent: bool = False


Verdict: TypeAlias = Ack | Retry
