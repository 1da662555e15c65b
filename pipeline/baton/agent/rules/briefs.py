# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""The brief: sentences of the document itself, chosen and never rewritten."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from baton.agent.rules import kinds, parties, titles
from baton.agent.rules.reading import Reading
from baton.contract import limits
from baton.contract.invocations import InvocationContext
from baton.contract.understanding import Brief, BriefPoint
from baton.contract.wording import clean_line, clean_text

_CHARACTERS: Final = 400_000
_POINTS: Final = 8
_SHORTEST: Final = 40
_LONGEST: Final = 420
# A stop ends a sentence when a blank and something that can begin one follow, and no abbreviation stands before it.
_END: Final = re.compile(r"(?<=[.!?।])\s+(?=[^\Wa-zа-яα-ω_]|[\"“(«])")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:v|vs|no|nos|mr|mrs|ms|dr|st|art|sec|para|p|pp|ltd|inc|co|corp|cl|ex|fig|ref|rs)|\b[a-z])\.$",
    re.IGNORECASE,
)
_TAIL: Final = 8
_WORD: Final = re.compile(r"[^\W\d_][^\W_]{3,}")
_WEIGHTY: Final = re.compile(
    r"\b(?:shall|must|agree[sd]?|order(?:ed|s)|breach|terminat\w+|damages|claim\w*|pay(?:ment|able)?|liab\w+|judgment|deadline|notice|obligat\w+)\b"
    r"|обязан|должен|υποχρε|देय",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    page: int
    order: int


def brief_for(reading: Reading, *, context: InvocationContext) -> Brief:
    """The one effect of `document.brief.v1`: an opening line and the weightiest sentences in reading order."""
    kind = kinds.kind_of(reading, file_name=context.file_name)
    people = parties.parties_in(reading)
    title, _confidence = titles.title_of(reading, kind=kind, parties=people, file_name=context.file_name)
    chosen = _weightiest(_sentences(reading))
    opening = f"{title}."
    if people:
        opening += " Named in it: " + "; ".join(party.name for party in people[:4]) + "."
    summary = clean_text(" ".join([opening, *(sentence.text for sentence in chosen[:3])]), limit=limits.MAX_SUMMARY)
    return Brief(
        summary=summary,
        points=tuple(
            BriefPoint(text=clean_line(sentence.text, limit=limits.MAX_POINT), page=sentence.page)
            for sentence in chosen
        ),
    )


def _sentences(reading: Reading) -> list[_Sentence]:
    found: list[_Sentence] = []
    taken = 0
    pending, pending_page = "", 1
    for page, lines in groupby(reading.lines, key=lambda line: line.page):
        text = " ".join(line.text for line in lines)[: _CHARACTERS - taken]
        taken += len(text)
        if not text:
            break
        first, *others = _split(f"{pending} {text}".strip())
        for index, sentence in enumerate((first, *others)):
            # what began on the page before is quoted from there
            found.append(_Sentence(sentence, pending_page if pending and not index else page, len(found)))
        last = found.pop()
        # a table or a list without stops: nothing to quote, and nothing to carry along
        pending, pending_page = (last.text, last.page) if len(last.text) <= 4 * _LONGEST else ("", page)
    if pending:
        found.append(_Sentence(pending, pending_page, len(found)))
    return found


def _split(text: str) -> list[str]:
    parts: list[str] = []
    for part in _END.split(text):
        # only the tail is looked at, and a run of abbreviations ends somewhere: both keep the cost in proportion
        if parts and len(parts[-1]) <= 4 * _LONGEST and _ABBREVIATED.search(parts[-1][-_TAIL:]):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts


def _weightiest(sentences: list[_Sentence]) -> list[_Sentence]:
    words_of = {sentence.order: set(_WORD.findall(sentence.text.casefold())) for sentence in sentences}
    often = Counter(word for words in words_of.values() for word in words)
    ranked = sorted(
        (
            sentence
            for sentence in {sentence.text: sentence for sentence in reversed(sentences)}.values()
            if _SHORTEST <= len(sentence.text) <= _LONGEST and words_of[sentence.order]
        ),
        key=lambda sentence: (
            -_weight(sentence, words_of[sentence.order], often, total=len(sentences)),
            sentence.order,
        ),
    )
    return sorted(ranked[:_POINTS], key=lambda sentence: sentence.order)


def _weight(sentence: _Sentence, words: set[str], often: Counter[str], *, total: int) -> float:
    common = sum(often[word] for word in words) / (len(words) + 3)
    place = 1.0 + 0.5 * (1 - sentence.order / max(total, 1))
    return (common / max(total, 1) + 0.15 * len(_WEIGHTY.findall(sentence.text))) * place
