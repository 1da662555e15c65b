"""What a redrive would do, counted page by page without writing anything: a role that may only look is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from baton.db.connect import read_connection
from baton.db.tables import documents
from baton.reconcilers.choosing import Choice, choose
from baton.reconcilers.judging import judge
from baton.reconcilers.redrive import Grounds
from baton.reconcilers.selection import Selector, page
from baton.reconcilers.tallies import ABSENT, OTHERS, Counts

_PAGE: Final = 250


class Rehearsal:
    """One selector's, as far as it has come."""

    def __init__(self, engine: Engine, selector: Selector, *, ground_of: Grounds) -> None:
        self._engine = engine
        self._selector = selector
        self._ground_of = ground_of
        self._after: Mapping[str, Any] | None = None
        self._seen: set[UUID] = set()
        self.counts = Counts()
        self.complete = False
        """Whether everything was looked at."""

    def step(self) -> None:
        """Look at one page."""
        with read_connection(self._engine) as connection:
            ground = self._ground_of(connection)
            found = page(connection, self._selector, after=self._after, size=_PAGE, ground=ground)
            self.counts.examined += found.examined
            if found.absent:
                self.counts.note(OTHERS, ABSENT, found.absent)
            fresh = [each for each in found.document_ids if each not in self._seen]
            self._seen.update(fresh)
            firms = _firms(connection, fresh)
            for document_id, verdicts in judge(connection, fresh, ground=ground).items():
                named = self._selector.names(document_id)
                choices = [choose(aspect, verdict, self._selector, named=named) for aspect, verdict in verdicts.items()]
                meant = [choice.value for choice in choices if choice is not Choice.NOTHING]
                for what in meant or ([Choice.NOTHING.value] if named and choices else []):
                    self.counts.note(firms[document_id], what)
        self._after = found.after
        self.complete = found.after is None


def preview(engine: Engine, selector: Selector, *, ground_of: Grounds, most: int) -> tuple[Counts, bool]:
    """Count what a redrive would do; returns the counts and whether everything was looked at.

    :param most: rows of documents that are looked at, at most.
    """
    rehearsal = Rehearsal(engine, selector, ground_of=ground_of)
    while not rehearsal.complete and rehearsal.counts.examined < most:
        rehearsal.step()
    return rehearsal.counts, rehearsal.complete


def _firms(connection: Connection, document_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    rows = connection.execute(select(documents.c.id, documents.c.firm_id).where(documents.c.id.in_(document_ids)))
    return {row.id: row.firm_id for row in rows}
