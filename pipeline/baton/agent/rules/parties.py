# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""Who takes part in a document: captions, contracting parties, senders and recipients, counsel, witnesses."""

import re
from dataclasses import dataclass
from typing import Final

from baton.agent.rules.reading import Reading
from baton.contract.classification import PartyRole
from baton.contract.wording import clean_line

MAX_PARTIES: Final = 20

_R = PartyRole

_ROLE_WORDS: Final[tuple[tuple[PartyRole, str], ...]] = (
    (_R.CLAIMANT, r"plaintiffs?|claimants?|petitioners?|applicants?|истец|εν[αά]γων|εν[αά]γουσα|वादी|याचिकाकर्ता"),
    (_R.DEFENDANT, r"defendants?|accused|ответчик|εναγ[οό]μεν(?:ος|η)|प्रतिवादी"),
    (_R.APPELLANT, r"appellants?|अपीलकर्ता"),
    (_R.RESPONDENT, r"respondents?|प्रत्यर्थी"),
)
_HEADER_WORDS: Final[tuple[tuple[PartyRole, str], ...]] = (
    (_R.SENDER, r"from|sender|von|от|απ[οό]|αποστολ[εέ]ας|प्रेषक"),
    (_R.RECIPIENT, r"to|addressee|recipient|bill to|billed to|кому|προς|सेवा में|प्रति"),
)
_ROLE_AFTER: Final = tuple(
    (
        role,
        re.compile(
            rf"^(?P<name>.{{2,120}}?),?\s*(?:\.{{2,}}|…|[-–—])?\s*\(?(?:the )?(?:{words})(?:/\w+)?\)?[.,;:]?$",
            re.IGNORECASE,
        ),
    )
    for role, words in _ROLE_WORDS
)
_ROLE_ALONE: Final = tuple(
    (role, re.compile(rf"^[\s.…–—-]*\(?(?:the )?(?:{words})(?:/\w+)?\)?[.,;:]?$", re.IGNORECASE))
    for role, words in _ROLE_WORDS
)
_ROLE_BEFORE: Final = tuple(
    (role, re.compile(rf"^(?:{words})\s*:\s*(?P<name>.+)$", re.IGNORECASE))
    for role, words in (*_ROLE_WORDS, *_HEADER_WORDS)
)
_COUNSEL: Final = re.compile(
    r"^(?:counsel|attorneys?|solicitors?|advocates?|lawyers?)(?: at law)?,? (?:acting )?for (?:the )?(?P<side>[\w ]{3,60}?)\s*:\s*(?P<name>.+)$"
    r"|^(?P<before>.{3,120}?),? (?:counsel|attorneys?|solicitors?|advocates?|lawyers?),? for (?:the )?(?P<of>[\w ]{3,60}?)[.,]?$",
    re.IGNORECASE,
)
_FILED_BY: Final = re.compile(r"^.*\bby\s+|^(?:upon |after )?hearing\b.*$", re.IGNORECASE)
_VERSUS: Final = re.compile(
    r"^(?P<left>.{2,120}?),?\s+(?:v\.|vs?\.?|versus|-v-|κατ[αά]|против|बनाम)\s+(?P<right>.{2,120})$", re.IGNORECASE
)
# `Re: X v. Y` speaks of a case; it is no caption.
_ABOUT: Final = re.compile(r"^(?:re|ref|subject|see|in|cf)\b", re.IGNORECASE)
_VERSUS_ALONE: Final = re.compile(r"^[-–—( ]*(?:v|vs|versus|against|and|κατ[αά]|против|बनाम)[-–—.) ]*$", re.IGNORECASE)
# The end of a name in running text: its description, its alias, the next party.
_NAME_END: Final = (
    r"(?=\s*(?:[(;\"“”]|,(?! (?:inc|llc|ltd|llp|l\.p|s\.a|plc|corp|co)\b)| a (?:company|corporation|limited|private|public|partnership|firm|body|citizen|resident)"
    r"| an individual| having | whose | with | of \d| residing | incorporated | registered | \(| hereinafter |(?<=\w\w\w)\.\s|\.?$))"
)
_BETWEEN: Final = re.compile(
    r"\bbetween\b[:\s]*(?:(?:\(?[1a]\)|1\.)\s*)?(?P<left>[^\W\d_].{1,118}?)"
    + _NAME_END
    + r".{0,400}?(?:^|[\s,;)])and[:\s]+(?:(?:\(?[2b]\)|2\.)\s*)?(?!its\b|their\b|the (?:other|second)\b)(?P<right>(?-i:[^\W\d_a-z]).{1,118}?)"
    + _NAME_END,
    re.IGNORECASE,
)
_BETWEEN_SHORT: Final = re.compile(
    r"\bbetween (?P<left>[^\W\d_].{1,100}?) and (?P<right>[^\W\d_].{1,118}?)" + _NAME_END, re.IGNORECASE
)
_ELSEWHERE: Final = (
    re.compile(
        r"\bμεταξ[υύ]\s+(?:τ(?:ης|ου|ων)\s+)?(?P<left>.{2,100}?)\s+και\s+(?:τ(?:ης|ου|ων)\s+)?(?P<right>.{2,100}?)(?=[,.;(]|$)",
        re.IGNORECASE,
    ),
    re.compile(r"\bмежду\s+(?P<left>.{2,100}?)\s+и\s+(?P<right>.{2,100}?)(?=[,.;(]|$)", re.IGNORECASE),
    re.compile(
        r"\A.*(?:अनुबंध|करार|करारनामा|समझौता)\s+(?P<left>\S.{1,100}?)\s+(?:और|एवं|तथा)\s+(?P<right>.{2,100}?)\s+के (?:बीच|मध्य)"
    ),
)
_SWORN: Final = re.compile(r"^I,\s+(?P<name>[^\W\d_][^,;]{2,80}),", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"^(?:yours (?:sincerely|faithfully|truly)|(?:kind |best |warm )?regards|sincerely(?: yours)?|с уважением|με εκτ[ιί]μηση|भवदीय)[,.]?$",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"\s*[<\[(]?[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}[>\])]?")
_NOT_NAMES: Final = re.compile(
    r"^(?:the )?(?:parties?|court|date|matter|case|page|one|both|them|him|her|us|you|and|versus|whom .*|"
    + "|".join(words for _role, words in _ROLE_WORDS)
    + r")$",
    re.IGNORECASE,
)

