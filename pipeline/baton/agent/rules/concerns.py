# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""What a lawyer must look at before anything else: privilege and conflicts of sides."""

import re
from collections.abc import Iterable
from typing import Final

from baton.agent.rules.parties import Party, folded
from baton.agent.rules.reading import Line, Reading
from baton.contract.classification import Concern, ConcernKind, DocumentType, PartyRole

# A marking stands on a line of its own, or opens one.
_MARKING: Final = re.compile(
    r"^\W*(?:strictly |highly )?(?:"
    r"privileged(?: (?:and|&) (?:strictly )?confidential)?"
    r"|confidential (?:and|&) (?:legally )?privileged"
    r"|(?:subject to |protected by )?(?:attorney|solicitor|lawyer|advocate)[-– ]client (?:privilege(?:d)?|communication)"
    r"|(?:attorney|solicitor)(?:'s|s')? work[- ]product"
    r"|(?:subject to )?(?:legal (?:professional|advice)|litigation) privilege"
    r"|legally privileged"
    r"|адвокатская тайна"
    r"|δικηγορικ[οό] απ[οό]ρρητο"
    r"|विशेषाधिकार(?:प्राप्त)?"
    r")(?!\w)",
    re.IGNORECASE,
)
_STATEMENT: Final = re.compile(
    r"\bthis (?:letter|memorandum|memo|e-?mail|advice|communication|document|note)\b[^.]{0,60}\bis (?:strictly )?"
    r"(?:privileged|confidential and (?:legally )?privileged|protected by|subject to) ?[^.]{0,60}"
    r"|\bprepared (?:by counsel )?in (?:contemplation|anticipation) of litigation\b"
    r"|\bfor the (?:dominant )?purpose of (?:giving|obtaining) legal advice\b",
    re.IGNORECASE,
)
_STATEMENT_WORD: Final = re.compile(r"privilege|litigation|legal advice", re.IGNORECASE)
# The footer that every office puts under every e-mail, and talk about privilege, are no markings.
_BOILERPLATE: Final = re.compile(
    r"\bmay (?:also )?(?:contain|be|include)\b|intended (?:only|solely|recipient)|if you (?:are not|have received)|unauthori[sz]ed"
    r"|privilege log|waive[ds]?\b|waiver of|no privilege|not privileged|(?:claim|assert)(?:s|ed|ing)? (?:of )?privilege",
    re.IGNORECASE,
)
_MARKING_LENGTH: Final = 160
_ADVERSE: Final = re.compile(
    r"^(?:adverse|opposing|opposite|other|counter)[- ]?(?:party|side)\s*:\s*(?P<name>.+)$", re.IGNORECASE
)
_COUNTERPARTY: Final = re.compile(
    r"\((?:the |hereinafter )*[\"“']?(?:counter-?party|other party|other side|adverse party)[\"”']?\)", re.IGNORECASE
)
_NEARBY: Final = 200
_ACTS: Final = re.compile(r"\b(?:acts?|is acting|shall act|appears) (?:for|on behalf of) ", re.IGNORECASE)
_AGREEMENTS: Final = frozenset({DocumentType.CONTRACT, DocumentType.AMENDMENT})


def concerns_of(
    reading: Reading, *, kind: DocumentType, parties: tuple[Party, ...], our_side: Iterable[str]
) -> tuple[Concern, ...]:
    """At most one concern of each kind, the graver first."""
    found = (privilege_suspicion(reading), side_conflict(reading, kind=kind, parties=parties, our_side=our_side))
    return tuple(concern for concern in found if concern is not None)


def privilege_suspicion(reading: Reading) -> Concern | None:
    """A marking on any page, or a sentence on the first pages by which the document calls itself privileged."""
    first_page = reading.lines[0].page if reading.lines else 1
    for index, line in enumerate(reading.lines):
        if _is_marking(line):
            return _privilege("The document is marked as privileged.", 0.95 if index < 60 else 0.8, line.page)
    opening = [line for line in reading.lines[:200] if line.page <= first_page + 1]
    for index, line in enumerate(opening):
        # sentences break across lines
        text = " ".join(part.text for part in opening[index : index + 2])
        match = _STATEMENT.search(text)
        if match and _STATEMENT_WORD.search(match.group()) and not _BOILERPLATE.search(text):
            return _privilege("The document says of itself that it is privileged.", 0.8, line.page)
    return None


