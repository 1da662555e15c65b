# ruff: noqa: RUF001 - Greek, Cyrillic and typographic characters are what these patterns look for
"""The card: what fits on one screen."""

import re
from typing import Final

from baton.agent.rules import dates, kinds, parties, titles
from baton.agent.rules.reading import Reading
from baton.contract.classification import DateMeaning, PartyRole
from baton.contract.invocations import InvocationContext
from baton.contract.understanding import Card, Fact
from baton.contract.wording import clean_line

_LINES: Final = 400
_REFERENCES: Final = (
    (
        "Case number",
        re.compile(
            r"\b(?:case|suit|claim|cause|docket|civil action|дело|υπόθεση)\s*(?:no\.?|number|№|αρ\.?)\s*[:.]?\s*(?P<value>[\w/.-]*\d[\w/.-]*)",
            re.IGNORECASE,
        ),
    ),
    (
        "Invoice number",
        re.compile(r"\binvoice\s*(?:no\.?|number|#)\s*[:.]?\s*(?P<value>[\w/-]*\d[\w/-]*)", re.IGNORECASE),
    ),
    (
        "Contract number",
        re.compile(
            r"\b(?:contract|agreement|договор)\s*(?:no\.?|number|№)\s*[:.]?\s*(?P<value>[\w/-]*\d[\w/-]*)",
            re.IGNORECASE,
        ),
    ),
    ("Our reference", re.compile(r"^(?:our )?ref(?:erence)?\s*[:.]\s*(?P<value>[\w/ -]*\d[\w/-]*)", re.IGNORECASE)),
    (
        "Court",
        re.compile(r"^(?:in the )?(?P<value>[\w ,'()-]{0,60}(?:court|tribunal)\b[\w ,'()-]{0,80})$", re.IGNORECASE),
    ),
    (
        "Governing law",
        re.compile(
            r"\bgoverned by (?:and construed in accordance with )?(?:the )?laws? of (?P<value>[\w ]{3,40}?)(?=[,.;]| and |$)",
            re.IGNORECASE,
        ),
    ),
)
_AMOUNT: Final = re.compile(
    r"(?P<sign>[$€£₹]|\b(?:USD|EUR|GBP|INR|CHF|Rs\.?)(?=[ \d]))\s?(?P<number>\d{1,3}(?:,\d{2,3})+(?:\.\d{1,2})?|\d+(?:\.\d{1,2})?)(?P<scale>\s(?:million|billion|lakh|crore))?",
    re.IGNORECASE,
)
_SCALES: Final = {"": 1, "million": 10**6, "billion": 10**9, "lakh": 10**5, "crore": 10**7}
_ROLES: Final = {
    PartyRole.CONTRACTING_PARTY: "Party",
    PartyRole.SENDER: "From",
    PartyRole.RECIPIENT: "To",
}


def card_for(reading: Reading, *, context: InvocationContext) -> Card:
    """The one effect of `document.card.v1`."""
    kind = kinds.kind_of(reading, file_name=context.file_name)
    people = parties.parties_in(reading)
    headline, _confidence = titles.title_of(reading, kind=kind, parties=people, file_name=context.file_name)
    facts = [Fact(label="Type", value=kind.type.replace("_", " ").capitalize())]
    day = dates.document_day(days := dates.days_in(reading))
    if day:
        facts.append(Fact(label="Date", value=day.day.isoformat(), page=day.page))
    facts += [
        Fact(label=_ROLES.get(party.role, party.role.replace("_", " ").capitalize()), value=party.name, page=party.page)
        for party in people[:6]
    ]
    facts += _references(reading)
    facts += [
        Fact(label=f"{other.meaning.capitalize()} date", value=other.day.isoformat(), page=other.page)
        for other in days
        if other is not day and other.meaning in {DateMeaning.HEARING, DateMeaning.DUE, DateMeaning.EFFECTIVE}
    ][:4]
    facts += _amounts(reading)
    facts.append(Fact(label="Pages", value=str(context.page_count or reading.page_count)))
    return Card(headline=headline, document_type=kind.type, facts=tuple(facts))


def _references(reading: Reading) -> list[Fact]:
    found: dict[str, Fact] = {}
    for line in reading.lines[:_LINES]:
        for label, pattern in _REFERENCES:
            if label not in found and (match := pattern.search(line.text)):
                value = clean_line(match["value"], limit=120).strip(" .,;:")
                if value:
                    found[label] = Fact(label=label, value=value, page=line.page)
    return list(found.values())


def _amounts(reading: Reading) -> list[Fact]:
    """The three largest sums; currencies are not compared, only their figures."""
    found: dict[str, tuple[float, Fact]] = {}
    for line in reading.lines:
        for match in _AMOUNT.finditer(line.text):
            scale = (match["scale"] or "").strip()
            size = float(match["number"].replace(",", "")) * _SCALES[scale.lower()]
            value = clean_line(match.group(), limit=60)
            found.setdefault(value, (size, Fact(label="Amount", value=value, page=line.page)))
    ranked = sorted(found.values(), key=lambda entry: -entry[0])
    return [fact for size, fact in ranked[:3] if size > 0]