_FORMS: Final = frozenset(
    (
        "ltd",
        "limited",
        "llc",
        "llp",
        "lp",
        "inc",
        "incorporated",
        "corp",
        "corporation",
        "co",
        "company",
        "plc",
        "gmbh",
        "ag",
        "sa",
        "sarl",
        "bv",
        "nv",
        "pvt",
        "private",
        "pte",
        "ооо",
        "оао",
        "ао",
        "αε",
        "επε",
    )
)


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody in a document. `side` groups those who stand together: 1 or 2 where the text opposes two sides, else 0."""

    name: str
    role: PartyRole
    side: int
    confidence: float
    page: int


def parties_in(reading: Reading) -> tuple[Party, ...]:
    """The distinct parties, in the order in which the rules trust their source; at most 20."""
    found: dict[tuple[str, PartyRole, int], Party] = {}
    for party in (*_caption(reading), *_contracting(reading), *_labelled(reading), *_speaking(reading)):
        plain = folded(party.name)
        # `Anna` under a mail from `Anna Alvarez` is nobody new
        if plain and not any(
            f" {plain} " in f" {name} " and (role, side) == (party.role, party.side) for name, role, side in found
        ):
            found[plain, party.role, party.side] = party
    return tuple(found.values())[:MAX_PARTIES]


def folded(name: str) -> str:
    """A name for comparing: no case, no punctuation, no legal form at its end."""
    bare = re.sub(r"[^\w\s]", " ", name.casefold().replace(".", ""))
    words = [word for word in bare.split() if word != "the"]
    while len(words) > 1 and words[-1] in _FORMS:
        words.pop()
    return " ".join(words)


def _caption(reading: Reading) -> list[Party]:
    """`X v. Y` on one line, or names and role words on lines of their own around a lone `v.`."""
    found: list[Party] = []
    lines = reading.top
    for index, line in enumerate(lines):
        if (match := _VERSUS.match(line.text)) and not _ABOUT.match(line.text):
            left, right = _tidy(match["left"]), _tidy(match["right"])
            if left and right and len(line.text) <= 160:
                found += [Party(left, _R.CLAIMANT, 1, 0.85, line.page), Party(right, _R.DEFENDANT, 2, 0.85, line.page)]
        for role, pattern in _ROLE_ALONE:
            if index and pattern.match(line.text):
                name = _tidy(lines[index - 1].text)
                if name and not _VERSUS_ALONE.match(lines[index - 1].text):
                    found.append(Party(name, role, _side(role), 0.9, line.page))
        for role, pattern in _ROLE_AFTER:
            if (
                (match := pattern.match(line.text))
                and (name := _tidy(match["name"]))
                and " for " not in f" {name.lower()} "
            ):
                found.append(Party(name, role, _side(role), 0.9, line.page))
    return found


def _contracting(reading: Reading) -> list[Party]:
    text = reading.head.replace("\n", " ")
    page = reading.lines[0].page if reading.lines else 1
    for pattern in (_BETWEEN, _BETWEEN_SHORT, *_ELSEWHERE):
        match = pattern.search(text)
        if match is None:
            continue
        left, right = _tidy(match["left"]), _tidy(match["right"])
        if left and right:
            return [
                Party(left, _R.CONTRACTING_PARTY, 1, 0.85, page),
                Party(right, _R.CONTRACTING_PARTY, 2, 0.85, page),
            ]
    return []


def _labelled(reading: Reading) -> list[Party]:
    """`From: X`, `Defendant: Y`, `Counsel for the Claimant: Z`."""
    found: list[Party] = []
    for line in reading.lines[:120]:
        if match := _COUNSEL.match(line.text):
            name = _tidy(_FILED_BY.sub("", match["name"] or match["before"] or ""))
            found.append(Party(name, _R.COUNSEL, _side_of_words(match["side"] or match["of"] or ""), 0.85, line.page))
            continue
        for role, pattern in _ROLE_BEFORE:
            if match := pattern.match(line.text):
                found += [
                    Party(_tidy(name), role, _side(role), 0.85, line.page) for name in match["name"].split(";")[:5]
                ]
    return found


def _speaking(reading: Reading) -> list[Party]:
    """Who swears, and who signs a letter."""
    found: list[Party] = []
    for index, line in enumerate(reading.lines[:400]):
        if match := _SWORN.match(line.text):
            found.append(Party(_tidy(match["name"]), _R.WITNESS, 0, 0.85, line.page))
        elif _CLOSING.match(line.text) and index + 1 < len(reading.lines):
            signer = _tidy(reading.lines[index + 1].text)
            if len(signer) <= 80:
                found.append(Party(signer, _R.SENDER, 0, 0.75, line.page))
    return found


def _side(role: PartyRole) -> int:
    return {_R.CLAIMANT: 1, _R.APPELLANT: 1, _R.DEFENDANT: 2, _R.RESPONDENT: 2}.get(role, 0)


def _side_of_words(words: str) -> int:
    for role, pattern in _ROLE_WORDS:
        if re.search(rf"\b(?:{pattern})\b", words, re.IGNORECASE):
            return _side(role)
    return 0


def _tidy(raw: str) -> str:
    """A name without address, quotes, numbering and trailing marks; empty where it is none."""
    name = clean_line(_ADDRESS.sub("", raw), limit=120).strip(" ,;:-–—\"“”'()[]_*")
    if name.startswith("«") and name.find("»") == len(name) - 1:
        name = name.strip("«»")
    if len(name) < 2 or not name[0].isalnum() or sum(map(str.isalpha, name)) < 2 or _NOT_NAMES.match(name):
        # an address that stands alone is better than nobody
        alone = _ADDRESS.search(raw)
        return alone.group().strip(" <>[]()") if alone and not name else ""
    return name
