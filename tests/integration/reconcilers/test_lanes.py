"""What is known of a lane, from readings, heartbeats and receipts; by the database's clock."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from baton.db import clock
from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers.depths import Reading, record_reading
from baton.reconcilers.lanes import NEVER, LaneState, lane_states
from support.databases import Database

VISIBILITY, RETENTION = timedelta(seconds=60), timedelta(days=4)


class Lanes:
    """A registrar lane whose past is made up."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.preparer.connect() as connection:
            self.now = clock.now(connection)

    def ago(self, **span: float) -> datetime:
        """That long before now."""
        return self.now - timedelta(**span)

    def consumer(self, *, started: datetime, polled: datetime) -> None:
        """A consumer of the lane."""
        self._do(
            "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, started_at, polled_at)"
            " VALUES (:id, 'registrar', '1', :started, :polled)",
            id=uuid4(),
            started=started,
            polled=polled,
        )

    def read(self, at: datetime, visible: int = 0, in_flight: int = 0, delayed: int = 0) -> None:
        """A reading of the queue."""
        self._do(
            "INSERT INTO ops.lane_reading (lane, at, visible, in_flight, delayed)"
            " VALUES ('registrar', :at, :visible, :in_flight, :delayed)",
            at=at,
            visible=visible,
            in_flight=in_flight,
            delayed=delayed,
        )

    def ticket(self, *, sent: datetime, received: datetime | None = None) -> None:
        """An open ticket."""
        self._do(
            "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
            " extraction_epoch, extraction_run_id, object_key, content_type, created_at, dispatched_at,"
            " first_received_at)"
            " VALUES (:id, :id, :id, 'document.registration.requested', :key, 1, :id, 'k', 't', :sent, :sent, :received)",
            id=uuid4(),
            key=uuid4().hex,
            sent=sent,
            received=received,
        )

    def locate(self, zone: str, moment: str) -> None:
        """Let the server be in a time zone, and now be another moment."""
        with self.database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"ALTER DATABASE {self.database.name} SET timezone = '{zone}'"))
        self.database.preparer.dispose()
        self.database.engine(Role.OBSERVER).dispose()
        with self.database.preparer.connect() as connection:
            assert connection.execute(text("SHOW timezone")).scalar_one() == zone
            self.now = connection.execute(text(f"SELECT timestamptz '{moment}'")).scalar_one()

    def _do(self, statement: str, **values: object) -> None:
        with self.database.preparer.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
            connection.execute(text(statement), values)

    def state(self, *, visibility: timedelta = VISIBILITY, seen: Sequence[Reading] = ()) -> LaneState:
        """What is known by now."""
        with self.database.engine(Role.OBSERVER).connect() as connection:
            known = lane_states(
                connection, now=self.now, visibility=visibility, retention=RETENTION, seen={Lane.REGISTRAR: seen}
            )
        return known[Lane.REGISTRAR]


@pytest.fixture
def lanes(database: Database) -> Lanes:
    """The lane."""
    return Lanes(database)


def test_a_consumer_is_alive_while_it_polls(lanes: Lanes) -> None:
    """Nobody, then one that stopped polling over a minute ago, then one that polls."""
    assert not lanes.state().alive
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.ago(seconds=61))
    assert not lanes.state().alive
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.ago(seconds=9))
    assert lanes.state().alive


def test_three_empty_readings_over_five_minutes_say_that_what_was_sent_before_them_is_gone(lanes: Lanes) -> None:
    """The latest moment from which there are enough; one that was asked later proves nothing about it."""
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.now)
    for minutes in (6, 3, 0.5):
        assert lanes.state().empty_before == NEVER
        lanes.read(lanes.ago(minutes=minutes))
    assert lanes.state().empty_before == lanes.ago(minutes=6)


def test_two_empty_readings_are_not_enough_however_long_lies_between(lanes: Lanes) -> None:
    """An hour apart, and a message may have been on the queue for all but two moments of it."""
    lanes.consumer(started=lanes.ago(hours=5), polled=lanes.now)
    for minutes in (60, 1):
        lanes.read(lanes.ago(minutes=minutes))
    assert lanes.state().empty_before == NEVER


@pytest.mark.parametrize("depth", [{"visible": 1}, {"in_flight": 1}, {"delayed": 1}])
def test_one_reading_that_saw_anything_begins_the_count_anew(lanes: Lanes, depth: dict[str, int]) -> None:
    """Visible, in flight or delayed: the queue was not empty."""
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.now)
    for minutes in (9, 8, 2, 1):
        lanes.read(lanes.ago(minutes=minutes))
    lanes.read(lanes.ago(minutes=7), **depth)
    assert lanes.state().empty_before == NEVER


