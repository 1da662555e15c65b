"""From an agent's intents to assertions of the Record: what each becomes, and why. Pure calculation."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from uuid import UUID

from baton.contract.classification import AddDate, AddParty, AddTag, Intent, LinkDocument, SetName, SetType
from baton.record.firm_policy import Decision, Kind, Rule

#: Kinds of which a document has one value at a time.
SINGLE: Final = frozenset({Kind.NAME, Kind.TYPE})

#: The member of ``detail`` that makes two assertions of one value different ones.
QUALIFIER: Final[Mapping[Kind, str]] = {Kind.PARTY: "role", Kind.DATE: "meaning", Kind.LINK: "relation"}


class State(StrEnum):
    """What an assertion begins as."""

    APPLIED = "applied"
    PROPOSED = "proposed"
    DENIED = "denied"


class Reason(StrEnum):
    """Why an assertion was not applied; kept in its ``detail`` for the person who decides."""

    POLICY = "policy"
    CONFIDENCE = "confidence"
    ALREADY_SET = "already_set"
    DECLINED_BEFORE = "declined_before"
    TARGET_UNKNOWN = "target_unknown"
    TARGET_AMBIGUOUS = "target_ambiguous"


Identity = tuple[Kind, str, str]
"""Kind, folded value (or a link's target), qualifier: two assertions with one identity say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An intent in the Record's terms, before policy. ``unresolved`` says why a link has no target."""

    key: str
    kind: Kind
    value: str
    confidence: float
    detail: Mapping[str, str] = field(default_factory=dict)
    target: UUID | None = None
    unresolved: Reason | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What a draft becomes."""

    draft: Draft
    state: State
    reason: Reason | None = None


@dataclass(slots=True)
class Standing:
    """What already stands for the document; what a turn applies is added as it goes."""

    held: set[Identity] = field(default_factory=set)
    declined: set[Identity] = field(default_factory=set)
    single: set[Kind] = field(default_factory=set)
    """Kinds of :data:`SINGLE` with a value that this turn may not replace: a person's, or one of the same pass."""


def fold(value: str) -> str:
    """A value without what makes no difference: case, width, blanks."""
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def identities(kind: Kind, value: str, *, detail: Mapping[str, str], target: UUID | None) -> frozenset[Identity]:
    """Every identity of an assertion; a resolved link is known by its words and by its target."""
    qualifier = detail.get(QUALIFIER.get(kind, ""), "")
    known = {(kind, fold(value), qualifier)}
    if target is not None:
        known.add((kind, str(target), qualifier))
    return frozenset(known)


def draft_of(intent: Intent, *, target: UUID | None = None, unresolved: Reason | None = None) -> Draft:
    """Say an intent in the Record's terms.

    :param target: of a link, where its words lead to exactly one document.
    :param unresolved: of a link, why they do not.
    """
    kind, value, detail = _terms(intent)
    return Draft(
        key=intent.key,
        kind=kind,
        value=value,
        confidence=intent.confidence,
        detail=detail,
        target=target,
        unresolved=unresolved,
    )


def decide(draft: Draft, *, rule: Rule, standing: Standing) -> Decided | None:
    """What a draft becomes under the firm's rule; ``None`` where it says what stands already.

    A person's word goes before the agent's: what was declined is not asked again, and a value that somebody accepted
    is not replaced.
    """
    known = identities(draft.kind, draft.value, detail=draft.detail, target=draft.target)
    if known & standing.held:
        return None
    if known & standing.declined:
        return Decided(draft, State.DENIED, Reason.DECLINED_BEFORE)
    if rule.decision is Decision.DENY:
        return Decided(draft, State.DENIED, Reason.POLICY)
    decided = Decided(draft, State.APPLIED)
    if draft.unresolved is not None:
        decided = Decided(draft, State.PROPOSED, draft.unresolved)
    elif rule.decision is Decision.PROPOSE:
        decided = Decided(draft, State.PROPOSED, Reason.POLICY)
    elif draft.confidence < rule.confidence_floor:
        decided = Decided(draft, State.PROPOSED, Reason.CONFIDENCE)
    elif draft.kind in standing.single:
        decided = Decided(draft, State.PROPOSED, Reason.ALREADY_SET)
    standing.held |= known
    if decided.state is State.APPLIED and draft.kind in SINGLE:
        standing.single.add(draft.kind)
    return decided


def _terms(intent: Intent) -> tuple[Kind, str, dict[str, str]]:
    match intent:
        case SetName():
            return Kind.NAME, intent.name, {}
        case SetType():
            return Kind.TYPE, intent.document_type.value, {}
        case AddTag():
            return Kind.TAG, intent.tag, {}
        case AddParty():
            return Kind.PARTY, intent.name, {"role": intent.role.value}
        case AddDate():
            return Kind.DATE, intent.day.isoformat(), {"meaning": intent.meaning.value}
        case LinkDocument():
            return Kind.LINK, intent.target.value, {"by": intent.target.by.value, "relation": intent.relation.value}
