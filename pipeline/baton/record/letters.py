"""What an applier is given: a fenced run's verified effect, and the aspect it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from baton.contract.artifacts import Effect
from baton.db.rows import Document
from baton.record.aspects import Aspect
from baton.record.deliveries import Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One delivered run, opened. The document (and the part) is locked, and the fence was open."""

    aspect: Aspect
    delivery: Delivery
    effect: Effect

    @property
    def document(self) -> Document:
        """The document as it was read under its lock."""
        return self.aspect.document


Applier = Callable[[Connection, Letter], None]
"""Carries a letter's effect into the Record and ends its aspect, all on the caller's transaction."""
