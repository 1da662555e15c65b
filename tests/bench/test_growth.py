"""What a finalized upload pays for its ticket, and what it and the relay pay for a long past."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from uuid_utils.compat import uuid7

from baton.db.connect import Executor, database_engine, firm_transaction
from baton.db.rows import lock_document
from baton.db.states import EventType, Lane, ProcessingStatus
from baton.documents.audit import AuditEvent, record_event
from baton.documents.machine import move
from baton.documents.upload import create_document, finalize_upload
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from baton.outbox.keys import subject_of
from baton.outbox.relay import Relay
from baton.outbox.tickets import pointer_of, write_first
from baton.settings.work import Relay as RelaySettings
from bench.conftest import SERVER
from support import atscale, draining
from support.databases import Cluster, Database
from support.figures import Figure, Figures
from support.producing import NullStore
from support.tickets import Bulk, fill

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

PAST, BLOCK, ROUNDS, TICKETS, CLIENTS = 2_500_000, 200, 5, 6_000, 4
Finalize = Callable[[Executor, UUID], object]


def with_ticket(executor: Executor, document_id: UUID) -> None:
    """What finalizing does once it has looked at the object."""
    document = lock_document(executor, document_id)
    assert document is not None
    ticket = write_first(executor, subject_of(document, EventType.INGEST_REQUESTED), pointer=pointer_of(document))
    document = move(executor, document, ProcessingStatus.UPLOADED, ingest_ticket_id=ticket.id, size_bytes=1000)
    record_event(executor, document, AuditEvent.UPLOADED, actor="bench", detail={"size_bytes": 1000})


def without_ticket(executor: Executor, document_id: UUID) -> None:
    """The same without writing a ticket; the mark is a number that stands for one."""
    document = lock_document(executor, document_id)
    assert document is not None
    document = move(executor, document, ProcessingStatus.UPLOADED, ingest_ticket_id=1, size_bytes=1000)
    record_event(executor, document, AuditEvent.UPLOADED, actor="bench", detail={"size_bytes": 1000})


def whole(executor: Executor, document_id: UUID) -> object:
    """The product's own."""
    return finalize_upload(executor, document_id=document_id, store=NullStore(), actor="bench")


def _finalized(engine: Engine, finalize: Finalize) -> list[float]:
    """Seconds from begin to commit of each of a block of documents, which were made before."""
    firm, matter = uuid4(), uuid7()
    with firm_transaction(engine, firm) as connection:
        made = [
            create_document(connection, firm_id=firm, matter_id=matter, name="a.txt", content_type="text/plain")
            for _ in range(BLOCK)
        ]
    took = []
    for each in made:
        began = time.perf_counter()
        with firm_transaction(engine, firm) as connection:
            finalize(connection, each.id)
        took.append(time.perf_counter() - began)
    return took


def test_the_price_of_a_ticket(durable: Database, figures: Figures) -> None:
    """The same transaction with and without its ticket, in turns; the median of the blocks' ratios."""
    engine = database_engine(durable.url("baton_member_app"), application="bench", prepare=True)
    _finalized(engine, with_ticket)
    pairs = [
        (statistics.median(_finalized(engine, with_ticket)), statistics.median(_finalized(engine, without_ticket)))
        for _ in range(ROUNDS)
    ]
    engine.dispose()
    figures.record(
        Figure(
            "finalize with its ticket, from begin to commit",
            round(1000 * statistics.median(pair[0] for pair in pairs), 2),
            "ms",
            "",
            peer=("without", round(1000 * statistics.median(pair[1] for pair in pairs), 2)),
            ratio=round(statistics.median(one / other for one, other in pairs), 2),
        )
    )


