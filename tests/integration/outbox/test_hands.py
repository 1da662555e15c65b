"""Several batches of one relay on their way at once."""

import threading
from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy import text

from baton.aws.errors import FaultKind, QueueUnavailable
from baton.aws.sending import Entry, SendResult, SendState, Sent
from integration.outbox.conftest import IN_TRANSACTION, Recorder, Relays, claiming
from support.databases import Database
from support.tickets import DISPATCHED, Bulk, count_where, fill
from support.waiting import wait_until

SIZE = 10


class Together:
    """Holds senders, but the first, until so many of them send at the same moment; from then on nobody."""

    def __init__(self, number: int) -> None:
        self.reached = threading.Event()
        self._number = number
        self._inside = -1
        self._lock = threading.Lock()

    def __call__(self) -> None:
        """Come in, and be held or not."""
        with self._lock:
            self._inside += 1
            if self._inside == self._number:
                self.reached.set()
            first = self._inside == 0
        if not first:
            self.reached.wait(20)


def test_while_there_is_a_backlog_several_batches_are_on_their_way(database: Database, relays: Relays) -> None:
    """Three are being sent at the same moment; each ticket is sent once."""
    fill(database, Bulk(count=6 * SIZE, firm=uuid4()))
    together = Together(3)
    recorder = Recorder(before=together)
    with relays.running(relays.make(recorder, batch_size=SIZE, in_flight=3)):
        wait_until(lambda: count_where(database, DISPATCHED) == 6 * SIZE, timeout=30)
    assert together.reached.is_set()
    assert len(recorder.keys) == len(set(recorder.keys)) == 6 * SIZE


def test_what_one_session_carries_is_carried_by_one(database: Database, relays: Relays) -> None:
    """Batches that are not full call nobody: an idle relay has one session that claims."""
    fill(database, Bulk(count=SIZE - 1, firm=uuid4()))
    with relays.running(relays.make(Recorder(), batch_size=SIZE, in_flight=4)):
        wait_until(lambda: count_where(database, DISPATCHED) == SIZE - 1)
        assert claiming(database) == 1


def test_hands_whose_sessions_are_ended_lose_nothing(database: Database, relays: Relays) -> None:
    """All sessions are ended while their batches are being sent: what was not marked is sent again."""
    fill(database, Bulk(count=6 * SIZE, firm=uuid4()))
    together, cut = Together(3), threading.Event()

    def wait_for_the_end() -> None:
        together()
        if len(recorder.batches):
            cut.wait(20)

    recorder = Recorder(before=wait_for_the_end)
    with relays.running(relays.make(recorder, batch_size=SIZE, in_flight=3, backoff_initial=0.05)):
        wait_until(lambda: claiming(database, "state = 'idle in transaction'") == 3, timeout=20)
        with database.preparer.begin() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = 'baton_relay' AND datname = current_database()"
                )
            )
        cut.set()
        wait_until(lambda: count_where(database, DISPATCHED) == 6 * SIZE, timeout=30)
    assert set(recorder.keys) == {str(each) for each in _ids(database)}


def test_hands_stop_where_the_queue_fails_and_are_called_again(database: Database, relays: Relays) -> None:
    """A queue that is away is not asked by all hands for as long as it is; when it is back all goes on."""
    fill(database, Bulk(count=20 * SIZE, firm=uuid4()))
    away = threading.Event()
    asked: list[str] = []

    class Failing(Recorder):
        def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
            if not away.is_set():
                return super().send(entries, bound=bound)
            asked.append(threading.current_thread().name)
            failure = QueueUnavailable("away", kind=FaultKind.SERVER)
            return Sent(tuple(SendResult(each.key, SendState.UNTRIED) for each in entries), failure)

    sender = Failing(before=lambda: away.set() if len(sender.batches) == 4 else None)
    with relays.running(relays.make(sender, batch_size=SIZE, in_flight=3, backoff_initial=0.05, backoff_max=0.1)):
        wait_until(lambda: len(asked) >= 12, timeout=20)
        assert sum(1 for name in asked if name == "relay-hand") <= 2, asked
        away.clear()
        sender.before = lambda: None
        wait_until(lambda: count_where(database, DISPATCHED) == 20 * SIZE, timeout=30)
    assert len(sender.keys) == len(set(sender.keys)) == 20 * SIZE


def test_a_relay_that_stops_finishes_all_that_is_on_its_way(database: Database, relays: Relays) -> None:
    """Each batch that was being sent is settled; nothing is left locked, and nothing sent is left unmarked."""
    fill(database, Bulk(count=9 * SIZE, firm=uuid4()))
    together, go = Together(3), threading.Event()

    def wait_to_go() -> None:
        together()
        if len(recorder.batches):
            go.wait(20)

    recorder = Recorder(before=wait_to_go)
    relay = relays.make(recorder, batch_size=SIZE, in_flight=3)
    stop = threading.Event()
    running = threading.Thread(target=relay.run, kwargs={"stop": stop})
    running.start()
    try:
        assert together.reached.wait(20)
    finally:
        stop.set()
        go.set()
        running.join(20)
    assert not running.is_alive()
    assert count_where(database, DISPATCHED) == len(recorder.keys) >= 4 * SIZE
    assert claiming(database, IN_TRANSACTION) == 0


def _ids(database: Database) -> list[int]:
    with database.preparer.connect() as connection:
        return list(connection.execute(text("SELECT id FROM ops.document_ingest_outbox")).scalars())
