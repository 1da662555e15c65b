"""Which of many documents need a closer look: the scrub's first question, for tables in which nearly everything rests.

It is the one classification, asked with nothing beside the document but its parts. A document that rests has no ticket and
no run that its verdict could speak of: a situation looks for them in some states only, and whatever is in one of these (or
deleted) is left to the whole question. So what this one calls healthy is healthy, and the parts of a slice are read once,
in the order of their key, rather than one by one for each aspect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    false,
    func,
    not_,
    null,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import NullType

from baton.db.connect import prepared
from baton.db.states import Lane
from baton.db.tables import documents, understanding_part
from baton.reconcilers.aspects import PARTS, Aspect
from baton.reconcilers.classification import HEALTHY_PREFIX, ORDER, parameters, verdict_of
from baton.reconcilers.lanes import LaneState
from baton.reconcilers.questions import LaneColumns, among, word
from baton.reconcilers.situation import IN_EXTRACTION, Situation, preceding, situation

_IDS: Final = bindparam("document_ids", type_=ARRAY(Uuid()))
#: States in which rows beside the document are looked for.
_OPEN: Final = ("queued", "registering")
_OPEN_PARTS: Final = ("requested", "running")


def unsettled(
    connection: Connection,
    document_ids: Collection[UUID],
    *,
    lanes: Mapping[Lane, LaneState],
    graces: Mapping[str, timedelta],
    now: datetime,
) -> list[UUID]:
    """Those that something is under way for, and those that disagree; all others are healthy in every aspect.

    :param now: by the database's clock.
    """
    values = parameters(lanes=lanes, graces=graces, now=now) | {"document_ids": list(document_ids)}
    with prepared(connection):
        return list(connection.scalars(question(), values))


@cache
def question() -> Select[Any]:
    """The ids of the documents of parameter ``document_ids`` that need the whole question.

    By ``documents_pkey`` and ``understanding_part_pkey``, each read once in its order; nothing is locked.
    """
    d = documents.alias("document")
    states = _states()
    source: FromClause = d.outerjoin(
        states,
        and_(
            states.c.document_id == d.c.id,
            states.c.extraction_run_id == d.c.extraction_run_id,
            states.c.firm_id == d.c.firm_id,
        ),
    )
    parts = {aspect: _part(aspect, states) for aspect in PARTS}
    absent = {name: _absent(name) for name in ("ticket", "run", "letter")}
    for member in (*parts.values(), *absent.values()):
        source = source.join(member, true())
    under_way = or_(
        d.c.deleted_at.is_not(None),
        among(d.c.processing_status, IN_EXTRACTION),
        among(d.c.registration_status, _OPEN),
        states.c.under_way,
    )
    disagrees = (
        not_(func.starts_with(verdict_of(ORDER[aspect], _of(aspect, d, parts, absent)), word(HEALTHY_PREFIX)))
        for aspect in Aspect
    )
    return select(d.c.id).select_from(source).where(d.c.id == any_(_IDS), or_(under_way, *disagrees))


def _states() -> FromClause:
    """A row a document and pass: what is known of each part."""
    p = understanding_part.c
    columns: list[ColumnElement[Any]] = [func.bool_or(among(p.state, _OPEN_PARTS)).label("under_way")]
    for aspect in PARTS:
        of_part = p.part == word(aspect.value)
        columns += [
            func.max(p[name]).filter(of_part).label(f"{aspect}_{name}")
            for name in ("state", "state_since", "next_attempt_at")
        ]
    key = (p.document_id, p.extraction_run_id, p.firm_id)
    return select(*key, *columns).where(p.document_id == any_(_IDS)).group_by(*key).subquery("states")


def _part(aspect: Aspect, states: FromClause) -> FromClause:
    """The part's row, as far as a part that is not under way is asked about it."""
    state = states.c[f"{aspect}_state"]
    row = select(
        case((state.is_not(None), states.c.document_id)).label("document_id"),
        state.label("state"),
        *(states.c[f"{aspect}_{name}"].label(name) for name in ("state_since", "next_attempt_at")),
        cast(null(), BigInteger()).label("ticket_id"),
        cast(null(), Uuid()).label("run_id"),
    )
    return row.correlate(states).lateral(f"{aspect}_part")


def _absent(name: str) -> FromClause:
    """A member of a situation that is not there: all of its columns are NULL."""
    member = situation(Aspect.CARD).members()[name]
    nothing = (
        cast(null(), Text() if isinstance(column.type, NullType) else column.type).label(
            column.name
        )  # its life: a word
        for column in member.c
    )
    return select(*nothing).subquery(f"no_{name}")


def _of(
    aspect: Aspect, d: FromClause, parts: Mapping[Aspect, FromClause], absent: Mapping[str, FromClause]
) -> Situation:
    part = before = None
    if aspect.part is not None:
        earlier = preceding(aspect.part)
        part, before = parts[aspect], None if earlier is None else parts[Aspect(earlier.value)]
    runs = {} if aspect is Aspect.INGEST else {"run": absent["run"], "letter": absent["letter"]}
    return Situation(
        aspect, d, d, absent["ticket"], LaneColumns.of(aspect.lane), false(), part=part, before=before, **runs
    )
