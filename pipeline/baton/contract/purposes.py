"""What a run is for, and the schema of the result that each purpose yields."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Purpose(StrEnum):
    """What an agent is asked to do with a document."""

    CLASSIFY = "classify"
    CARD = "card"
    SECTIONS = "sections"
    BRIEF = "brief"


class SchemaName(StrEnum):
    """The versioned name of a result. A change that an old reader would misread gets a new name."""

    CLASSIFICATION_V1 = "registrar.classification.v1"
    CARD_V1 = "document.card.v1"
    SECTIONS_V1 = "document.sections.v1"
    BRIEF_V1 = "document.brief.v1"


SCHEMA_OF: Final[Mapping[Purpose, SchemaName]] = MappingProxyType(
    {
        Purpose.CLASSIFY: SchemaName.CLASSIFICATION_V1,
        Purpose.CARD: SchemaName.CARD_V1,
        Purpose.SECTIONS: SchemaName.SECTIONS_V1,
        Purpose.BRIEF: SchemaName.BRIEF_V1,
    }
)
"""The schema that a run of each purpose is asked to deliver."""
