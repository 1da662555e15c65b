"""For whom a person works at the command line."""

from __future__ import annotations

from dataclasses import dataclass

from baton.settings import parsers
from baton.settings.fields import setting


@dataclass(frozen=True, slots=True)
class Person:
    """Who is at the command line. No process of the pipeline reads these."""

    firm: str | None = setting(
        "BATON_FIRM",
        parsers.text,
        default=None,
        unset="commands about documents ask for `--firm`",
        meaning="Firm for which documents are uploaded and shown: its id, or a name that stands for one.",
    )
    actor: str | None = setting(
        "BATON_ACTOR",
        parsers.text,
        default=None,
        unset="the account that runs the program",
        meaning="Who does it, for the audit trail.",
    )
