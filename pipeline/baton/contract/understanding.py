"""The results that describe a document: `document.card.v1`, `document.sections.v1`, `document.brief.v1`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from baton.contract import limits
from baton.contract.classification import DocumentType, PageNumber
from baton.contract.model import ContractModel
from baton.contract.wording import Label, Name, Point, Summary


class Fact(ContractModel):
    """One line of a card."""

    label: Label
    value: Name
    page: PageNumber | None = None


class Card(ContractModel):
    """What fits on one screen: the facts a lawyer asks for first."""

    kind: Literal["card"] = "card"
    headline: Name
    document_type: DocumentType
    facts: tuple[Fact, ...] = Field(max_length=limits.MAX_FACTS)


class Section(ContractModel):
    """A heading and the pages under it, both ends included."""

    heading: Name
    level: Annotated[int, Field(ge=1, le=6)] = 1
    first_page: PageNumber
    last_page: PageNumber

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.last_page < self.first_page:
            raise ValueError("a section that ends before it begins")
        return self


class Sections(ContractModel):
    """The headings of a document in reading order; none is a valid answer."""

    kind: Literal["sections"] = "sections"
    sections: tuple[Section, ...] = Field(max_length=limits.MAX_SECTIONS)


class BriefPoint(ContractModel):
    """One statement of a brief, and where it is found."""

    text: Point
    page: PageNumber | None = None


class Brief(ContractModel):
    """A short account of the document."""

    kind: Literal["brief"] = "brief"
    summary: Summary
    points: tuple[BriefPoint, ...] = Field(default=(), max_length=limits.MAX_POINTS)
