"""The database's clock, by which everything is judged that many processes must agree on."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import func, select

from baton.db.connect import Executor

_NOW: Final = select(func.app.clock())


def now(executor: Executor) -> datetime:
    """Ask for the time; it moves on within a transaction, too."""
    found: datetime = executor.execute(_NOW).scalar_one()
    return found
