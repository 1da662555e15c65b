"""The registry: which applier opens the letters of which result schema. A new schema lands here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from baton.contract.artifacts import parse_effects
from baton.contract.errors import UnknownEffect
from baton.contract.purposes import SCHEMA_OF, Purpose, SchemaName
from baton.record.aspects import Aspect
from baton.record.classification import apply_classification
from baton.record.deliveries import Delivery
from baton.record.letters import Applier, Letter
from baton.record.understanding import apply_part

APPLIERS: Final[Mapping[SchemaName, Applier]] = MappingProxyType(
    {
        SchemaName.CLASSIFICATION_V1: apply_classification,
        SchemaName.CARD_V1: apply_part,
        SchemaName.SECTIONS_V1: apply_part,
        SchemaName.BRIEF_V1: apply_part,
    }
)


def open_letter(aspect: Aspect, delivery: Delivery, *, data: list[object]) -> tuple[Applier, Letter]:
    """Find the applier, and read the stored effects by their schema again: another version may have verified them.

    :raises EffectError: a schema, effect or version that this program does not know, or one that is not for the
        run's purpose.
    """
    try:
        schema = SchemaName(delivery.result_schema)
    except ValueError:
        raise UnknownEffect("result_schema: not known") from None
    if schema is not SCHEMA_OF[Purpose(delivery.purpose.value)]:
        raise UnknownEffect("result_schema: not that of the purpose")
    (effect,) = parse_effects(data, schema=schema)
    return APPLIERS[schema], Letter(aspect=aspect, delivery=delivery, effect=effect)
