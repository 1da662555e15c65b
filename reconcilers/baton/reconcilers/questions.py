"""What is given with every question: now, graces, what is known of the lanes; and statuses as literals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Boolean, ColumnElement, DateTime, Interval, bindparam, literal_column

#: One "now" for a whole question, read from the database's clock beforehand.
NOW: ColumnElement[datetime] = bindparam("now", type_=DateTime(timezone=True))


def word(value: str) -> ColumnElement[str]:
    """A status as a literal: as a parameter it would lose its partial index under a generic plan."""
    return literal_column(f"'{value}'")


def among(column: ColumnElement[Any], values: Iterable[str]) -> ColumnElement[bool]:
    """The column has one of these values, which stand as literals."""
    return column.in_([word(value) for value in values])


def grace(name: str) -> ColumnElement[timedelta]:
    """The grace of a discrepancy, given with the question."""
    return bindparam(f"grace_{name}", type_=Interval())


@dataclass(frozen=True, slots=True)
class LaneColumns:
    """What is known of the aspect's lane, given with the question."""

    alive: ColumnElement[bool]
    visibility: ColumnElement[timedelta]
    retention: ColumnElement[timedelta]
    empty_before: ColumnElement[datetime]
    overtaken_before: ColumnElement[datetime]

    @classmethod
    def of(cls, lane: str) -> LaneColumns:
        """The parameters of one lane; :meth:`baton.reconcilers.lanes.LaneState.parameters` has their values."""
        moment = DateTime(timezone=True)
        return cls(
            alive=bindparam(f"{lane}_alive", type_=Boolean()),
            visibility=bindparam(f"{lane}_visibility", type_=Interval()),
            retention=bindparam(f"{lane}_retention", type_=Interval()),
            empty_before=bindparam(f"{lane}_empty_before", type_=moment),
            overtaken_before=bindparam(f"{lane}_overtaken_before", type_=moment),
        )
