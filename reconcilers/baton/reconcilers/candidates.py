"""The questions that an index answers: which documents might disagree.

An index gives candidates and nothing else. The whole condition, with real rows beside the document, is asked of those
found, and again under the lock. Pages go by the index's own key, so that rows which turn out healthy hide nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Integer,
    Select,
    Uuid,
    bindparam,
    select,
    tuple_,
)

from baton.db.states import Lane
from baton.db.tables import outbox
from baton.reconcilers.lanes import NEVER, LaneState

#: Where a page ends: the moment and the id of its last row.
Key: TypeAlias = tuple[datetime, UUID | int]
_ZERO: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Bound:
    """How far an index is read: up to now less the grace, or what is known of a lane."""

    lane: Lane | None = None
    released: bool = False
    """Of the lane's tickets those received longer than one visibility time ago; otherwise those that were passed by."""

    def horizon(self, *, now: datetime, grace: timedelta, lanes: Mapping[Lane, LaneState]) -> datetime:
        """Nothing younger can hold."""
        if self.lane is None:
            return now - grace
        state = lanes[self.lane]
        if not state.alive:  # nothing is lost where nobody consumes
            return NEVER
        return now - state.visibility if self.released else max(state.passed_before, now - state.retention)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """One index and the statement that it serves."""

    index: str
    statement: Select[Any]
    """Columns ``document_id``, ``at``, ``id``; parameters ``horizon``, ``after_at``, ``after_id``, ``page``."""
    by_number: bool = False
    """Whether ``id`` is a number rather than a UUID."""
    bound: Bound = Bound()
    of_tickets: bool = False
    """Whether the index is one over open tickets, which brings those back that nothing waits for any more."""

    def page(
        self,
        connection: Connection,
        *,
        now: datetime,
        grace: timedelta,
        lanes: Mapping[Lane, LaneState],
        after: Key | None = None,
        size: int = 100,
    ) -> tuple[list[UUID], Key | None]:
        """One page in the index's order: the documents, and the key for the next page, ``None`` after the last one.

        :param after: the key that the page before brought.
        """
        horizon = self.bound.horizon(now=now, grace=grace, lanes=lanes)
        if horizon <= NEVER:
            return [], None
        at, identity = after or (NEVER, 0 if self.by_number else _ZERO)
        values = {"horizon": horizon, "after_at": at, "after_id": identity, "page": size}
        rows = connection.execute(self.statement, values).all()
        return [row.document_id for row in rows], ((rows[-1].at, rows[-1].id) if len(rows) == size else None)

    def pages(
        self,
        connection: Connection,
        *,
        now: datetime,
        grace: timedelta,
        lanes: Mapping[Lane, LaneState],
        size: int = 100,
    ) -> Iterator[list[UUID]]:
        """All pages, one after the other."""
        after: Key | None = None
        while True:
            found, after = self.page(connection, now=now, grace=grace, lanes=lanes, after=after, size=size)
            if found:
                yield found
            if after is None:
                return


def by_index(
    index: str,
    table: FromClause,
    *conditions: ColumnElement[bool],
    document: ColumnElement[UUID],
    at: ColumnElement[datetime],
    identity: ColumnElement[Any],
    source: FromClause | None = None,
    bound: Bound | None = None,
) -> Candidates:
    """Candidates in the order of an index over (``at``, ``identity``).

    :param conditions: the index's predicate, word for word: literals, never parameters.
    :param source: the table with what it is joined to, where it does not stand alone.
    """
    by_number = isinstance(identity.type, Integer | BigInteger)
    after_id = bindparam("after_id", type_=BigInteger() if by_number else Uuid())
    moment = DateTime(timezone=True)
    statement = (
        select(document.label("document_id"), at.label("at"), identity.label("id"))
        .select_from(table if source is None else source)
        .where(
            *conditions,
            at <= bindparam("horizon", type_=moment),
            tuple_(at, identity) > tuple_(bindparam("after_at", type_=moment), after_id),
        )
        .order_by(at, identity)
        .limit(bindparam("page", type_=Integer()))
    )
    return Candidates(
        index=index,
        statement=statement,
        by_number=by_number,
        bound=bound or Bound(),
        of_tickets=table is outbox,
    )
