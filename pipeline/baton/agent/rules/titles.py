"""The name a document should have in the Record."""

import re
from collections.abc import Iterator
from typing import Final

from baton.agent.rules.kinds import Kind
from baton.agent.rules.parties import Party
from baton.agent.rules.reading import Reading, is_shouted
from baton.contract.classification import DocumentType, PartyRole
from baton.contract.wording import clean_line

_SUBJECT: Final = re.compile(r"^(?:subject|re|ref|тема|θ[εέ]μα|विषय)\s*[:.]\s*(?P<subject>.{3,200})$", re.IGNORECASE)
_REPLY_MARKS: Final = re.compile(r"^(?:(?:re|fwd?|aw|wg)\s*:\s*)+", re.IGNORECASE)
_MARKINGS: Final = re.compile(
    r"^(?:strictly |private (?:and|&) |privileged (?:and|&) )?(?:confidential|privileged|draft|without prejudice|page \d+.*|by (?:e-?mail|hand|post|courier).*)[.:]?$",
    re.IGNORECASE,
)
_COURT: Final = re.compile(r"^in the .*(?:court|tribunal|commission)|^before the |^case no|^no\. ", re.IGNORECASE)
_SMALL: Final = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "v", "with")
)
_CAPTIONED: Final = frozenset(
    {
        DocumentType.COMPLAINT,
        DocumentType.ANSWER,
        DocumentType.MOTION,
        DocumentType.COURT_ORDER,
        DocumentType.JUDGMENT,
    }
)
_ENDS: Final = (("from", PartyRole.SENDER), ("to", PartyRole.RECIPIENT))
_MARKS: Final = " .:;,"
LENGTH: Final = 160


def title_of(reading: Reading, *, kind: Kind, parties: tuple[Party, ...], file_name: str | None) -> tuple[str, float]:
    """A name of 1..160 characters and how sure it is: subject, title line, first line, file name."""
    for text, confidence in _proposals(reading, kind=kind, parties=parties, file_name=file_name):
        if title := clean_line(text, limit=LENGTH).strip(_MARKS):
            return title, confidence
    return "Untitled document", 0.1


def _proposals(
    reading: Reading, *, kind: Kind, parties: tuple[Party, ...], file_name: str | None
) -> Iterator[tuple[str, float]]:
    """What the document could be called, the best first."""
    subject = _subject(reading)
    if kind.type is DocumentType.EMAIL and subject:
        yield _REPLY_MARKS.sub("", subject), 0.95
    if kind.title_line:
        title = _calm(kind.title_line)
        if kind.type in _CAPTIONED and (versus := _versus(parties)) and versus.casefold() not in title.casefold():
            title = f"{title.strip(_MARKS)} ({versus})"
        yield title, 0.9
    if subject:
        # a letter's subject says more than its letterhead
        yield _calm(subject), 0.85
    if kind.type is DocumentType.LETTER:
        named = {party.role: party.name for party in reversed(parties)}
        ends = [f"{word} {named[role]}" for word, role in _ENDS if role in named]
        if ends:
            yield "Letter " + " ".join(ends), 0.7
    for line in reading.top[:8]:
        if 4 <= len(line.text) <= LENGTH and not _MARKINGS.match(line.text) and not _COURT.match(line.text):
            yield _calm(line.text), 0.55
    if file_name:
        yield re.sub(r"[_\s]+", " ", file_name.rpartition(".")[0] or file_name), 0.4


def _subject(reading: Reading) -> str | None:
    for line in reading.top:
        if match := _SUBJECT.match(line.text):
            return match["subject"].strip()
    return None


def _versus(parties: tuple[Party, ...]) -> str | None:
    sides = {party.side: party.name for party in reversed(parties) if party.role is not PartyRole.COUNSEL}
    return f"{_calm(sides[1])} v. {_calm(sides[2])}" if {1, 2} <= sides.keys() else None


def _calm(text: str) -> str:
    """A line set in English capitals as a title is written; any other as it is."""
    if not is_shouted(text) or any(character.isalpha() and not character.isascii() for character in text):
        return text
    words = text.split()
    return " ".join(
        word.lower() if index and word.lower().strip(".") in _SMALL else _capitalised(word)
        for index, word in enumerate(words)
    )


def _capitalised(word: str) -> str:
    # abbreviations keep their capitals: LLC, U.S., IV
    if "." in word.rstrip(".") or any(map(str.isdigit, word)) or (len(word) <= 4 and not re.search(r"[AEIOUY]", word)):
        return word
    return word[:1] + word[1:].lower()
