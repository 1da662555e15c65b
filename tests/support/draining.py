"""Draining a queue in Postgres, by a relay and by what a team would otherwise take: each in processes of its own.

Every drain takes what is due in batches and marks it done, durably; nothing is sent anywhere. Peers are used by their
own storage calls, without the frameworks around them, which is to their advantage.
"""

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.synchronize import Barrier
from typing import Any

from sqlalchemy import text

from baton.aws.errors import AwsError
from baton.aws.sending import Entry, SendResult, SendState, Sent
from baton.db.connect import database_engine
from baton.db.states import Lane
from baton.outbox.relay import Relay
from baton.settings.work import Relay as RelaySettings
from support.databases import Database, connect

Drain = Callable[[], int]
"""Takes one batch and says how many it held; 0: there is no more."""
Opening = Callable[[str, int], AbstractContextManager[Drain]]
"""Connects to a database, for batches of a size, until the block ends."""


_CHUNK = 1000


def settle(database: Database) -> None:
    """Vacuum, analyze and write a checkpoint, so that no run pays for what came before it."""
    engine = connect(database.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("VACUUM ANALYZE"))
        connection.execute(text("CHECKPOINT"))
    engine.dispose()


class NullSender:
    """Takes everything, does nothing, and counts."""

    def __init__(self) -> None:
        self.taken = 0
        self._lock = threading.Lock()

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """All sent."""
        with self._lock:
            self.taken += len(entries)
        return Sent(tuple(SendResult(entry.key, SendState.SENT, entry.key) for entry in entries), None)

    def mend(self, failure: AwsError) -> None:
        """Nothing to mend."""


@contextmanager
def relay(url: str, size: int) -> Iterator[Drain]:
    """A relay as it runs on a direct connection, with as many batches in flight as it has by itself."""
    config = RelaySettings(batch_size=size)
    engine = database_engine(url, application="bench", prepare=True, pool_size=config.in_flight)
    sender = NullSender()
    one = Relay(engine, lane=Lane.INGEST, sender=sender, config=config)
    one.connect()  # as the peers are, before anybody begins

    def drain() -> int:
        before = sender.taken
        one.drain()
        return sender.taken - before

    yield drain
    one.close()
    engine.dispose()


@contextmanager
def pgmq(url: str, size: int) -> Iterator[Drain]:
    """pgmq: read with a visibility time, then archive, a transaction each."""
    from pgmq import PGMQueue  # noqa: PLC0415 - of the benchmarks' own requirements
    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    pool = ConnectionPool(_plain(url), min_size=1, max_size=1, open=True)
    queue = PGMQueue(pool=pool, init_extension=False)

    def drain() -> int:
        messages = queue.read_batch("bench", vt=60, batch_size=size) or []
        return len(queue.archive_batch("bench", [each.msg_id for each in messages])) if messages else 0

    yield drain
    pool.close()


@contextmanager
def pgqueuer(url: str, size: int) -> Iterator[Drain]:
    """pgqueuer: dequeue a batch, then log it, a transaction each."""
    import psycopg  # noqa: PLC0415
    from pgqueuer.adapters.drivers.psycopg import PsycopgDriver  # noqa: PLC0415
    from pgqueuer.adapters.persistence.queries import Queries  # noqa: PLC0415

    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(psycopg.AsyncConnection.connect(_plain(url), autocommit=True))
    queries = Queries(PsycopgDriver(connection))
    yield lambda: loop.run_until_complete(_pgqueuer(queries, size))
    loop.run_until_complete(connection.close())
    loop.close()


async def _pgqueuer(queries: Any, size: int) -> int:
    from datetime import timedelta  # noqa: PLC0415
    from uuid import uuid4  # noqa: PLC0415

    from pgqueuer.ports.repository import EntrypointExecutionParameter  # noqa: PLC0415

    jobs = await queries.dequeue(
        batch_size=size,
        entrypoints={"bench": EntrypointExecutionParameter(0)},
        queue_manager_id=uuid4(),
        global_concurrency_limit=None,
        heartbeat_timeout=timedelta(seconds=60),
    )
    if jobs:
        await queries.log_jobs([(job, "successful", None) for job in jobs])
    return len(jobs)


