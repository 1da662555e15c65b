"""What a firm lets an agent do with its Record, per kind of assertion.

A firm's own rows in ``record.firm_policy`` stand before the product's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sqlalchemy import select

from baton.db.connect import Executor
from baton.db.tables import firm_policy


class Kind(StrEnum):
    """What an assertion says about a document."""

    NAME = "name"
    TYPE = "type"
    TAG = "tag"
    PARTY = "party"
    DATE = "date"
    LINK = "link"


class Decision(StrEnum):
    """What becomes of an intent of one kind."""

    APPLY = "apply"
    PROPOSE = "propose"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """The decision for one kind. Below ``confidence_floor`` (0 to 1) an apply becomes a proposal."""

    decision: Decision
    confidence_floor: float


PRODUCT_DEFAULTS: Final[Mapping[Kind, Rule]] = MappingProxyType(
    {
        Kind.NAME: Rule(Decision.APPLY, 0.6),
        Kind.TYPE: Rule(Decision.APPLY, 0.6),
        Kind.TAG: Rule(Decision.APPLY, 0.5),
        Kind.PARTY: Rule(Decision.APPLY, 0.6),
        Kind.DATE: Rule(Decision.APPLY, 0.7),
        # a link changes what is read together with what, so it asks for more
        Kind.LINK: Rule(Decision.APPLY, 0.75),
    }
)


def read_policy(executor: Executor) -> Mapping[Kind, Rule]:
    """The rules of the firm that the transaction acts for, as its member."""
    rows = executor.execute(select(firm_policy.c.kind, firm_policy.c.decision, firm_policy.c.confidence_floor))
    # float4: 0.6 may come as 0.6000000238, and an intent of exactly 0.6 must not fall below it
    own = {Kind(kind): Rule(Decision(decision), round(floor, 6)) for kind, decision, floor in rows}
    return {**PRODUCT_DEFAULTS, **own}