def side_conflict(
    reading: Reading, *, kind: DocumentType, parties: tuple[Party, ...], our_side: Iterable[str]
) -> Concern | None:
    """Whether those the firm acts for stand on the other side of this document, or on both.

    Without names of our side only what the text itself says can be seen: one counsel for both sides.
    """
    ours = tuple(filter(None, map(folded, our_side)))
    page = reading.lines[0].page if reading.lines else 1
    opposed = [party for party in parties if party.side and party.role is not PartyRole.COUNSEL]
    sides = {party.side for party in opposed if _is_ours(party.name, ours)}
    if sides == {1, 2}:
        return _conflict("The firm acts for parties on both sides of this document.", 0.95, page)
    for name, at in _adverse_names(reading):
        if _is_ours(name, ours):
            return _conflict("A party for whom the firm acts is named as the other side.", 0.9, at)
    if kind in _AGREEMENTS and sides == {2}:
        return _conflict("The counterparty of this agreement is a party for whom the firm acts.", 0.7, page)
    if _acts_for_the_other(reading.head.replace("\n", " "), opposed):
        return _conflict("One side of this document is said to act for the other.", 0.75, page)
    counsel: dict[str, set[int]] = {}
    for party in parties:
        if party.role is PartyRole.COUNSEL and party.side:
            counsel.setdefault(folded(party.name), set()).add(party.side)
    if any(of == {1, 2} for of in counsel.values()):
        return _conflict("The same counsel appears for both sides of this document.", 0.75, page)
    return None


def _is_marking(line: Line) -> bool:
    match = _MARKING.match(line.text)
    if match is None or len(line.text) > _MARKING_LENGTH or _BOILERPLATE.search(line.text):
        return False
    # "Privileged access to the server room was given …" is a sentence, not a marking
    rest = line.text[match.end() :].strip()
    return len(rest) <= 60 and not rest[:1].islower()


def _adverse_names(reading: Reading) -> list[tuple[str, int]]:
    named = [(match["name"], line.page) for line in reading.lines[:400] if (match := _ADVERSE.match(line.text))]
    head = reading.head.replace("\n", " ")
    page = reading.lines[0].page if reading.lines else 1
    for match in _COUNTERPARTY.finditer(head):
        before = head[max(0, match.start() - _NEARBY) : match.start()]
        # the party just before its alias, not the one before that
        named.append((re.split(r"\)|;|\band\b|\bbetween\b", before)[-1], page))
    return named


def _acts_for_the_other(head: str, opposed: list[Party]) -> bool:
    for match in _ACTS.finditer(head):
        before = folded(re.split(r"[.;] ", head[max(0, match.start() - _NEARBY) : match.start()])[-1])
        after = folded(head[match.end() : match.end() + _NEARBY].partition(";")[0])
        who = {party.side for party in opposed if folded(party.name) in before}
        whom = {party.side for party in opposed if folded(party.name) in after}
        if who and whom and who != whom:
            return True
    return False


def _is_ours(name: str, ours: tuple[str, ...]) -> bool:
    """Whether a name is one of ours; a longer form of it counts, a shorter one only when it is several words."""
    plain = folded(name)
    if not plain:
        return False
    return any(
        plain == own or f" {own} " in f" {plain} " or (" " in plain and f" {plain} " in f" {own} ") for own in ours
    )


def _privilege(note: str, confidence: float, page: int) -> Concern:
    return Concern(kind=ConcernKind.PRIVILEGE_SUSPICION, note=note, confidence=confidence, page=page)


def _conflict(note: str, confidence: float, page: int) -> Concern:
    return Concern(kind=ConcernKind.SIDE_CONFLICT, note=note, confidence=confidence, page=page)