def test_many_readings_within_a_moment_are_not_enough(lanes: Lanes) -> None:
    """Twenty empty readings within four minutes say nothing; the span is twice a long visibility where that is longer."""
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.now)
    for seconds in range(0, 240, 12):
        lanes.read(lanes.ago(seconds=seconds))
    assert lanes.state().empty_before == NEVER
    lanes.read(lanes.ago(minutes=6))
    assert lanes.state().empty_before == lanes.ago(minutes=6)
    assert lanes.state(visibility=timedelta(minutes=4)).empty_before == NEVER


def test_an_empty_queue_that_nobody_polled_says_nothing(lanes: Lanes) -> None:
    """A consumer must have been there when the readings began, and still be."""
    for minutes in (6, 3, 0.5):
        lanes.read(lanes.ago(minutes=minutes))
    assert lanes.state().empty_before == NEVER
    lanes.consumer(started=lanes.ago(minutes=2), polled=lanes.now)
    assert lanes.state().empty_before == NEVER


def test_a_window_of_receipts_passes_by_what_was_sent_before_all_of_them(lanes: Lanes) -> None:
    """Everything received in a quarter of an hour was sent later: the older one was passed by, with a minute's margin."""
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.now)
    lanes.ticket(sent=lanes.ago(minutes=40))
    for minutes in (14, 9, 4, 1):
        lanes.ticket(sent=lanes.ago(minutes=minutes + 0.2), received=lanes.ago(minutes=minutes))
    assert lanes.state().overtaken_before == lanes.ago(minutes=16)


def test_the_window_is_twice_a_long_visibility(lanes: Lanes) -> None:
    """Receipts that reach a quarter of an hour back say nothing where a message may be held for half an hour."""
    lanes.consumer(started=lanes.ago(hours=3), polled=lanes.now)
    lanes.ticket(sent=lanes.ago(minutes=100))
    for minutes in (14, 9, 4, 1):
        lanes.ticket(sent=lanes.ago(minutes=minutes + 0.2), received=lanes.ago(minutes=minutes))
    assert lanes.state(visibility=timedelta(minutes=30)).overtaken_before == NEVER
    assert lanes.state().overtaken_before == lanes.ago(minutes=16)


def test_one_older_receipt_in_the_window_moves_the_mark_before_itself(lanes: Lanes) -> None:
    """Slow consumers that work through an old queue pass nothing by that is younger than what they receive."""
    lanes.consumer(started=lanes.ago(hours=3), polled=lanes.now)
    lanes.ticket(sent=lanes.ago(minutes=100))
    for minutes in (14, 9, 4, 1):
        lanes.ticket(sent=lanes.ago(minutes=90 - minutes), received=lanes.ago(minutes=minutes))
    assert lanes.state().overtaken_before == lanes.ago(minutes=90)


def test_consumers_that_just_came_back_pass_nothing_by(lanes: Lanes) -> None:
    """After an hour's stop the first receipts may be of the youngest tickets; that is no quarter of an hour."""
    lanes.consumer(started=lanes.ago(hours=3), polled=lanes.now)
    lanes.ticket(sent=lanes.ago(minutes=50))
    lanes.ticket(sent=lanes.ago(minutes=2), received=lanes.ago(minutes=1))
    assert lanes.state().overtaken_before == NEVER
    lanes.ticket(sent=lanes.ago(minutes=10), received=lanes.ago(minutes=8))
    assert lanes.state().overtaken_before == NEVER


def test_receipts_that_ended_pass_nothing_by(lanes: Lanes) -> None:
    """A lane that went quiet says nothing, nor one whose consumers are younger than the window."""
    lanes.ticket(sent=lanes.ago(minutes=50))
    for minutes in (14, 9):
        lanes.ticket(sent=lanes.ago(minutes=minutes + 0.2), received=lanes.ago(minutes=minutes))
    lanes.consumer(started=lanes.ago(hours=3), polled=lanes.now)
    assert lanes.state().overtaken_before == NEVER
    lanes.ticket(sent=lanes.ago(minutes=2), received=lanes.ago(minutes=1))
    assert lanes.state().overtaken_before == lanes.ago(minutes=16)


