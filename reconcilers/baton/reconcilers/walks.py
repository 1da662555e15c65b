"""One pass on its way: what it knows, what it has seen, and whose turn it is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from baton.consumers.faults import Blame, blame
from baton.reconcilers import glance
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.planning import Ground
from baton.reconcilers.results import PassResult
from baton.reconcilers.rows import Discrepancy
from baton.reconcilers.shares import Shares
from baton.telemetry import fields

_log = logging.getLogger(__name__)

#: Documents judged in one statement.
JUDGED_AT_ONCE: Final = 1000


@dataclass(slots=True)
class Walk:
    """One pass on its way."""

    ground: Ground
    result: PassResult
    stop: threading.Event
    level: int = 0
    """Discrepancies that are not new."""
    shown: frozenset[glance.Place] | None = None
    """Which indexes show anything; ``None``: that could not be asked of all at once."""
    judged: set[UUID] = field(default_factory=set)
    mended: set[UUID] = field(default_factory=set)
    """Documents that had a repair to make; what is left over of them is the next pass's."""
    claimed: float = field(default_factory=time.monotonic)
    """When it was last said that this resource works here."""
    planned: int = 0
    """Repairs that an observing pass would have made so far."""
    shares: Shares = field(default_factory=Shares)

    @property
    def names(self) -> frozenset[str]:
        """The discrepancies that an index shows something of."""
        return frozenset(DISCREPANCIES) if self.shown is None else frozenset(name for name, _ in self.shown)

    @property
    def stopped(self) -> bool:
        """Whether the pass was told to end; what it did not come to is the next one's."""
        if self.stop.is_set():
            self.result.finished = False
        return not self.result.finished


def turns(now: datetime) -> list[Discrepancy]:
    """All discrepancies, each minute beginning with another: where there are fewer repairs than of these, each has its turn."""
    order = list(DISCREPANCIES.values())
    first = int(now.timestamp() // 60) % len(order)
    return order[first:] + order[:first]


def gathered(pages: Iterable[list[UUID]]) -> Iterator[list[UUID]]:
    """Pages put together until they are worth a question of their own: what makes it dear is its planning."""
    some: list[UUID] = []
    for page in pages:
        some += page
        if len(some) >= JUDGED_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


@contextmanager
def alone(walk: Walk, name: str) -> Iterator[None]:
    """Keep a failure of one source from the others; a database that is away fails the pass.

    :param name: what the result calls the source.
    """
    try:
        yield
    except Exception as error:
        if blame(error) is Blame.DATABASE:
            raise
        walk.result.failures.append(name)
        _log.exception("a part of a pass failed", extra=fields.of(rule=name))
