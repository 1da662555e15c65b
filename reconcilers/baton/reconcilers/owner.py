"""Who works on this database: one name, so that no second resource goes past suspension and limits.

Replicas of one resource share its name. A name that has not been seen for a while may be taken over.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Final

from sqlalchemy import Executable, bindparam, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from baton.db.connect import Executor
from baton.db.tables import owner

#: An owner that was silent for this long is gone.
GONE_AFTER: Final = timedelta(minutes=10)


def claim(executor: Executor, resource: str) -> bool:
    """Say that ``resource`` works here; ``False`` where another one does.

    :raises ValueError: the name is empty.
    """
    if not resource:
        raise ValueError("a resource has a name")
    return executor.execute(_claim(), {"resource": resource}).first() is not None


@cache
def _claim() -> Executable:
    now = func.app.clock()
    taken = insert(owner).values(resource=bindparam("resource"))
    same = owner.c.resource == taken.excluded.resource
    return taken.on_conflict_do_update(
        index_elements=["singleton"],
        set_={
            "resource": taken.excluded.resource,
            "since": case((same, owner.c.since), else_=now),
            "seen_at": now,
        },
        where=or_(same, owner.c.seen_at < select(now - GONE_AFTER).scalar_subquery()),
    ).returning(owner.c.resource)


def current(executor: Executor) -> str | None:
    """Who works here; ``None`` where nobody does or its owner is gone."""
    return executor.execute(
        select(owner.c.resource).where(owner.c.seen_at >= select(func.app.clock() - GONE_AFTER).scalar_subquery())
    ).scalar_one_or_none()


def leave(executor: Executor, resource: str, *, linger: timedelta) -> None:
    """Stop working here as one of several: the name is free after ``linger``, unless another one of its own goes on.

    :param linger: longer than any other one of the name is silent between two passes.
    """
    seen = select(func.app.clock() - (GONE_AFTER - min(linger, GONE_AFTER))).scalar_subquery()
    executor.execute(update(owner).where(owner.c.resource == resource, owner.c.seen_at > seen).values(seen_at=seen))


def release(executor: Executor, resource: str) -> bool:
    """Have nobody of that name work here any more; ``False`` where somebody else does."""
    gone = executor.execute(delete(owner).where(owner.c.resource == resource).returning(owner.c.resource))
    return gone.first() is not None
