"""What holds all repairs back for a time: a suspension with its reason, or a maintenance window. Scans go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import func, insert, or_, select, update
from uuid_utils.compat import uuid7

from baton.db import clock
from baton.db.connect import Executor
from baton.db.tables import maintenance
from baton.reconcilers.results import Guard

_SUSPENSION: Final = "suspension"
_NOW = select(func.app.clock()).scalar_subquery()
_OPEN = (
    maintenance.c.lifted_at.is_(None),
    maintenance.c.starts_at <= _NOW,
    or_(maintenance.c.ends_at.is_(None), maintenance.c.ends_at > _NOW),
)


@dataclass(frozen=True, slots=True)
class Held:
    """What holds repairs back now."""

    guard: Guard
    reason: str
    set_by: str
    until: datetime | None
    """``None``: until somebody ends it."""


def held(executor: Executor) -> Held | None:
    """What holds repairs back now; of several the suspension, then the one that lasts longest."""
    row = executor.execute(
        select(maintenance.c.kind, maintenance.c.reason, maintenance.c.set_by, maintenance.c.ends_at)
        .where(*_OPEN)
        .order_by(maintenance.c.kind, maintenance.c.ends_at.desc().nulls_first())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    guard = Guard.SUSPENDED if row.kind == _SUSPENSION else Guard.WINDOW
    return Held(guard, row.reason, row.set_by, row.ends_at)


def suspend(executor: Executor, *, reason: str, set_by: str, until: datetime | None = None) -> None:
    """Hold all repairs back from now on.

    :param until: by the database's clock; ``None``: until :func:`resume`.
    """
    _insert(executor, kind=_SUSPENSION, reason=reason, set_by=set_by, starts_at=None, ends_at=until)


def resume(executor: Executor) -> int:
    """Lift every suspension; returns how many there were. Windows stay."""
    lifted = executor.execute(
        update(maintenance)
        .where(maintenance.c.kind == _SUSPENSION, maintenance.c.lifted_at.is_(None))
        .values(lifted_at=func.app.clock())
        .returning(maintenance.c.id)
    )
    return len(lifted.all())


def plan_window(executor: Executor, *, reason: str, set_by: str, starts_at: datetime, ends_at: datetime) -> None:
    """Hold all repairs back between two moments by the database's clock."""
    _insert(executor, kind="window", reason=reason, set_by=set_by, starts_at=starts_at, ends_at=ends_at)


@dataclass(frozen=True, slots=True)
class Declared:
    """A suspension or a window that somebody wants to stand."""

    guard: Guard
    reason: str
    until: datetime | None
    """``None``: until it is no longer declared."""
    start: datetime | None = None
    """``None``: from now on."""


def declare(executor: Executor, wanted: Iterable[Declared], *, set_by: str) -> int:
    """Have exactly these stand in the name of ``set_by``; returns how many rows changed.

    What is over is not written any more. What others set stays as it is.
    """
    now = clock.now(executor)
    missing = {_key(each): each for each in wanted if each.until is None or each.until > now}
    changed = 0
    for row in executor.execute(
        select(
            maintenance.c.id, maintenance.c.kind, maintenance.c.reason, maintenance.c.starts_at, maintenance.c.ends_at
        )
        .where(maintenance.c.set_by == set_by, maintenance.c.lifted_at.is_(None))
        .where(or_(maintenance.c.ends_at.is_(None), maintenance.c.ends_at > _NOW))
        .order_by(maintenance.c.id)
    ).all():
        start = None if row.kind == _SUSPENSION else row.starts_at
        if missing.pop((row.kind, row.reason, start, row.ends_at), None) is None:
            executor.execute(update(maintenance).where(maintenance.c.id == row.id).values(lifted_at=func.app.clock()))
            changed += 1
    for (kind, *_), each in missing.items():
        _insert(executor, kind=kind, reason=each.reason, set_by=set_by, starts_at=each.start, ends_at=each.until)
    return changed + len(missing)


def _key(wanted: Declared) -> tuple[str, str, datetime | None, datetime | None]:
    if wanted.guard is Guard.SUSPENDED:
        return _SUSPENSION, wanted.reason, None, wanted.until
    return "window", wanted.reason, wanted.start, wanted.until


def _insert(
    executor: Executor, *, kind: str, reason: str, set_by: str, starts_at: datetime | None, ends_at: datetime | None
) -> None:
    executor.execute(
        insert(maintenance).values(
            id=uuid7(),
            kind=kind,
            reason=reason,
            set_by=set_by,
            starts_at=func.app.clock() if starts_at is None else starts_at,
            ends_at=ends_at,
        )
    )
