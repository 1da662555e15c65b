"""The backstop: some documents in open states, in turn, whatever the indexes say.

It is for what neither a mark nor an open ticket shows (a ticket handled without effect, a mark edited by hand) and finds
it within a few passes; what is in no open state is left to the scrub.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Integer,
    Select,
    Uuid,
    bindparam,
    literal_column,
    select,
    tuple_,
)

from baton.db.tables import agent_run, documents, understanding_part
from baton.reconcilers.lanes import NEVER
from baton.reconcilers.memory import Memory, member, moment

#: The name of its cursor.
NAME: Final = "backstop"
_ZERO: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class _Open:
    """One open state, with the statement that walks it by age."""

    name: str
    statement: Select[Any]
    any: ColumnElement[bool]
    """Whether any document is in it."""


def _walk(
    name: str,
    status: str,
    *,
    table: FromClause,
    column: str,
    since: str,
    document: str,
    live: bool = False,
    identity: str | None = None,
) -> _Open:
    moment = DateTime(timezone=True)
    identity = identity or document
    key = tuple_(table.c[since], table.c[identity])
    after = tuple_(bindparam("after_at", type_=moment), bindparam("after_id", type_=Uuid()))
    # the status is a literal, so that the partial index serves generic plans
    of_it = [table.c[column] == literal_column(f"'{status}'")]
    if live:
        of_it.append(table.c.deleted_at.is_(None))
    statement = (
        select(table.c[document].label("document_id"), table.c[since].label("at"), table.c[identity].label("identity"))
        .where(*of_it, key > after)
        .order_by(table.c[since], table.c[identity])
        .limit(bindparam("page", type_=Integer()))
    )
    # in order: else a table may be read from its beginning up to the first that is under way
    first = select(table.c[identity]).where(*of_it).order_by(table.c[since], table.c[identity]).limit(1)
    return _Open(name, statement, first.scalar_subquery().is_not(None))


def _of_documents(axis: str, status: str) -> _Open:
    return _walk(
        status,
        status,
        table=documents,
        column=f"{axis}_status",
        since=f"{axis}_status_since",
        document="id",
        live=True,
    )


def _of_parts(status: str) -> _Open:
    return _walk(
        f"part {status}",
        status,
        table=understanding_part,
        column="state",
        since="state_since",
        document="document_id",
    )


_STATES: Final = (
    *(_of_documents("processing", status) for status in ("uploaded", "stored", "extracting")),
    *(_of_documents("registration", status) for status in ("queued", "registering")),
    *(_of_parts(status) for status in ("requested", "running")),
    # Of deleted documents too: until its deadline no index tells a run of theirs from the many of living ones.
    _walk(
        "run pending",
        "pending",
        table=agent_run,
        column="state",
        since="deadline_at",
        document="document_id",
        identity="run_id",
    ),
)


#: One question in the place of eight, where nothing is under way.
_ANY: Final = select(*(each.any.label(each.name) for each in _STATES))


def next_rows(connection: Connection, memory: Memory, *, count: int) -> list[UUID]:
    """The next ``count`` documents in turn, and where the turn goes on afterwards."""
    cursor = memory.recall(connection, NAME) or {}
    found: dict[UUID, None] = {}
    start = _position(cursor)
    at, identity = _key(cursor)
    any_of = connection.execute(_ANY).one()
    for index in _in_turn(start):
        if not any_of[index]:
            at, identity = NEVER, _ZERO
            continue
        rows = connection.execute(
            _STATES[index].statement, {"after_at": at, "after_id": identity, "page": count - len(found)}
        ).all()
        found.update(dict.fromkeys(row.document_id for row in rows))
        if len(found) >= count and rows:
            memory.keep(
                connection,
                NAME,
                {"state": _STATES[index].name, "at": rows[-1].at.isoformat(), "id": str(rows[-1].identity)},
            )
            return list(found)
        at, identity = NEVER, _ZERO
    if cursor:  # all of them were seen: begin anew
        memory.keep(connection, NAME, {})
    return list(found)


def _in_turn(start: int) -> Iterator[int]:
    """Each state once, and the first again from its beginning."""
    count = len(_STATES)
    for step in range(count + 1):
        yield (start + step) % count


def _position(cursor: Any) -> int:
    names = [each.name for each in _STATES]
    return names.index(cursor["state"]) if cursor.get("state") in names else 0


def _key(cursor: Any) -> tuple[datetime, UUID]:
    at, identity = member(cursor, "at", moment), member(cursor, "id", UUID)
    return (NEVER, _ZERO) if at is None or identity is None else (at, identity)
