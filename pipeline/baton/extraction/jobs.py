"""What passes between the child's dispatcher and the readers."""

import time
from dataclasses import dataclass, field
from typing import BinaryIO

from baton.extraction.limits import Limits
from baton.extraction.outcomes import Note, ReasonCode, Source, Unreadable
from baton.extraction.text import clean, has_words, paginate


@dataclass(frozen=True, slots=True)
class Tesseract:
    """A text recogniser that was found on this machine."""

    program: str
    """Absolute path."""
    languages: tuple[str, ...]
    """Names of the installed languages that were asked for; never empty."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to be read, inside the child."""

    file: BinaryIO
    path: str
    """A path that opens the same file again, for libraries that insist on one."""
    name: str
    content_type: str
    limits: Limits
    tesseract: Tesseract | None
    started: float = field(default_factory=time.monotonic)

    @property
    def ocr_ends(self) -> float:
        """Monotonic time after which no further page is recognised."""
        return self.started + self.limits.wall_seconds * self.limits.ocr_share


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of one page as a reader found it."""

    text: str
    source: Source = Source.NATIVE
    confidence: float | None = None


@dataclass(slots=True)
class Content:
    """What a reader brings back."""

    pages: list[Draft] = field(default_factory=list)
    reason: ReasonCode | None = None
    attachments: list[str] = field(default_factory=list)
    notes: set[Note] = field(default_factory=set)

    @classmethod
    def of_text(cls, text: str, *, limits: Limits) -> "Content":
        """Running text, cleaned and cut into pages.

        Raises:
            Unreadable: There is more text than one document may have.
        """
        if len(text) > limits.text_chars:
            raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
        pieces = paginate(clean(text), page_chars=limits.page_chars)
        return cls(pages=[Draft(piece) for piece in pieces])

    @property
    def has_words(self) -> bool:
        """Whether any page says anything."""
        return any(has_words(page.text) for page in self.pages)
