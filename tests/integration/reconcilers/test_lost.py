"""Backlog is not loss: which tickets a pass would call lost, among thousands that only wait."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text
from uuid_utils.compat import uuid7

from baton.db import clock
from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, classify
from baton.reconcilers.graces import graces
from baton.reconcilers.lanes import LaneState, lane_states
from baton.reconcilers.results import Guard
from support.databases import Database
from support.matters import Matter
from support.reconciling import Loop
from support.situations import Axis, Combination, Writer, write

VISIBILITY, RETENTION = timedelta(seconds=60), timedelta(days=4)
BACKLOG = 10_000


class Queue:
    """Documents that wait for dispatch, and what became of the lane."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.preparer.connect() as connection:
            self.now = clock.now(connection)

    def add(self, count: int, ticket: str) -> list[UUID]:
        """Queued documents whose ticket is in this state."""
        given = [Combination(status="queued", axis=Axis(ticket=ticket))] * count
        with self.database.preparer.begin() as connection:
            writer = Writer(self.now)
            first = connection.execute(text("SELECT coalesce(max(id), 0) FROM ops.document_ingest_outbox")).scalar_one()
            writer.begin_after(int(first))
            return [each.id for each in write(connection, writer, given)]

    def consumer(self, *, polled: timedelta = timedelta(0), started: timedelta = timedelta(hours=5)) -> None:
        """One that polled that long ago."""
        self._do(
            "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, started_at, polled_at)"
            " VALUES (gen_random_uuid(), 'registrar', '1', :started, :polled)",
            started=self.now - started,
            polled=self.now - polled,
        )

    def readings(self, visible: int, *minutes: float) -> None:
        """Depths of the queue, that long ago."""
        for each in minutes:
            self._do(
                "INSERT INTO ops.lane_reading (lane, at, visible, in_flight, delayed)"
                " VALUES ('registrar', :at, :visible, 0, 0)",
                at=self.now - timedelta(minutes=each),
                visible=visible,
            )

    def received(self, *, sent: Sequence[float], at: Sequence[float]) -> None:
        """Tickets of other documents, sent and received for the first time that many minutes ago, and handled."""
        for minutes_sent, minutes_at in zip(sent, at, strict=True):
            self._do(
                "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
                " extraction_epoch, extraction_run_id, object_key, content_type, created_at, dispatched_at,"
                " first_received_at, handled_at, outcome) SELECT i, i, i, 'document.registration.requested', i::text,"
                " 1, i, 'k', 't', :sent, :sent, :at, :at, 'done' FROM gen_random_uuid() i",
                sent=self.now - timedelta(minutes=minutes_sent),
                at=self.now - timedelta(minutes=minutes_at),
            )

    def change_earliest(self, document: UUID, change: str) -> None:
        """Change the first ticket of a document that is not handled."""
        self._do(
            f"UPDATE ops.document_ingest_outbox SET {change} WHERE id ="
            " (SELECT min(id) FROM ops.document_ingest_outbox WHERE document_id = :document AND handled_at IS NULL)",
            document=document,
        )

    def _do(self, statement: str, **values: object) -> None:
        with self.database.preparer.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
            connection.execute(text(statement), values)

    def lanes(self) -> dict[Lane, LaneState]:
        """What is known of the lanes."""
        with self.database.engine(Role.OBSERVER).connect() as connection:
            return lane_states(connection, now=self.now, visibility=VISIBILITY, retention=RETENTION)

    def lost(self) -> set[UUID]:
        """The documents that a pass would call stalled: candidates of the index, by the whole condition."""
        row, lanes, found = DISCREPANCIES["request_stalled"], self.lanes(), set()
        with self.database.engine(Role.OBSERVER).connect() as connection:
            for candidates in row.candidates:
                pages = candidates.pages(connection, now=self.now, grace=row.grace, lanes=lanes, size=500)
                for page in pages:
                    found |= {document for document, name in self._named(connection, page, lanes) if name == row.name}
        return found

    def names(self, documents: Sequence[UUID]) -> Counter[str]:
        """The verdicts on the registration of these documents."""
        lanes, counted = self.lanes(), Counter[str]()
        for start in range(0, len(documents), 2000):
            with self.database.engine(Role.OBSERVER).connect() as connection:
                counted.update(name for _, name in self._named(connection, documents[start : start + 2000], lanes))
        return counted

    def _named(self, connection, documents, lanes) -> Iterator[tuple[UUID, str]]:  # type: ignore[no-untyped-def]
        found = classify(
            connection, documents, lanes=lanes, graces=graces(), now=self.now, aspects=[Aspect.REGISTRATION]
        )
        return ((document, verdicts[Aspect.REGISTRATION].name) for document, verdicts in found.items())


