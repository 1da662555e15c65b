# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""What a document is, from the words that only such documents have."""

import re
from dataclasses import dataclass
from typing import Final

from baton.agent.rules.reading import Reading, is_shouted
from baton.contract.classification import DocumentType

_T = DocumentType

# Titles: what a document calls itself near its top, in English, Greek, Russian and Hindi. Where two begin at the same
# word the earlier in the table holds, so the greedy ones stand last.
_TITLES: Final[tuple[tuple[DocumentType, str], ...]] = (
    (_T.POWER_OF_ATTORNEY, r"power of attorney|vakalatnama|πληρεξο[υύ]σιο|доверенность|मुख्तारनामा"),
    (_T.WITNESS_STATEMENT, r"witness statement|statement of (?:mr|mrs|ms|dr)\b"),
    (_T.EXPERT_REPORT, r"expert(?:'s)? report|expert opinion|report of (?:the )?expert|заключение эксперта"),
    (_T.AMENDMENT, r"amendment (?:no\.? ?\d+|agreement|to)|amending agreement|addendum|deed of variation"),
    (
        _T.AFFIDAVIT,
        r"affidavit|statutory declaration|sworn declaration|[εέ]νορκη βεβα[ιί]ωση|аффидевит|शपथ ?-?पत्र|हलफ़?नामा",
    ),
    (
        _T.ANSWER,
        r"answer (?:to|and)|statement of defen[cs]e|written statement|defen[cs]e and counterclaim|отзыв на иск|जवाबदावा",
    ),
    (
        _T.COMPLAINT,
        (
            r"complaint|statement of claim|particulars of claim|plaint|petition|claim form|αγωγ[ηή]|исковое заявление"
            r"|वाद ?-?पत्र|याचिका"
        ),
    ),
    (_T.MOTION, r"(?:notice of )?motion|application (?:for|to)|interlocutory application|ходатайство"),
    (_T.JUDGMENT, r"judge?ment|opinion of the court|decree|απ[οό]φαση|решение суда|निर्णय"),
    (
        _T.COURT_ORDER,
        (
            r"(?:court |consent |interim |procedural |case management |scheduling )?order(?! form)(?! no)"
            r"|injunction|διαταγ[ηή]|определение|आदेश"
        ),
    ),
    (
        _T.INVOICE,
        r"(?:tax |commercial |pro ?forma )?invoice|bill of costs|fee note|τιμολ[οό]γιο|сч[её]т(?:-фактура)?|चालान|बीजक",
    ),
    (_T.RECEIPT, r"receipt|απ[οό]δειξη|квитанция|रसीद"),
    (_T.MINUTES, r"minutes|πρακτικ[αά]|протокол|कार्यवृत्त"),
    (_T.MEMORANDUM, r"memorandum(?! of (?:understanding|agreement))|memo|υπ[οό]μνημα|служебная записка|ज्ञापन"),
    (
        _T.NOTICE,
        r"(?:legal |statutory |formal )?notice|letter before (?:action|claim)|ειδοπο[ιί]ηση|εξ[ωώ]δικη|уведомление|सूचना|नोटिस",
    ),
    (_T.REPORT, r"(?:annual |inspection |survey |audit |progress |incident )?report|[εέ]κθεση|отч[её]т|रिपोर्ट"),
    (
        _T.STATUTE,
        r"(?:the )?[\w ,()-]*\bact,? (?:of )?\d{4}|an act to\b|regulations? \d{4}|ν[οό]μος|федеральный закон|अधिनियम",
    ),
    (
        _T.CONTRACT,
        (
            r"(?:[\w-]+ )*(?:agreement|contract)|memorandum of (?:understanding|agreement)|lease|deed|terms and conditions"
            r"|σ[υύ]μβαση|συμφωνητικ[οό]|договор|контракт|соглашение|अनुबंध|करार(?:नामा)?|समझौता"
        ),
    ),
)

