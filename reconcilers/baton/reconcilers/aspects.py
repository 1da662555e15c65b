"""What of a document can disagree with its desired outcome, each by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from baton.db.states import Lane, Part


class Aspect(StrEnum):
    """An aspect has one answer: the first row of its table that holds."""

    INGEST = "ingest"
    REGISTRATION = "registration"
    CARD = "card"
    SECTIONS = "sections"
    BRIEF = "brief"

    @property
    def part(self) -> Part | None:
        """The understanding part that the aspect is about; ``None`` for the document's own two axes."""
        return Part(self.value) if self in PARTS else None

    @property
    def lane(self) -> Lane:
        """Where its tickets travel."""
        return Lane.INGEST if self is Aspect.INGEST else Lane.REGISTRAR


#: The aspects that are understanding parts.
PARTS: Final = (Aspect.CARD, Aspect.SECTIONS, Aspect.BRIEF)


class Owner(StrEnum):
    """Who has the next move."""

    RELAY = "relay"
    QUEUE = "queue"
    WORKER = "worker"
    AGENT = "agent"
    SWEEPER = "sweeper"
    RECONCILER = "reconciler"
    PERSON = "person"
    UPLOADER = "uploader"
    INGEST = "ingest"  # the registration aspect waits for the document's text
    REGISTRATION = "registration"  # a part waits for the registration, or for the part before it
    NOBODY = "nobody"  # terminal


class Severity(StrEnum):
    """How loud a discrepancy is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