@pytest.fixture
def queue(database: Database) -> Queue:
    """Nothing waits, nobody consumes."""
    return Queue(database)


def test_consumers_that_stopped_lose_nothing(queue: Queue) -> None:
    """An hour and a half without a consumer and ten thousand queued, some of them once received: the lane is stalled, and
    not one ticket counts as lost, whatever was read of the queue before.
    """
    waiting = queue.add(BACKLOG, "passed_by") + queue.add(20, "released") + queue.add(20, "retained")
    queue.consumer(polled=timedelta(hours=1))
    queue.readings(0, 300, 290, 280)
    assert not queue.lanes()[Lane.REGISTRAR].alive
    assert queue.lost() == set()
    assert queue.names(waiting) == {"waiting": BACKLOG + 20, "held": 20}


def test_slow_consumers_lose_nothing(queue: Queue) -> None:
    """They receive what was sent two hours ago: what was sent an hour and a half ago waits its turn. Then one that was
    sent before all of them is missed, and only that one counts as lost.
    """
    (gone,) = queue.add(1, "passed_by")
    waiting = queue.add(500, "passed_by")
    queue.consumer()
    queue.readings(500, 10, 5, 0)
    queue.received(sent=(130, 125, 120, 115), at=(14, 9, 4, 1))
    assert queue.lost() == set()
    assert queue.names(waiting) == {"waiting": 500}
    with queue.database.preparer.begin() as connection:
        connection.execute(
            text("UPDATE ops.document_ingest_outbox SET claimed_at = dispatched_at WHERE document_id = :id"),
            {"id": gone},
        )
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        connection.execute(
            text("UPDATE ops.document_ingest_outbox SET created_at = :at, dispatched_at = :at WHERE document_id = :id"),
            {"id": gone, "at": queue.now - timedelta(minutes=140)},
        )
    assert queue.lost() == {gone}


def test_a_quiet_lane_loses_nothing(queue: Queue) -> None:
    """One message is on the queue, nobody receives it yet, and every reading shows it."""
    queue.add(1, "passed_by")
    queue.consumer()
    queue.readings(1, 20, 15, 10, 5, 0)
    assert queue.lost() == set()


def test_a_blocked_group_loses_nothing_and_a_dead_letter_does_not_block(queue: Queue) -> None:
    """Behind an earlier open ticket of its document a ticket waits, though younger ones passed it by; behind a dead one
    nothing holds it up.
    """
    blocked, behind_dead = queue.add(5, "blocked"), queue.add(5, "behind_dead")
    queue.consumer()
    queue.readings(1, 10, 5, 0)
    queue.received(sent=(15, 10, 5, 2), at=(14, 9, 4, 1))
    assert queue.lost() == set(behind_dead)
    assert queue.names(blocked) == {"waiting": 5}


def test_what_stands_before_is_of_the_same_lane_and_may_still_be_on_the_queue(queue: Queue) -> None:
    """An earlier ticket of another lane holds nothing up, nor does one that its queue has let go of, or that was handled."""
    other, gone, done, _blocked = queue.add(4, "blocked")
    queue.change_earliest(other, "event_type = 'document.ingest.requested', run_id = NULL")
    queue.change_earliest(gone, "dispatched_at = dispatched_at - interval '5 days'")
    queue.change_earliest(done, "handled_at = app.clock(), outcome = 'done'")
    queue.consumer()
    queue.readings(1, 10, 5, 0)
    queue.received(sent=(15, 10, 5, 2), at=(14, 9, 4, 1))
    assert queue.lost() == {other, gone, done}


