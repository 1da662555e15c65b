"""A lane with real tickets on a real queue, and handlers that record."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Row, text

from baton.aws.clients import Clients
from baton.aws.queues import Queue, QueueSpec
from baton.aws.sending import Entry
from baton.consumers.backoff import Backoff
from baton.consumers.tickets import TicketConsumer
from baton.consumers.verdicts import Ack, Verdict
from baton.db.access import Role
from baton.db.connect import database_engine
from baton.db.states import Lane
from baton.outbox import envelope
from baton.outbox.tickets import Ticket
from baton.settings.loading import load
from baton.settings.work import Consumer
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.tickets import Bulk, fill

FAST = Backoff(initial=0.05, maximum=0.2)


@dataclass
class Recorder:
    """A handler that says what the test wants, and remembers what it was asked."""

    answer: Callable[[Ticket], Verdict] = lambda ticket: Ack()
    surrender: Callable[[Ticket], Verdict] = lambda ticket: Ack()
    began: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)
    together: set[int] = field(default_factory=set)
    """Tickets that two threads (of any consumer with this recorder) had at once."""
    _now: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, ticket: Ticket) -> Verdict:
        """Remember, and answer."""
        with self._lock:
            if ticket.id in self._now:
                self.together.add(ticket.id)
            self._now.append(ticket.id)
            self.began.append(ticket.id)
        try:
            verdict = self.answer(ticket)
        finally:
            with self._lock:
                self._now.remove(ticket.id)
        with self._lock:
            if isinstance(verdict, Ack):
                self.ended.append(ticket.id)
        return verdict

    def give_up(self, ticket: Ticket) -> Verdict:
        """Remember, and answer."""
        with self._lock:
            self.given_up.append(ticket.id)
        return self.surrender(ticket)


class Rig:
    """One lane: its queue, its tickets, its consumers."""

    def __init__(self, database: Database, aws: AwsAccount, *, fifo: bool, visibility: int) -> None:
        self.database = database
        self.aws = aws
        self.clients = Clients(load().aws)
        suffix = ".fifo" if fifo else ""
        self.queue = Queue(
            self.clients,
            QueueSpec(f"lane{suffix}", dead=f"lane-dead{suffix}", visibility=visibility),
        )
        self.queue.ensure()
        self.engine = database_engine(database.url(Role.EXTRACTOR), application="test", pool_size=12)
        self.config = Consumer(receive_wait=1, workers=4, shutdown_grace=5.0)
        self._running: list[tuple[threading.Event, threading.Thread]] = []

    def write(self, count: int, *, documents: int | None = None, lane: str = "ingest") -> list[int]:
        """Tickets as the relay left them: dispatched. Returns their ids."""
        before = self._ids()
        fill(self.database, Bulk(count=count, firm=uuid4(), documents=documents, dispatched=True, lane=lane))
        return [each for each in self._ids() if each not in before]

    def send(self, ids: list[int], **changes: Any) -> None:
        """Their messages, in order."""
        rows = {row.id: row for row in self.rows()}
        entries = []
        for ticket_id in ids:
            row = rows[ticket_id]
            fields = {
                "ticket_id": row.id,
                "idempotency_key": row.idempotency_key,
                "event_type": row.event_type,
                "firm_id": row.firm_id,
                "matter_id": row.matter_id,
                "document_id": row.document_id,
                "object_key": row.object_key,
                "content_type": row.content_type,
            }
            body = envelope.write(**fields | changes)
            entries.append(Entry(key=str(ticket_id), body=body, group=str(row.document_id), deduplication=uuid4().hex))
        sent = self.queue.send_batch(entries)
        assert sent.failure is None
        assert all(result.message_id for result in sent.results)

    def send_raw(self, body: str, *, group: str | None = None) -> None:
        """A message of any text."""
        sent = self.queue.send_batch(
            [Entry(key="raw", body=body, group=group or uuid4().hex, deduplication=uuid4().hex)]
        )
        assert sent.results[0].message_id

    def rows(self) -> list[Row[Any]]:
        """All tickets."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text("SELECT * FROM ops.document_ingest_outbox ORDER BY id")))

    def row(self, ticket_id: int) -> Row[Any]:
        """One ticket."""
        return next(row for row in self.rows() if row.id == ticket_id)

    def _ids(self) -> list[int]:
        return [row.id for row in self.rows()]

    def consumer(self, handler: Any, *, stop: threading.Event | None = None, **changes: Any) -> TicketConsumer:
        """A consumer that does not run yet; ``changes`` are of its settings or of its making."""
        making = {
            name: changes.pop(name)
            for name in ("prefetch", "engine", "queue", "lane", "backoff", "progress")
            if name in changes
        }
        options: dict[str, Any] = {
            "queue": self.queue,
            "lane": Lane.INGEST,
            "engine": self.engine,
            "backoff": FAST,
        }
        return TicketConsumer(
            handler=handler, config=replace(self.config, **changes), stop=stop or threading.Event(), **options | making
        )

    def start(self, handler: Any, **changes: Any) -> threading.Event:
        """Run a consumer in a thread of its own until the event that comes back is set, or the test ends."""
        stop = threading.Event()
        thread = threading.Thread(target=self.consumer(handler, stop=stop, **changes).run, name="consumer")
        thread.start()
        self._running.append((stop, thread))
        return stop

    def end(self, stop: threading.Event, *, within: float = 10.0) -> float:
        """Stop one consumer, and see that it ends; seconds that it took."""
        began = time.monotonic()
        stop.set()
        thread = next(thread for event, thread in self._running if event is stop)
        thread.join(within)
        assert not thread.is_alive()
        return time.monotonic() - began

    def depth(self) -> tuple[int, int]:
        """Visible and hidden messages."""
        depth = self.queue.depth()
        return depth.visible, depth.in_flight

    def drained(self) -> bool:
        """Whether the queue is empty."""
        return self.depth() == (0, 0)

    def close(self) -> None:
        """End whatever runs."""
        for stop, _ in self._running:
            stop.set()
        for _, thread in self._running:
            thread.join(20)
        self.engine.dispose()
        self.clients.close()


@pytest.fixture(params=["fifo", "standard"])
def rig(database: Database, aws: AwsAccount, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A lane over a FIFO queue, and once more over a standard one."""
    made = Rig(database, aws, fifo=request.param == "fifo", visibility=30)
    yield made
    made.close()


@pytest.fixture
def fifo(database: Database, aws: AwsAccount) -> Iterator[Rig]:
    """A lane over a FIFO queue."""
    made = Rig(database, aws, fifo=True, visibility=30)
    yield made
    made.close()


@pytest.fixture(params=["fifo", "standard"])
def hasty(database: Database, aws: AwsAccount, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A lane whose messages are hidden for two seconds only."""
    made = Rig(database, aws, fifo=request.param == "fifo", visibility=2)
    yield made
    made.close()


@pytest.fixture
def recorder() -> Recorder:
    """A handler."""
    return Recorder()
