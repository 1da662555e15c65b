"""The very moment at which a deadline passes or a grace is over: the answer changes there, and is never none."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, Verdict
from baton.reconcilers.judging import judge
from baton.reconcilers.planning import Ground
from baton.reconcilers.results import Mode
from support.databases import Database
from support.matters import Matter
from support.reconciling import Loop
from support.troubles import troubles, write_one

#: The least by which two moments differ.
INSTANT: Final = timedelta(microseconds=1)
#: Those whose ticket counts as lost by what is known of its lane, which no grace moves.
BY_LANE: Final = {"request_stalled", "apply_stalled"}


@dataclass(frozen=True)
class Standing:
    """A document of each disagreement that has stood for long."""

    database: Database
    ground: Ground
    documents: dict[tuple[str, Aspect], UUID]

    def at(self, now: datetime, name: str, aspect: Aspect) -> Verdict:
        """What is answered about one of them at a moment."""
        document = self.documents[name, aspect]
        with self.database.engine(Role.OBSERVER).connect() as connection:
            return judge(connection, [document], ground=replace(self.ground, now=now), aspects=[aspect])[document][
                aspect
            ]

    def due(self, name: str, aspect: Aspect) -> datetime:
        """Since when it counts."""
        due = self.at(self.ground.now, name, aspect).due
        assert due is not None
        return due


@pytest.fixture
def standing(database: Database) -> Standing:
    """On lanes that are consumed."""
    wanted = troubles()
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop.consumers(since=1e6)
    documents = {}
    with database.preparer.begin() as connection:
        for key, each in wanted.items():
            last = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM ops.document_ingest_outbox")
            documents[key] = write_one(connection, loop.matter, each, after=int(last.scalar_one())).id
    with database.engine(Role.OBSERVER).connect() as connection:
        return Standing(database, loop.reconciler(Mode.OBSERVE).ground(connection), documents)


def test_a_disagreement_counts_from_the_moment_on_at_which_its_grace_is_over(standing: Standing) -> None:
    """An instant before it is settling; a failure that may be tried again has waited for that moment."""
    moved = [(name, aspect) for name, aspect in standing.documents if name not in BY_LANE]
    answers = {}
    for name, aspect in moved:
        due = standing.due(name, aspect)
        before, then = standing.at(due - INSTANT, name, aspect), standing.at(due, name, aspect)
        answers[name, aspect] = (before.settling.name if before.settling else before.name, then.name)
    waited = {"failure_retryable": "awaiting_retry"}
    assert answers == {(name, aspect): (waited.get(name, name), name) for name, aspect in moved}
    assert {name for name, _ in moved} | BY_LANE == DISCREPANCIES.keys()


def test_a_run_is_the_agents_until_the_moment_of_its_deadline(standing: Standing) -> None:
    """From then on it is a settler's, and after its grace a loop's: at no moment nobody's."""
    for name, aspect in standing.documents:
        if name == "run_lapsed":
            deadline = standing.due(name, aspect) - DISCREPANCIES[name].grace
            assert standing.at(deadline - INSTANT, name, aspect).name == "with_agent"
            assert standing.at(deadline, name, aspect).settling is DISCREPANCIES[name]