def test_a_consumer_that_died_with_a_message_loses_it_after_its_hold_and_one_visibility(queue: Queue) -> None:
    """Held, and just released: not lost, the queue gives it out again. One visibility time later it is, if somebody
    polls.
    """
    late, released = queue.add(3, "held_late"), queue.add(3, "released")
    queue.readings(3, 10, 5, 0)
    assert queue.lost() == set()
    queue.consumer()
    assert queue.lost() == set(released)
    assert queue.names(late) == {"held": 3}


def test_a_purged_queue_loses_exactly_what_was_on_it(queue: Queue) -> None:
    """Three empty readings over five minutes, consumers polling: what was sent before them is lost, what was sent
    afterwards or is before the relay is not. Two readings, or a single one that saw something, would not do.
    """
    purged = queue.add(40, "passed_by")
    later, unsent = queue.add(40, "waiting"), queue.add(40, "undispatched")
    queue.consumer()
    queue.readings(0, 20, 18)
    assert queue.lost() == set()
    queue.readings(0, 12)
    assert queue.lost() == set(purged)
    assert queue.names(later + unsent) == {"waiting": 40, "undispatched": 40}


def test_what_is_older_than_the_retention_is_lost(queue: Queue) -> None:
    """However long the queue is and whatever stands before it, the queue itself has let go of it."""
    retained, waiting = queue.add(3, "retained"), queue.add(200, "passed_by")
    queue.consumer()
    queue.readings(200, 10, 5, 0)
    assert queue.lost() == set(retained)
    assert queue.names(waiting) == {"waiting": 200}


def test_dead_letters_are_not_lost(queue: Queue) -> None:
    """A message on the dead-letter queue is a state of its own: only a redrive with a reason brings it back."""
    dead = queue.add(3, "dead")
    queue.consumer()
    queue.readings(0, 10, 5, 0)
    assert queue.lost() == set()
    assert queue.names(dead) == {"ticket_dead_lettered": 3}


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_passes_over_a_long_queue_add_exactly_what_was_lost(queue: Queue) -> None:
    """Ten thousand queued and consumers away for an hour: a pass adds no ticket and names the lane. They are back: still
    none, then the one whose consumer died with it, and no other. The queue is purged: all the rest is found, nothing else,
    and the set number a minute is asked for again.
    """
    queue.add(BACKLOG, "passed_by")
    matter = Matter(queue.database, uuid7(), uuid7())
    loop = Loop(matter).limited(page_size=1000, page_limit=100, backstop_rows=2000, repairs_per_minute=50)
    queue.consumer(polled=timedelta(hours=1))
    queue.readings(0, 300, 290, 280)
    result = loop.repair()
    assert (result.total, result.repaired, result.left_over, result.stalled) == (0, 0, 0, (Lane.REGISTRAR,))
    assert matter.count("ops.document_ingest_outbox") == BACKLOG
    queue.consumer()
    queue.readings(BACKLOG, 20, 10, 0)

    def polled() -> Loop:
        matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")
        return loop

    result = polled().repair()
    assert (result.total, result.left_over, result.stalled) == (0, 0, ())
    (gone,) = queue.add(1, "released")
    assert polled().repair().repaired == 1
    assert [entry.document_id for entry in loop.ledger()] == [gone]
    assert matter.count("ops.document_ingest_outbox") == BACKLOG + 2
    matter.prepare("DELETE FROM ops.lane_reading")
    queue.readings(0, 20, 10, 0)
    found = polled().observe()
    assert dict(found.found) == {"request_stalled": BACKLOG}
    result = polled().repair()
    assert 0 < result.repaired < 1000, "the set number a minute, however many are lost"
    assert result.repaired + result.refused[Guard.RATE] == BACKLOG
    assert matter.count("ops.document_ingest_outbox") == BACKLOG + 2 + result.repaired
