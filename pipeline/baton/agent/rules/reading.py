"""The text of a document, prepared once for all the rules."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from baton.contract.pages import PageText
from baton.contract.wording import clean_line

_LINE: Final = 2000
_HEAD: Final = 6000
_TOP_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank, cleaned, with its page and whether it is the first of that page."""

    text: str
    page: int
    first: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A document as lines."""

    lines: tuple[Line, ...]
    page_count: int

    @property
    def top(self) -> tuple[Line, ...]:
        """The first 40 lines: letterheads, captions and titles stand there."""
        return self.lines[:_TOP_LINES]

    @property
    def head(self) -> str:
        """About the first 6,000 characters, lines joined by line breaks."""
        taken: list[str] = []
        size = 0
        for line in self.lines:
            taken.append(line.text)
            size += len(line.text) + 1
            if size > _HEAD:
                break
        return "\n".join(taken)


def read(pages: Iterable[PageText]) -> Reading:
    """Prepare page text: NFC, one blank between words, no controls, no blank lines."""
    lines: list[Line] = []
    count = 0
    for page in pages:
        count += 1
        first = True
        for raw in unicodedata.normalize("NFC", page.text).splitlines():
            if text := clean_line(raw, limit=_LINE):
                lines.append(Line(text, page.number, first))
                first = False
    return Reading(tuple(lines), count)


def is_shouted(text: str) -> bool:
    """Whether a line is set in capitals; False in scripts that have none."""
    letters = [character for character in text if character.isalpha()]
    return len(letters) >= 4 and sum(map(str.isupper, letters)) >= 0.8 * len(letters)
