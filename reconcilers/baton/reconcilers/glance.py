"""One look at all indexes at once: which of them show anything.

In health none does, and then this one statement is the whole hot scan: a round trip instead of dozens. What it says about
an index is only whether it is worth reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    DateTime,
    ScalarSelect,
    Select,
    Uuid,
    bindparam,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.sql.visitors import replacement_traverse

from baton.db.states import Lane
from baton.reconcilers.candidates import Candidates
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.lanes import NEVER, LaneState

#: The name that a failure is told by.
NAME: Final = "glance"
#: One of the indexes of a discrepancy: its name, and which of its candidates.
Place: TypeAlias = tuple[str, int]

#: Where every index begins, by whether its ids are numbers.
_AFTER: Final = {True: "after_number", False: "after_uuid"}
#: Every index once, with the places that ask it: those differ in their graces at most.
_ASKED: Final[dict[Candidates, list[Place]]] = {}
for _row in DISCREPANCIES.values():
    for _number, _each in enumerate(_row.candidates):
        _ASKED.setdefault(_each, []).append((_row.name, _number))


def showing(
    connection: Connection, *, now: datetime, graces: Mapping[str, timedelta], lanes: Mapping[Lane, LaneState]
) -> frozenset[Place]:
    """The places whose index shows a document that might disagree.

    :param now: by the database's clock.
    """
    answers = connection.execute(question(), values(now=now, graces=graces, lanes=lanes)).scalar_one()
    return frozenset(place for shown, places in zip(answers, _ASKED.values(), strict=True) if shown for place in places)


def values(*, now: datetime, graces: Mapping[str, timedelta], lanes: Mapping[Lane, LaneState]) -> Mapping[str, object]:
    """What :func:`question` is given."""
    horizons = {
        f"horizon_{number}": max(each.bound.horizon(now=now, grace=graces[name], lanes=lanes) for name, _ in places)
        for number, (each, places) in enumerate(_ASKED.items())
    }
    return {**horizons, "after_at": NEVER, _AFTER[True]: 0, _AFTER[False]: UUID(int=0)}


@cache
def question() -> Select[Any]:
    """An answer for each index, in one array; parameters ``horizon_0`` and so on. Each reads one row of its index at most.

    One column, for the driver describes each of them anew for every answer.
    """
    return select(array([_first(each, number).is_not(None) for number, each in enumerate(_ASKED)]))


def _first(candidates: Candidates, number: int) -> ScalarSelect[Any]:
    """The page's own statement, for one row and from the beginning of the index."""
    given: dict[str, ColumnElement[Any]] = {
        "horizon": bindparam(f"horizon_{number}", type_=DateTime(timezone=True)),
        "after_id": bindparam(_AFTER[candidates.by_number], type_=BigInteger() if candidates.by_number else Uuid()),
        "page": literal_column("1"),
    }

    def put(element: Any, **_: object) -> Any:
        return given.get(element.key) if isinstance(element, BindParameter) else None

    one = cast("Select[Any]", replacement_traverse(candidates.statement, {}, put))
    return one.with_only_columns(literal_column("1"), maintain_column_froms=True).scalar_subquery()