def test_the_price_of_waking(durable: Database, figures: Figures, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same transactions, four at a time, with the relays woken after each commit and with nobody woken."""
    engine = database_engine(durable.url("baton_member_app"), application="bench", pool_size=CLIENTS, prepare=True)

    def a_second() -> float:
        began = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            done = [pool.submit(_finalized, engine, with_ticket) for _ in range(CLIENTS)]
            count = sum(len(each.result()) for each in done)
        return count / (time.perf_counter() - began)

    a_second()
    pairs = []
    for _ in range(ROUNDS):
        woken = a_second()
        with monkeypatch.context() as muted:
            muted.setattr("baton.outbox.wake.after_commit", lambda *_: None)
            pairs.append((woken, a_second()))
    engine.dispose()
    figures.record(
        Figure(
            f"finalize, {CLIENTS} at a time, waking the relays",
            round(statistics.median(pair[0] for pair in pairs)),
            "a second",
            "",
            peer=("waking nobody", round(statistics.median(pair[1] for pair in pairs))),
            ratio=round(statistics.median(one / other for one, other in pairs), 2),
        )
    )


@dataclass(frozen=True)
class Grown:
    """A database with nothing in it, and one with a long past; on the same durable server."""

    empty: Database
    grown: Database
    past: int
    rounds: int

    @property
    def about(self) -> str:
        """In words."""
        return f"beside {self.past:,} documents and {2 * self.past:,} tickets"


@pytest.fixture(scope="module")
def grown(session_folder: Path, postgres_binaries: PostgresBinaries, scale: float) -> Iterator[Grown]:
    """Filled, vacuumed, and all of it on disk."""
    with EmbeddedPostgres(session_folder / "growth-bench", binaries=postgres_binaries, settings=SERVER) as server:
        cluster = Cluster(server)
        made = Grown(cluster.create(), cluster.create(), max(int(PAST * scale), 20_000), ROUNDS if scale >= 0.5 else 1)
        atscale.load(made.grown, made.past, say=lambda line: print(line, flush=True))  # noqa: T201
        yield made
        for each in (made.empty, made.grown):
            each.close()


def test_finalizing_beside_a_long_past(grown: Grown, figures: Figures) -> None:
    """In turns; the median of the blocks' ratios."""
    engines = [database_engine(each.url("baton_member_app"), application="b") for each in (grown.grown, grown.empty)]
    for each in engines:
        _finalized(each, whole)
    pairs = [[statistics.median(_finalized(each, whole)) for each in engines] for _ in range(grown.rounds)]
    for each in engines:
        each.dispose()
    ratio = round(statistics.median(one / other for one, other in pairs), 2)
    figures.record(
        Figure(
            f"finalize {grown.about}",
            round(1000 * statistics.median(pair[0] for pair in pairs), 2),
            "ms",
            "at most 1.2 times that of empty tables",
            peer=("empty tables", round(1000 * statistics.median(pair[1] for pair in pairs), 2)),
            ratio=ratio,
            holds=ratio <= 1.2,
        )
    )


def test_draining_beside_a_long_past(grown: Grown, figures: Figures) -> None:
    """In turns; what a ticket costs the relay. Then with somebody's old snapshot open, which keeps every dead entry."""
    for each in (grown.grown, grown.empty):
        _ticket(each)
    pairs = [[_ticket(each) for each in (grown.grown, grown.empty)] for _ in range(grown.rounds)]
    _tell(figures, f"relay, a ticket, {grown.about}", pairs, held=True)
    with grown.grown.preparer.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        old.execute(text("SELECT count(*) FROM app.clock()"))
        old.execute(text("SELECT pg_current_xact_id()"))
        pairs = [[_ticket(each) for each in (grown.grown, grown.empty)] for _ in range(grown.rounds)]
    _tell(
        figures,
        f"relay, a ticket, {grown.about}, {grown.rounds * TICKETS:,} sent since a snapshot that is still open",
        pairs,
        held=False,
    )


def _tell(figures: Figures, name: str, pairs: list[list[float]], *, held: bool) -> None:
    ratio = round(statistics.median(one / other for one, other in pairs), 2)
    figures.record(
        Figure(
            name,
            round(1e6 * statistics.median(pair[0] for pair in pairs)),
            "µs",
            "at most 1.2 times that of empty tables" if held else "",
            peer=("empty tables", round(1e6 * statistics.median(pair[1] for pair in pairs))),
            ratio=ratio,
            holds=ratio <= 1.2,
        )
    )


def _ticket(database: Database) -> float:
    """Seconds that one relay takes for one of many tickets of several firms."""
    for _ in range(10):
        fill(database, Bulk(count=TICKETS // 10, firm=uuid4()))
    draining.settle(database)
    engine = database_engine(database.url("baton_relay"), application="bench", prepare=True)
    relay = Relay(engine, lane=Lane.INGEST, sender=draining.NullSender(), config=RelaySettings(batch_size=100))
    relay.connect()
    began = time.perf_counter()
    sent = 0
    while count := relay.run_once().dispatched:
        sent += count
    took = time.perf_counter() - began
    relay.close()
    engine.dispose()
    assert sent >= TICKETS
    return took / sent
