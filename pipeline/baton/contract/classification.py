"""The result `registrar.classification.v1`: one turn of intents, concerns and a verdict.

An intent says what the agent would do with the tools of the Record; whether it is applied, proposed or dropped is
decided by the firm's policy.
"""

import hashlib
import unicodedata
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from baton.contract import limits
from baton.contract.model import ContractModel
from baton.contract.wording import Label, Name, Note

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""How sure the agent is, 0 to 1."""

PageNumber = Annotated[int, Field(ge=1, le=limits.MAX_PAGE_NUMBER)]

IntentKey = Annotated[str, StringConstraints(max_length=limits.MAX_KEY, pattern=r"^[a-z0-9][a-z0-9._:-]*$")]
"""Names one intent within the pass: the same finding in the same text has the same key in every attempt."""


class DocumentType(StrEnum):
    """What a document is."""

    COMPLAINT = "complaint"
    ANSWER = "answer"
    MOTION = "motion"
    COURT_ORDER = "court_order"
    JUDGMENT = "judgment"
    AFFIDAVIT = "affidavit"
    WITNESS_STATEMENT = "witness_statement"
    EXPERT_REPORT = "expert_report"
    CONTRACT = "contract"
    AMENDMENT = "amendment"
    POWER_OF_ATTORNEY = "power_of_attorney"
    LETTER = "letter"
    EMAIL = "email"
    NOTICE = "notice"
    MEMORANDUM = "memorandum"
    MINUTES = "minutes"
    INVOICE = "invoice"
    RECEIPT = "receipt"
    STATUTE = "statute"
    REPORT = "report"
    OTHER = "other"


class PartyRole(StrEnum):
    """What somebody is in a document."""

    CLAIMANT = "claimant"
    DEFENDANT = "defendant"
    APPELLANT = "appellant"
    RESPONDENT = "respondent"
    CONTRACTING_PARTY = "contracting_party"
    SENDER = "sender"
    RECIPIENT = "recipient"
    WITNESS = "witness"
    COUNSEL = "counsel"
    OTHER = "other"


class DateMeaning(StrEnum):
    """What a date in a document stands for."""

    DOCUMENT = "document"
    EFFECTIVE = "effective"
    FILED = "filed"
    HEARING = "hearing"
    DUE = "due"
    MENTIONED = "mentioned"


class LinkBy(StrEnum):
    """How the target of a link is named."""

    NAME = "name"
    """By its name or file name."""
    REFERENCE = "reference"
    """By a number that people use for it."""


class LinkRelation(StrEnum):
    """How a document is related to the one it names."""

    REFERS_TO = "refers_to"
    REPLIES_TO = "replies_to"
    AMENDS = "amends"
    ATTACHES = "attaches"


class LinkTarget(ContractModel):
    """The other document, as the text names it; never by an id."""

    by: LinkBy
    value: Name


class _Intent(ContractModel):
    key: IntentKey
    confidence: Confidence


class SetName(_Intent):
    """Give the document a name."""

    tool: Literal["set_name"] = "set_name"
    name: Name


class SetType(_Intent):
    """Say what the document is."""

    tool: Literal["set_type"] = "set_type"
    document_type: DocumentType


class AddTag(_Intent):
    """Put a tag on the document."""

    tool: Literal["add_tag"] = "add_tag"
    tag: Label


class AddParty(_Intent):
    """Name somebody who takes part in the document."""

    tool: Literal["add_party"] = "add_party"
    name: Name
    role: PartyRole


class AddDate(_Intent):
    """Name a day (ISO 8601) that the document speaks of."""

    tool: Literal["add_date"] = "add_date"
    day: date
    meaning: DateMeaning


class LinkDocument(_Intent):
    """Link the document to another of the same matter."""

    tool: Literal["link_document"] = "link_document"
    target: LinkTarget
    relation: LinkRelation


Intent = Annotated[SetName | SetType | AddTag | AddParty | AddDate | LinkDocument, Field(discriminator="tool")]


class ConcernKind(StrEnum):
    """Why a lawyer should look."""

    SIDE_CONFLICT = "side_conflict"
    PRIVILEGE_SUSPICION = "privilege_suspicion"
    WRONG_MATTER = "wrong_matter"
    ILLEGIBLE = "illegible"
    OTHER = "other"


class Concern(ContractModel):
    """Something that a lawyer must look at; `note` is shown as it stands."""

    kind: ConcernKind
    note: Note
    confidence: Confidence
    page: PageNumber | None = None


class Outcome(StrEnum):
    """What the agent thinks of the registration as a whole."""

    REGISTERED = "registered"
    NEEDS_REVIEW = "needs_review"


class Verdict(ContractModel):
    """The outcome, with a note for the lawyer, which `needs_review` must have."""

    outcome: Outcome
    note: Note | None = None

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if self.outcome is Outcome.NEEDS_REVIEW and self.note is None:
            raise ValueError("needs_review without a note")
        return self


class Turn(ContractModel):
    """The one effect of a classification. Intent keys are unique in it, and so are the kinds of concern."""

    kind: Literal["turn"] = "turn"
    intents: tuple[Intent, ...] = Field(max_length=limits.MAX_INTENTS)
    verdict: Verdict
    concerns: tuple[Concern, ...] = Field(default=(), max_length=limits.MAX_CONCERNS)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({intent.key for intent in self.intents}) != len(self.intents):
            raise ValueError("two intents with one key")
        if len({concern.kind for concern in self.concerns}) != len(self.concerns):
            raise ValueError("two concerns of one kind")
        return self


def intent_key(tool: str, *parts: str) -> str:
    """The key of an intent: the tool alone, or with a hash of what it is about.

    Case, width and blanks of the parts make no difference.
    """
    if not parts:
        return tool
    folded = "\x1f".join(" ".join(unicodedata.normalize("NFKC", part).casefold().split()) for part in parts)
    return f"{tool}:{hashlib.sha256(folded.encode()).hexdigest()[:16]}"
