# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""The headings of a document and the pages under each."""

import re
from collections import Counter
from typing import Final

from baton.agent.rules.reading import Line, Reading, is_shouted
from baton.contract import limits
from baton.contract.understanding import Section, Sections
from baton.contract.wording import clean_line

_LENGTH: Final = 110
_NUMBERED: Final = re.compile(r"^(?P<number>\d{1,3}(?:\.\d{1,3}){0,4})[.)]?\s+(?P<title>[^\W\d_].{2,100})$")
_NAMED: Final = re.compile(
    r"^(?P<word>part|chapter|article|section|schedule|annex(?:ure)?|appendix|exhibit|clause|часть|глава|раздел|статья|приложение"
    r"|μέρος|κεφάλαιο|άρθρο|παράρτημα|भाग|अध्याय|धारा|अनुच्छेद|अनुसूची)\s+(?:№\s*)?(?:\d+|[IVXLC]+|[A-Z])\b[.:)]?(?:\s*[-–—:]?\s*.{0,90})$",
    re.IGNORECASE,
)
_ROMAN: Final = re.compile(r"^[IVXLC]{1,6}[.)]\s+\S.{2,100}$")
_LEVELS: Final = {"part": 1, "chapter": 1, "section": 2, "clause": 2, "раздел": 2, "статья": 2, "धारा": 2}
_SENTENCE_END: Final = (".", ",", ";", ":", "।")
_REPEATED: Final = 3


def sections_for(reading: Reading) -> Sections:
    """The one effect of `document.sections.v1`; running headers are left out."""
    pages_of: Counter[str] = Counter(
        text for text, _page in {(line.text, line.page) for line in reading.lines if len(line.text) <= _LENGTH}
    )
    headings: list[tuple[Line, int]] = []
    for line in reading.lines:
        if len(line.text) > _LENGTH or pages_of[line.text] >= _REPEATED:
            continue
        level = _level(line.text)
        if level:
            headings.append((line, level))
            if len(headings) == limits.MAX_SECTIONS:
                break
    last = max((line.page for line in reading.lines), default=1)
    return Sections(
        sections=tuple(
            Section(
                heading=clean_line(line.text),
                level=level,
                first_page=line.page,
                last_page=_last_page(headings, index=index, document_last=last),
            )
            for index, (line, level) in enumerate(headings)
        )
    )


def _level(text: str) -> int | None:
    if match := _NAMED.match(text):
        return _LEVELS.get(match["word"].lower(), 1) if not text.endswith((".", ",", ";")) or is_shouted(text) else None
    if match := _NUMBERED.match(text):
        title = match["title"]
        if title.endswith(_SENTENCE_END) or title[0].islower() or len(title.split()) > 10:
            return None
        return min(match["number"].count(".") + 1, 6)
    if _ROMAN.match(text) and not text.endswith(_SENTENCE_END):
        return 1
    if is_shouted(text) and 4 <= len(text) <= 80 and not text.endswith((".", ",", ";")):
        return 1
    return None


def _last_page(headings: list[tuple[Line, int]], *, index: int, document_last: int) -> int:
    """Up to the next heading of the same rank or above; a heading that opens a page ends the one before it there."""
    line, level = headings[index]
    for later, rank in headings[index + 1 :]:
        if rank <= level:
            return max(line.page, later.page - 1 if later.first else later.page)
    return max(line.page, document_last)