@contextmanager
def procrastinate(url: str, size: int) -> Iterator[Drain]:
    """procrastinate: fetch and finish, job by job; it has no batches."""
    import procrastinate as peer  # noqa: PLC0415
    from procrastinate.jobs import Status  # noqa: PLC0415

    loop = asyncio.new_event_loop()
    app = peer.App(connector=peer.PsycopgConnector(conninfo=_plain(url), min_size=1, max_size=1))
    loop.run_until_complete(app.open_async())
    manager = app.job_manager
    worker: int = loop.run_until_complete(manager.register_worker())

    async def drain() -> int:
        for done in range(size):
            job = await manager.fetch_job(queues=None, worker_id=worker)
            if job is None:
                return done
            await manager.finish_job(job=job, status=Status.SUCCEEDED, delete_job=False)
        return size

    yield lambda: loop.run_until_complete(drain())
    loop.run_until_complete(app.close_async())
    loop.close()


def fill_pgmq(url: str, count: int) -> None:
    """A queue of its own with so many messages, in a database that may have none yet."""
    import psycopg  # noqa: PLC0415
    from pgmq import get_embedded_install_sql, install_pgmq_sql  # noqa: PLC0415

    with psycopg.connect(_plain(url)) as connection:
        if connection.execute("SELECT to_regnamespace('pgmq')").fetchone() == (None,):
            install_pgmq_sql(get_embedded_install_sql(), conn=connection)
        connection.execute("SELECT pgmq.drop_queue('bench') FROM pgmq.meta WHERE queue_name = 'bench'")
        connection.execute("SELECT pgmq.create('bench')")
        connection.execute(
            "SELECT count(*) FROM pgmq.send_batch('bench', (SELECT array_agg(jsonb_build_object('ticket', i))"
            " FROM generate_series(1, %s) i))",
            [count],
        )


def fill_pgqueuer(url: str, count: int) -> None:
    """So many jobs, in a database that may not know pgqueuer yet."""
    import psycopg  # noqa: PLC0415
    from pgqueuer.adapters.drivers.psycopg import PsycopgDriver  # noqa: PLC0415
    from pgqueuer.adapters.persistence.queries import Queries  # noqa: PLC0415

    async def fill() -> None:
        async with await psycopg.AsyncConnection.connect(_plain(url), autocommit=True) as connection:
            queries = Queries(PsycopgDriver(connection))
            if not await queries.schema_is_installed():
                await queries.install()
            for _ in range(0, count, _CHUNK):
                await queries.enqueue(["bench"] * _CHUNK, [b"ticket"] * _CHUNK, [0] * _CHUNK)

    asyncio.run(fill())


def fill_procrastinate(url: str, count: int) -> None:
    """So many jobs, in a database that may not know procrastinate yet."""
    import procrastinate as peer  # noqa: PLC0415
    from procrastinate.jobs import Job  # noqa: PLC0415

    async def fill() -> None:
        app = peer.App(connector=peer.PsycopgConnector(conninfo=_plain(url), min_size=1, max_size=1))
        async with app.open_async():
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()
            job = Job(id=None, queue="bench", lock=None, queueing_lock=None, task_name="bench", task_kwargs={"n": 1})
            for _ in range(0, count, _CHUNK):
                await app.job_manager.batch_defer_jobs_async([job] * _CHUNK)

    asyncio.run(fill())


def rate(opening: Opening, url: str, *, size: int, processes: int, expected: int) -> float:
    """How many a second, from the moment that all processes are connected to the end of the last one.

    Raises AssertionError where not exactly `expected` were drained.
    """
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(processes)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_stand, initargs=(ready,)) as pool:
        runs = list(pool.map(_drain, *zip(*[(opening, url, size)] * processes, strict=True)))
    drained = sum(count for count, _, _ in runs)
    assert drained == expected, f"{getattr(opening, '__name__', opening)} drained {drained} of {expected}"
    return drained / (max(end for _, _, end in runs) - min(begin for _, begin, _ in runs))


_ready: Barrier


def _stand(ready: Barrier) -> None:
    global _ready  # noqa: PLW0603 - a pool's processes can be given it in no other way
    _ready = ready


def _drain(opening: Opening, url: str, size: int) -> tuple[int, float, float]:
    with opening(url, size) as drain:
        _ready.wait(60)
        began = time.monotonic()
        total = 0
        while count := drain():
            total += count
        return total, began, time.monotonic()


def _plain(url: str) -> str:
    return url.replace("+psycopg", "")
