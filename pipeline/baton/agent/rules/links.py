"""Other documents of the matter that a text names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from baton.agent.rules.reading import Reading
from baton.contract.classification import LinkBy, LinkRelation
from baton.contract.invocations import Candidate, looks_like_id

MAX_LINKS: Final = 50
_AROUND: Final = 90
_EXTENSION: Final = re.compile(r"\.[a-z0-9]{2,5}$")
_NUMBERING: Final = re.compile(r"^(?:(?:exhibit|ex|doc|document|annex)? ?\d+[a-z]? )+")
_PUNCTUATION: Final = re.compile(r"[\W_]+")
_RELATIONS: Final = (
    (LinkRelation.AMENDS, re.compile(r"\b(?:amends?|amending|amendment|addendum|supplements?|varies)\b")),
    (LinkRelation.REPLIES_TO, re.compile(r"\b(?:in (?:reply|response|answer) to|in reply|further to your)\b")),
    (LinkRelation.ATTACHES, re.compile(r"\b(?:attach\w*|enclos\w+|annex\w*|exhibited)\b")),
)


@dataclass(frozen=True, slots=True)
class Link:
    """A mention of a candidate, named as the candidate list names it."""

    by: LinkBy
    value: str
    relation: LinkRelation
    confidence: float


def links_in(reading: Reading, *, candidates: Iterable[Candidate], own_name: str | None) -> tuple[Link, ...]:
    """The candidates that the text names by file name, name or reference; at most 50.

    A document's own name, ids and names too short to mean one document are passed over.
    """
    text = f" {_plain(' '.join(line.text for line in reading.lines))} "
    present = frozenset(text.split())
    own = _stem(own_name or "")
    found: dict[tuple[LinkBy, str], Link] = {}
    for candidate in candidates:
        if len(found) >= MAX_LINKS:
            break
        stem = _stem(candidate.name)
        if stem == own or looks_like_id(candidate.name):
            continue
        reference = candidate.document_ref or ""
        for by, value, words, confidence in (
            # a name without a number may be a phrase that is used of other things as well
            (LinkBy.NAME, candidate.name, stem, 0.9 if len(stem) >= 20 or any(map(str.isdigit, stem)) else 0.75),
            (LinkBy.REFERENCE, reference, _plain(reference), 0.85),
            # files are often numbered in a folder, and spoken of without the number
            (LinkBy.NAME, candidate.name, _NUMBERING.sub("", stem), 0.7),
        ):
            # asking for each word first spares most candidates a search of the whole text
            if _telling(words) and present.issuperset(words.split()) and (at := text.find(f" {words} ")) >= 0:
                found.setdefault((by, value), Link(by, value, _relation(text, at, len(words)), confidence))
                break
    return tuple(found.values())


def _stem(name: str) -> str:
    return _plain(_EXTENSION.sub("", name.casefold()))


def _plain(text: str) -> str:
    """Words only: `Supply_Agreement-2021.pdf` and `Supply Agreement (2021)` come out alike but for the extension."""
    return _PUNCTUATION.sub(" ", text.casefold()).strip()


def _telling(plain: str) -> bool:
    """Whether words are likely to mean one document: `complaint` alone is any complaint."""
    if any(map(str.isdigit, plain)) and any(map(str.isalpha, plain)):
        return len(plain) >= 4
    return len(plain) >= 12 or (len(plain) >= 8 and " " in plain)


def _relation(text: str, at: int, length: int) -> LinkRelation:
    around = text[max(0, at - _AROUND) : at + length + _AROUND]
    for relation, pattern in _RELATIONS:
        if pattern.search(around):
            return relation
    return LinkRelation.REFERS_TO
