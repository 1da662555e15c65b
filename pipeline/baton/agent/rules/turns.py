"""The turn of a classification, put together from what the other rules found."""

from typing import Final

from baton.agent.rules import concerns, dates, kinds, links, parties, tags, titles
from baton.agent.rules.reading import Reading
from baton.contract.classification import (
    AddDate,
    AddParty,
    AddTag,
    Concern,
    ConcernKind,
    Intent,
    LinkDocument,
    LinkTarget,
    Outcome,
    SetName,
    SetType,
    Turn,
    Verdict,
    intent_key,
)
from baton.contract.invocations import InvocationContext

_NO_TEXT: Final = "No text could be read in this document."


def turn_for(reading: Reading, *, context: InvocationContext) -> Turn:
    """The one effect of `registrar.classification.v1`."""
    kind = kinds.kind_of(reading, file_name=context.file_name)
    people = parties.parties_in(reading)
    name, name_confidence = titles.title_of(reading, kind=kind, parties=people, file_name=context.file_name)
    raised = concerns.concerns_of(reading, kind=kind.type, parties=people, our_side=context.our_side)
    if not reading.lines:
        raised = (Concern(kind=ConcernKind.ILLEGIBLE, note=_NO_TEXT, confidence=1.0),)
    intents: list[Intent] = [
        SetName(key=intent_key("set_name"), confidence=name_confidence, name=name),
        SetType(key=intent_key("set_type"), confidence=kind.confidence, document_type=kind.type),
    ]
    intents += [
        AddTag(key=intent_key("add_tag", tag), confidence=confidence, tag=tag)
        for tag, confidence in tags.tags_of(reading)
    ]
    intents += [
        AddParty(
            key=intent_key("add_party", party.name, party.role),
            confidence=party.confidence,
            name=party.name,
            role=party.role,
        )
        for party in people
    ]
    intents += [
        AddDate(
            key=intent_key("add_date", day.day.isoformat(), day.meaning),
            confidence=day.confidence,
            day=day.day,
            meaning=day.meaning,
        )
        for day in dates.days_in(reading)
    ]
    intents += [
        LinkDocument(
            key=intent_key("link_document", link.by, link.value),
            confidence=link.confidence,
            target=LinkTarget(by=link.by, value=link.value),
            relation=link.relation,
        )
        for link in links.links_in(reading, candidates=context.candidates, own_name=context.file_name)
    ]
    # two findings may fold to one key: the first, more trusted one stays
    distinct = {intent.key: intent for intent in reversed(intents)}
    return Turn(intents=tuple(reversed(distinct.values())), verdict=_verdict(raised), concerns=raised)


def _verdict(raised: tuple[Concern, ...]) -> Verdict:
    if raised:
        return Verdict(outcome=Outcome.NEEDS_REVIEW, note=raised[0].note)
    return Verdict(outcome=Outcome.REGISTERED)
