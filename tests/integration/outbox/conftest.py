"""Relays, queues and senders for tests of the outbox."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from baton.aws.clients import Clients
from baton.aws.errors import AwsError
from baton.aws.queues import Queue, QueueSpec
from baton.aws.sending import Entry, SendResult, SendState, Sent
from baton.db.states import Lane
from baton.outbox.relay import Relay
from baton.outbox.senders import QueueSender, Sender
from baton.settings.stores import Aws
from baton.settings.work import Relay as RelaySettings
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.pgbouncer import Pooler, open_pooler


@dataclass
class Recorder:
    """A sender that keeps what it was given and answers as it is told."""

    answer: Callable[[Entry], SendResult] = lambda entry: SendResult(entry.key, SendState.SENT, f"m-{entry.key}")
    before: Callable[[], object] = lambda: None
    batches: list[list[Entry]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """Keep and answer."""
        self.before()
        with self._lock:
            self.batches.append(list(entries))
        return Sent(tuple(self.answer(each) for each in entries), None)

    def mend(self, failure: AwsError) -> None:
        """Nothing to mend."""

    @property
    def keys(self) -> list[str]:
        """The tickets' ids of all entries, in the order sent."""
        with self._lock:
            return [entry.key for batch in self.batches for entry in batch]


@dataclass
class Relays:
    """Makes relays, and runs them in threads for the length of a block."""

    database: Database
    made: list[Relay] = field(default_factory=list)

    def make(
        self,
        sender: Sender,
        *,
        lane: Lane = Lane.INGEST,
        engine: Engine | None = None,
        listen: Engine | None = None,
        **config: float,
    ) -> Relay:
        """A relay that logs in as relays do."""
        settings = RelaySettings(**config)  # type: ignore[arg-type]
        relay = Relay(
            engine or self.database.engine("baton_relay"), lane=lane, sender=sender, config=settings, listen=listen
        )
        self.made.append(relay)
        return relay

    @contextmanager
    def running(self, *relays: Relay) -> Iterator[None]:
        """Run relays until the block ends; each must then stop within seconds."""
        stop = threading.Event()
        threads = [threading.Thread(target=relay.run, kwargs={"stop": stop}) for relay in relays]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(15)
            assert not any(thread.is_alive() for thread in threads)


@pytest.fixture
def relays(database: Database) -> Iterator[Relays]:
    """A maker of relays on this test's database."""
    made = Relays(database)
    yield made
    for relay in made.made:
        relay.close()


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """The SDK's clients as the product makes them, in this test's account."""
    made = Clients(Aws())
    yield made
    made.close()


@pytest.fixture(params=["tickets.fifo", "tickets"], ids=["fifo", "standard"])
def queue(request: pytest.FixtureRequest, clients: Clients) -> Queue:
    """A queue, once of each kind."""
    made = Queue(clients, QueueSpec(request.param))
    made.ensure()
    return made


@pytest.fixture
def fifo(clients: Clients) -> Queue:
    """A FIFO queue."""
    made = Queue(clients, QueueSpec("tickets.fifo"))
    made.ensure()
    return made


@pytest.fixture
def sending(clients: Clients, fifo: Queue) -> tuple[Clients, Queue]:
    """Clients and a queue that they send to."""
    return clients, fifo


#: SQL, for :func:`claiming`.
IN_TRANSACTION = "xact_start IS NOT NULL"


def claiming(database: Database, condition: str = "true") -> int:
    """How many sessions of relays there are with ``condition`` (SQL), but for those that listen."""
    with database.preparer.connect() as connection:
        return int(
            connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'baton_relay'"
                    f" AND datname = current_database() AND query NOT LIKE 'LISTEN%' AND {condition}"
                )
            ).scalar_one()
        )


def sender_of(queue: Queue) -> QueueSender:
    """The product's own sender."""
    return QueueSender(queue, parallel=4)


@pytest.fixture
def pooler(state_folder: Path, database: Database) -> Iterator[Pooler]:
    """A transaction pooler in front of this test's server."""
    with open_pooler(state_folder / "pgbouncer", server_port=database.cluster.server.port) as made:
        yield made