# Phrases: what such a document says, wherever it calls itself something else.
_PHRASES: Final[tuple[tuple[DocumentType, float, str], ...]] = (
    (_T.EMAIL, 3.0, r"^(?:from|von|от|प्रेषक)\s*:.*@"),
    (_T.EMAIL, 2.0, r"^(?:sent|subject|тема|θ[εέ]μα|विषय)\s*:"),
    (_T.LETTER, 2.0, r"^(?:dear (?:sir|madam|mr|mrs|ms|dr|[A-Z])|to whom it may concern)"),
    (_T.LETTER, 2.0, r"^(?:yours (?:sincerely|faithfully|truly)|(?:kind |best )?regards|sincerely)\b"),
    (_T.LETTER, 3.0, r"^(?:αξι[οό]τιμ|με εκτ[ιί]μηση|уважаем|с уважением|प्रिय|महोदय|भवदीय)"),
    (
        _T.CONTRACT,
        3.0,
        r"\b(?:this|the present) (?:[\w-]+ ){0,4}(?:agreement|contract|lease|deed) (?:is|was)? ?(?:made|entered|dated)",
    ),
    (_T.CONTRACT, 1.5, r"\b(?:whereas|now,? therefore|in witness whereof|hereinafter (?:referred to|called))\b"),
    (_T.CONTRACT, 1.0, r"\b(?:governing law|entire agreement|the parties (?:hereto )?agree)\b"),
    (
        _T.COMPLAINT,
        2.0,
        r"\b(?:cause of action|prayer for relief|plaintiff (?:alleges|claims|demands)|jury trial demanded)\b",
    ),
    (_T.COURT_ORDER, 3.0, r"\bit is (?:hereby |further |so )?(?:ordered|adjudged|directed)\b"),
    (_T.COURT_ORDER, 1.5, r"\b(?:so ordered|upon hearing (?:counsel|the parties))\b"),
    (_T.JUDGMENT, 2.0, r"\b(?:judgment is entered|the appeal is (?:allowed|dismissed)|delivered (?:the )?judgment)\b"),
    (
        _T.AFFIDAVIT,
        3.0,
        r"\b(?:being (?:first )?duly sworn|solemnly (?:affirm|declare)|make oath|sworn (?:to )?before me)\b",
    ),
    (_T.WITNESS_STATEMENT, 2.0, r"\bi believe that the facts stated in this (?:witness )?statement\b"),
    (_T.INVOICE, 2.0, r"\b(?:invoice (?:no|number|date)|amount due|total due|payment terms|vat (?:no|number|id))\b"),
    (
        _T.MINUTES,
        2.0,
        r"\b(?:minutes of (?:the|a)|apologies for absence|the meeting (?:was )?(?:opened|closed|adjourned)|resolved that)\b",
    ),
    (_T.MINUTES, 1.0, r"^(?:present|in attendance|attendees|apologies)\s*:"),
    (_T.STATUTE, 3.0, r"\b(?:be it enacted|short title(?: and| ,)? (?:commencement|extent)|this act may be cited)\b"),
    (_T.NOTICE, 2.0, r"\b(?:notice is hereby given|you are hereby (?:notified|called upon|required)|take notice)\b"),
    (
        _T.MOTION,
        2.0,
        r"\b(?:moves (?:this|the) (?:honou?rable )?court|in support of (?:its|his|her|their|the) motion)\b",
    ),
    (
        _T.EXPERT_REPORT,
        1.5,
        r"\b(?:my duty (?:is )?to (?:assist )?the court|i have been instructed (?:as an expert|to (?:give|provide) an opinion))\b",
    ),
    (_T.RECEIPT, 1.5, r"\breceived with thanks\b"),
)

# In a title everything before it counts as part of the line: `Amended Complaint`, `First Affidavit of …`.
_TITLE_PATTERNS: Final = tuple(
    (kind, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)) for kind, pattern in _TITLES
)
_PHRASE_PATTERNS: Final = tuple(
    (kind, weight, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for kind, weight, pattern in _PHRASES
)
_TITLE_LENGTH: Final = 120
_ENOUGH: Final = 6.0


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a document, how sure, and the line that named it, if one did."""

    type: DocumentType
    confidence: float
    title_line: str | None


def kind_of(reading: Reading, *, file_name: str | None) -> Kind:
    """The best-supported type; `other` with a low confidence where nothing speaks for any."""
    scores: dict[DocumentType, float] = {}
    titles: dict[DocumentType, str] = {}
    for index, line in enumerate(reading.top[:25]):
        if len(line.text) > _TITLE_LENGTH:
            continue
        named = title_kind(line.text)
        if named is None:
            continue
        weight = _title_weight(line.text, index=index)
        if weight > scores.get(named, 0.0):
            scores[named] = weight
            titles[named] = line.text
    head = reading.head
    for kind, weight, pattern in _PHRASE_PATTERNS:
        if pattern.search(head):
            scores[kind] = scores.get(kind, 0.0) + weight
    for kind, weight in _by_file_name(file_name):
        scores[kind] = scores.get(kind, 0.0) + weight
    if not scores:
        return Kind(DocumentType.OTHER, 0.3, None)
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    best, score = ranked[0]
    rival = ranked[1][1] if len(ranked) > 1 else 0.0
    sure = 0.45 + 0.35 * min(score / _ENOUGH, 1.0) + 0.18 * (score - rival) / score
    return Kind(best, round(min(sure, 0.98), 2), titles.get(best))


def title_kind(line: str) -> DocumentType | None:
    """The type that a line names first: a `Motion for an Order` is a motion. Of equals, the rarer one."""
    found = [
        (match.start(), order, kind)
        for order, (kind, pattern) in enumerate(_TITLE_PATTERNS)
        if (match := pattern.search(line))
    ]
    return min(found)[2] if found else None


def _title_weight(line: str, *, index: int) -> float:
    if is_shouted(line):
        weight = 4.0
    elif line[-1] not in ".,;:" and len(line) <= 70 and not line[0].islower():
        weight = 3.0
    else:
        weight = 0.8
    # the longer line names it better: `REPORT`, and under it `Inspection report on …`
    return weight - 0.05 * index - (1.2 if " " not in line else 0.0)


def _by_file_name(file_name: str | None) -> list[tuple[DocumentType, float]]:
    if not file_name:
        return []
    stem, _dot, extension = file_name.lower().rpartition(".")
    found = [(DocumentType.EMAIL, 4.0)] if extension in {"eml", "msg"} else []
    named = title_kind(re.sub(r"[_\W]+", " ", stem or file_name))
    return [*found, (named, 1.0)] if named else found