def test_readings_are_kept_for_as_long_as_they_can_decide(lanes: Lanes) -> None:
    """Writing one lets go of those that are more than a day old, of this lane."""
    lanes.read(lanes.ago(hours=27))
    lanes.read(lanes.ago(hours=25))
    with lanes.database.engine(Role.RECONCILER).begin() as connection:
        record_reading(connection, Lane.REGISTRAR, visible=1, in_flight=2, delayed=3)
    with lanes.database.preparer.connect() as connection:
        rows = connection.execute(text("SELECT visible, in_flight, delayed FROM ops.lane_reading ORDER BY at")).all()
    assert [tuple(row) for row in rows] == [(0, 0, 0), (1, 2, 3)]


def test_what_was_written_before_the_clock_was_set_back_says_nothing(lanes: Lanes) -> None:
    """Readings and polls of a time to come are neither an empty queue nor a consumer: until that time they would hide
    every look at a queue that is long by now.
    """
    lanes.consumer(started=lanes.ago(hours=-1), polled=lanes.ago(hours=-2))
    for minutes in (110, 113, 116):
        lanes.read(lanes.ago(minutes=-minutes))
    assert not lanes.state().alive
    lanes.consumer(started=lanes.ago(hours=1), polled=lanes.ago(seconds=1))
    assert (lanes.state().alive, lanes.state().empty_before) == (True, NEVER)
    lanes.read(lanes.ago(seconds=5), visible=10_000)
    assert lanes.state().empty_before == NEVER
    seen = [Reading(lanes.ago(minutes=-minutes), 0, 0, 0) for minutes in (110, 113, 116)]
    assert lanes.state(seen=seen).empty_before == NEVER


def test_readings_of_a_time_to_come_are_not_kept_until_it_has_come(lanes: Lanes) -> None:
    """They would count then, though the queue was long in between."""
    for minutes in (-1, -3, -6):
        lanes.read(lanes.ago(minutes=minutes))
    with lanes.database.engine(Role.RECONCILER).begin() as connection:
        record_reading(connection, Lane.REGISTRAR, visible=9, in_flight=0, delayed=0)
    with lanes.database.preparer.connect() as connection:
        assert connection.scalars(text("SELECT visible FROM ops.lane_reading")).all() == [9]


@pytest.mark.parametrize("caught_up", [False, True])
def test_a_queue_of_what_was_sent_before_the_clock_was_set_back_passes_nothing_by(
    lanes: Lanes, caught_up: bool
) -> None:
    """What was sent since seems older than all of it, and only waits for its turn."""
    lanes.consumer(started=lanes.ago(hours=3), polled=lanes.now)
    ahead = 2.0 if caught_up else -40.0
    for minutes in (14, 9, 4, 1):
        lanes.ticket(sent=lanes.ago(minutes=ahead + minutes), received=lanes.ago(minutes=minutes))
    lanes.ticket(sent=lanes.ago(minutes=40))
    assert lanes.state().overtaken_before == NEVER


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_the_night_in_which_summer_time_begins_is_no_hour_longer(lanes: Lanes, zone: str) -> None:
    """Whatever the zone of the server is, readings over two minutes are two minutes, and one that polled is one."""
    change = {"Europe/Berlin": "2027-03-28 01:00+00", "Australia/Lord_Howe": "2026-10-03 15:30+00"}[zone]
    lanes.locate(zone, change)
    lanes.consumer(started=lanes.ago(hours=5), polled=lanes.ago(seconds=1))
    for seconds in (-60, -20, 20, 60):
        lanes.read(lanes.ago(seconds=seconds))
    lanes.now += timedelta(seconds=61)
    lanes.consumer(started=lanes.ago(hours=5), polled=lanes.ago(seconds=1))
    assert lanes.state().empty_before == NEVER
    lanes.read(lanes.ago(minutes=10))
    assert lanes.state().empty_before == lanes.ago(minutes=10)


def test_the_night_in_which_summer_time_ends_puts_nothing_out_of_order(lanes: Lanes) -> None:
    """The hour that comes twice: a full queue that was read after an empty one stays the newer reading."""
    lanes.locate("Europe/Berlin", "2026-10-25 01:00+00")
    for minutes in (20, 15, 10, 5, 3):
        lanes.read(lanes.ago(minutes=minutes))
    lanes.read(lanes.now, visible=4)
    lanes.consumer(started=lanes.ago(hours=5), polled=lanes.ago(seconds=1))
    assert lanes.state().empty_before == NEVER
