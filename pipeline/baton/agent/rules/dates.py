# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""Days that a text speaks of, in the ways people write them."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from typing import Final

from baton.agent.rules.reading import Reading
from baton.contract.classification import DateMeaning

# English, Greek (genitive and nominative), Russian (genitive), Hindi. Accents are folded before the look-up.
_MONTH_NAMES: Final = (
    "january jan ιανουαριου ιανουαριος января जनवरी",
    "february feb φεβρουαριου φεβρουαριος февраля फरवरी",
    "march mar μαρτιου μαρτιος марта मार्च",
    "april apr απριλιου απριλιος апреля अप्रैल",
    "may μαιου μαιος мая मई",
    "june jun ιουνιου ιουνιος июня जून",
    "july jul ιουλιου ιουλιος июля जुलाई",
    "august aug αυγουστου αυγουστος августа अगस्त",
    "september sept sep σεπτεμβριου σεπτεμβριος сентября सितंबर सितम्बर",
    "october oct οκτωβριου οκτωβριος октября अक्टूबर अक्तूबर",
    "november nov νοεμβριου νοεμβριος ноября नवंबर नवम्बर",
    "december dec δεκεμβριου δεκεμβριος декабря दिसंबर दिसम्बर",
)


def _folded(text: str) -> str:
    """Without accents in the scripts where months are written with and without; Devanagari signs stay."""
    return "".join(
        character
        for character in unicodedata.normalize("NFD", text.casefold())
        if not "\u0300" <= character <= "\u036f" or character == "\u0306"
    )


_MONTHS: Final = {_folded(name): number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
# A combining vowel sign is no \w, so the word is what stands between blanks and stops.
_WORD: Final = r"[^\W\d_][^\s\d.,/:;()]{2,13}"
_DAY: Final = r"(?<!\d)(?P<day>\d{1,2})"
_YEAR: Final = r"(?P<year>\d{4})(?!\d)"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})(?!\d)",
        rf"{_DAY}(?:st|nd|rd|th|η|ης)?(?: day)?(?: of)? (?P<month>{_WORD})\.?,? {_YEAR}",
        rf"(?P<month>{_WORD})\.? {_DAY}(?:st|nd|rd|th)?,? {_YEAR}",
        rf"(?<![\d./-]){_DAY}(?P<mark>[./-])(?P<number>\d{{1,2}})(?P=mark){_YEAR}",
    )
)
_MEANINGS: Final = (
    (DateMeaning.EFFECTIVE, re.compile(r"effective|commenc|with effect|in force|в силу|ισχ[υύ]", re.IGNORECASE)),
    (
        DateMeaning.HEARING,
        re.compile(r"hearing|appear (?:before|on)|listed (?:for|on)|trial on|заседани|सुनवाई|συζητ", re.IGNORECASE),
    ),
    (
        DateMeaning.DUE,
        re.compile(r"\bdue\b|no later than|on or before|deadline|payable (?:by|on)|не позднее|तक\b", re.IGNORECASE),
    ),
    (DateMeaning.FILED, re.compile(r"\bfiled\b|\blodged\b|подан", re.IGNORECASE)),
    (
        DateMeaning.DOCUMENT,
        re.compile(
            r"\bdated?\s*[:.]|^\W*dated?\b|\bmade (?:on|this|as of)|entered into (?:on|this|as of)|\bsent\b|\bsworn\b|дата|दिनांक|ημερομην",
            re.IGNORECASE,
        ),
    ),
    # `the agreement dated …` is another document's day
    (DateMeaning.MENTIONED, re.compile(r"\bdated\b|\bof even date\b", re.IGNORECASE)),
)
_BEFORE: Final = 60
_YEAR_AT_ALL: Final = re.compile(r"\d{4}")
_TOP: Final = 25
_PLACE: Final = 30
"""Characters that may stand before the day in a line that only dates: a place, `held on`."""
_REST: Final = 5
"""Characters that may follow it there; where more follow it is a sentence with a day in it."""
MAX_DATES: Final = 60


@dataclass(frozen=True, slots=True)
class Day:
    """A day, what it stands for, where it stands and how sure both are."""

    day: date
    meaning: DateMeaning
    page: int
    confidence: float


def days_in(reading: Reading) -> tuple[Day, ...]:
    """The distinct days of a text in reading order, at most 60; without a hint one alone on its line is the document's."""
    found: dict[tuple[date, DateMeaning], Day] = {}
    alone: Day | None = None
    for index, line in enumerate(reading.lines):
        if not _YEAR_AT_ALL.search(line.text):
            continue
        for start, end, day, confidence in sorted(_in_line(line.text)):
            meaning = _meaning(line.text, start)
            if meaning is DateMeaning.DOCUMENT and (
                any(known is meaning for _day, known in found) or _in_the_midst(reading, index=index)
            ):
                meaning = DateMeaning.MENTIONED
            if meaning is None and alone is None and index < _TOP and start <= _PLACE and len(line.text) - end <= _REST:
                alone = Day(day, DateMeaning.DOCUMENT, line.page, round(confidence - 0.15, 2))
            meaning = meaning or DateMeaning.MENTIONED
            found.setdefault((day, meaning), Day(day, meaning, line.page, confidence))
        if len(found) >= MAX_DATES:
            break
    if alone and not any(meaning is DateMeaning.DOCUMENT for _day, meaning in found):
        found.pop((alone.day, DateMeaning.MENTIONED), None)
        found = {(alone.day, alone.meaning): alone, **found}
    return tuple(found.values())[:MAX_DATES]


def _in_the_midst(reading: Reading, *, index: int) -> bool:
    """Whether a line is neither near the top nor on the last page, where documents are dated."""
    return index >= 4 * _TOP and reading.lines[index].page != reading.lines[-1].page


def document_day(days: tuple[Day, ...]) -> Day | None:
    """The day of the document itself, else the day it takes effect or was filed."""
    for meaning in (DateMeaning.DOCUMENT, DateMeaning.EFFECTIVE, DateMeaning.FILED):
        for day in days:
            if day.meaning is meaning:
                return day
    return None


def _in_line(text: str) -> list[tuple[int, int, date, float]]:
    found: list[tuple[int, int, date, float]] = []
    taken: set[int] = set()
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if match.start("day") in taken:
                continue
            parsed = _parsed(match)
            if parsed is not None:
                taken.add(match.start("day"))
                found.append((match.start(), match.end(), *parsed))
    return found


def _parsed(match: re.Match[str]) -> tuple[date, float] | None:
    parts = match.groupdict()
    year, day = int(parts["year"]), int(parts["day"])
    confidence = 0.95
    if parts.get("month"):
        month = _MONTHS.get(_folded(parts["month"]), 0)
    else:
        month = int(parts["number"])
        if parts.get("mark"):
            # 03/04/2024: day first, as most of the world writes it, unless only the other order is a day
            if month > 12 >= day:
                day, month = month, day
            confidence = 0.9 if parts["mark"] == "." or day > 12 or day == month else 0.6
    if not 1700 <= year <= 2200:
        return None
    try:
        return date(year, month, day), confidence
    except ValueError:
        return None


def _meaning(text: str, end: int) -> DateMeaning | None:
    # the nearest hint wins: "filed late, hearing on …"; `^` in a pattern is the start of the line, not of the window
    hints = [
        (match.end(), -order, meaning)
        for order, (meaning, pattern) in enumerate(_MEANINGS)
        for match in pattern.finditer(text, max(0, end - _BEFORE), end)
    ]
    return max(hints)[2] if hints else None
