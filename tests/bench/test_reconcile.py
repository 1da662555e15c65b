"""The reconcile loops beside ten million documents and twenty million tickets."""

import os
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import Engine, func, not_, select, text

from baton.db.access import Role
from baton.db.connect import database_engine, firm_transaction
from baton.documents.upload import finalize_upload
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from baton.reconcilers import resting
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, HEALTHY_PREFIX, parameters, verdict
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.lanes import NEVER
from baton.reconcilers.planning import Ground
from baton.reconcilers.questions import word
from baton.reconcilers.results import Mode, PassResult
from baton.reconcilers.situation import situation
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from support import atscale
from support.databases import Cluster, Database
from support.figures import Figure, Figures
from support.healing import healing
from support.plans import Plan, explain
from support.producing import NullStore
from support.sickness import OF_EACH, sicken
from support.waiting import wait_until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

DOCUMENTS: Final = 10_000_000
BACKLOG: Final = 500_000
SICK: Final = 1000
SMALL: Final = 100_000
PASSES: Final = 100
#: Repairs a minute, raised, so that ten thousand are healed within two minutes.
RATE: Final = 6000
LOST: Final = 10_000
BLOCKS, BLOCK_SECONDS, FINALIZES_PER_SECOND = 10, 5.0, 60
SCRUB_SECONDS: Final = 12.0
#: While it is filled nothing of it need survive a crash.
FILLING: Final = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "3GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}
#: A server as one would run it on such a machine; waits for locks are told early.
SERVING: Final = {
    "shared_buffers": "5GB",
    "effective_cache_size": "14GB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
    "log_lock_waits": "on",
    "deadlock_timeout": "20ms",
    "log_line_prefix": "@@%u@@ ",
    "shared_preload_libraries": "pg_stat_statements",
}


@dataclass(frozen=True)
class Scale:
    """The filled database, and one that is a hundredth of it."""

    database: Database
    small: Database
    server: EmbeddedPostgres
    documents: int

    @property
    def about(self) -> str:
        """How many documents there are, in words."""
        return f"{self.documents:,} documents, {2 * self.documents:,} tickets"


@pytest.fixture(scope="module")
def at_scale(
    request: pytest.FixtureRequest, session_folder: Path, postgres_binaries: PostgresBinaries, scale: float
) -> Iterator[Scale]:
    """Filled fast, then served as a database that matters is."""
    count = max(int(DOCUMENTS * scale), 20_000)
    kept = request.config.getoption("--bench-keep")
    folder = session_folder / "at-scale" if kept is None else Path(kept).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    names = folder / f"{count}.names"
    if not names.exists():
        with EmbeddedPostgres(
            folder / str(count), binaries=postgres_binaries, durable=False, settings=FILLING
        ) as server:
            cluster = Cluster(server)
            large, small = cluster.create(), cluster.create()
            done = atscale.load(large, count, say=_say)
            atscale.load(small, min(SMALL, count // 2))
            _say(f"{done.documents:,} documents and {done.tickets:,} tickets in {done.seconds:.0f} s")
            for database in (large, small):
                database.leave()
        os.sync()
        names.write_text(f"{large.name} {small.name}")
    server = EmbeddedPostgres(folder / str(count), binaries=postgres_binaries, settings=SERVING)
    with server:
        cluster = Cluster(server)
        large, small = (Database(cluster, name) for name in names.read_text().split())
        atscale.clean(large, small)  # one that was kept holds what the run before removed
        with atscale.consumed(large, small):
            yield Scale(large, small, server, count)
        for engine in _engines.values():
            engine.dispose()
        _engines.clear()
        for database in (large, small):
            database.leave()


def test_a_hot_pass(at_scale: Scale, figures: Figures) -> None:
    """Nothing is wrong: with nothing waiting, with half a million waiting on the queue, and as many for the relay."""
    database = at_scale.database
    backlog = min(BACKLOG, at_scale.documents // 4)
    _hot(at_scale, figures, "nothing waiting")
    peer = _whole_table(database)
    firms = [atscale.queue(database, backlog, sent=True)]
    quiet = _hot(at_scale, figures, f"{backlog:,} queued and sent", peer=peer)
    firms.append(atscale.queue(database, backlog, sent=False))
    _hot(at_scale, figures, f"{backlog:,} more before a relay that is down")
    assert quiet.total == 0
    _forget(database, *firms)


def _hot(at_scale: Scale, figures: Figures, what: str, *, peer: float | None = None) -> PassResult:
    """Passes without backstop and scrub, one after the other, of a loop that observes and of one that repairs."""
    database = at_scale.database
    result = _loop(database, Mode.OBSERVE).run_once()
    assert (result.total, result.failures) == (0, []), result.found
    for mode in (Mode.OBSERVE, Mode.REPAIR):
        measured = _passes(_loop(database, mode), _engine(database, mode), database)
        name = f"hot pass that would {mode}, {what}"
        figures.record(
            Figure(
                name=f"{name}: time",
                value=round(measured.milliseconds, 2),
                unit="ms",
                target="< 5 ms" if mode is Mode.OBSERVE else "",
                holds=mode is not Mode.OBSERVE or measured.milliseconds < 5,
                peer=None if peer is None else ("the same conditions over the whole table", round(peer, 1)),
                ratio=None if peer is None else round(peer / measured.milliseconds, 1),
            )
        )
        figures.record(
            Figure(
                name=f"{name}: in the database",
                value=round(measured.inside, 2),
                unit="ms",
                target="",
                holds=True,
            )
        )
        figures.record(
            Figure(
                name=f"{name}: buffers",
                value=measured.buffers,
                unit="buffers",
                target="≤ 200",
                holds=measured.buffers <= 200,
            )
        )
    return result


@dataclass(frozen=True)
class Measured:
    """What a pass costs: the median of its time, and the mean of what the server did for it."""

    milliseconds: float
    inside: float
    """Milliseconds of execution in the server, without planning."""
    buffers: int


def _passes(loop: Reconciler, engine: Engine, database: Database, *, count: int = PASSES) -> Measured:
    for _ in range(3):
        loop.run_once()
    with database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as looking:
        looking.execute(text("CREATE EXTENSION IF NOT EXISTS pg_stat_statements"))
        looking.execute(text("SELECT pg_stat_statements_reset()"))
        seconds = [_seconds(loop.run_once) for _ in range(count)]
        buffers, inside = looking.execute(
            text(
                "SELECT sum(shared_blks_hit + shared_blks_read), sum(total_exec_time) FROM pg_stat_statements"
                " JOIN pg_roles ON pg_roles.oid = userid WHERE rolname = :role"
                " AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            ),
            {"role": engine.url.username},
        ).one()
    return Measured(statistics.median(seconds) * 1000, float(inside) / count, round(buffers / count))


def _whole_table(database: Database) -> float:
    """Milliseconds that it takes to ask the conditions of one aspect of every document."""
    s = situation(Aspect.REGISTRATION)
    answer = verdict(Aspect.REGISTRATION)
    statement = select(func.count()).select_from(s.source).where(not_(func.starts_with(answer, word(HEALTHY_PREFIX))))
    engine = database.engine(Role.OBSERVER)
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        ground = _loop(database, Mode.OBSERVE).ground(connection)
        values = parameters(lanes=ground.lanes, graces=ground.graces, now=ground.now)
        return _seconds(lambda: connection.execute(statement, values).scalar_one()) * 1000


def test_the_scrub(at_scale: Scale, figures: Figures) -> None:
    """Documents a second, what it costs a core at the default rate, and the period that follows."""
    database = at_scale.database
    ground = _known(database)
    ids = next(atscale.identities(database, after=_middle(at_scale), size=1000))
    values = parameters(lanes=ground.lanes, graces=ground.graces, now=ground.now) | {"document_ids": ids}
    plan = explain(database, Role.RECONCILER, resting.question(), values, generic=False)
    buffers = plan.buffers / len(ids)
    figures.record(Figure("scrub: buffers", round(buffers, 2), "buffers a document", "≤ 10", holds=buffers <= 10))

    engine = database_engine(database.url(Role.RECONCILER), application="bench", pool_size=1)
    loop = Reconciler(
        engine, settings=Settings(reconcile=Reconcile(backstop_rows=0, scrub_rate=100_000)), mode=Mode.REPAIR
    )
    pid, stop = os.getpid(), threading.Event()
    warm = threading.Event()
    threading.Timer(2.0, warm.set).start()
    loop.run_once(warm)  # the statements are compiled
    backend = _backend(engine)  # after it: a connection that broke meanwhile was made anew
    threading.Timer(SCRUB_SECONDS, stop.set).start()
    began, used, used_there = time.perf_counter(), _cpu(pid), _cpu(backend)
    scrubbed = 0
    while not stop.is_set():
        scrubbed += loop.run_once(stop).scrubbed
    seconds = time.perf_counter() - began
    client, server = (_cpu(pid) - used) / scrubbed * 1e6, (_cpu(backend) - used_there) / scrubbed * 1e6
    assert _backend(engine) == backend
    engine.dispose()
    rate = Reconcile().scrub_rate
    share = (client + server) * rate / 1e6 * 100
    per_second = scrubbed / seconds
    figures.record(Figure("scrub: at full speed", round(per_second), "documents/s", "", holds=True))
    figures.record(Figure("scrub: CPU of the loop", round(client, 1), "µs a document", "", holds=True))
    figures.record(Figure("scrub: CPU of the server", round(server, 1), "µs a document", "", holds=True))
    figures.record(
        Figure(
            f"scrub: of a core at the default rate of {rate:.0f} documents/s",
            round(share, 2),
            "% of a core",
            "aim 2 %",
            holds=share <= 2.5,
        )
    )
    for millions in (10, 100):
        hours = millions * 1e6 / rate / 3600
        figures.record(
            Figure(f"scrub: period at the default rate, {millions} million", round(hours, 1), "hours", "", holds=True)
        )


def test_healing_beside_live_work(at_scale: Scale, figures: Figures) -> None:
    """Ten blocks with repairs and ten without, in turn: what a finalized upload takes, and what it ever waits for."""
    database = at_scale.database
    total = int(2 * BLOCKS * BLOCK_SECONDS * FINALIZES_PER_SECOND * 1.2)
    firm, *documents = atscale.await_upload(database, total)
    before = _repaired(database)
    lost = atscale.lose(database, LOST)
    waiting = iter(documents)
    with healing(database, interval=0.5, repairs_per_minute=1_000_000, page_size=25, page_limit=1) as healer:
        _finalize(database, firm, waiting, seconds=3)
        _warm(healer.go, healer.idle)
        ratios = []
        for _ in range(BLOCKS):
            without = _finalize(database, firm, waiting, seconds=BLOCK_SECONDS)
            healer.go.set()
            beside = _finalize(database, firm, waiting, seconds=BLOCK_SECONDS)
            healer.go.clear()
            wait_until(healer.idle.is_set, timeout=60)
            ratios.append(_p99(beside) / _p99(without))
    healed = _repaired(database) - before
    waits = _waits(at_scale.server)
    ratio = statistics.median(ratios)
    figures.record(
        Figure(
            "finalized uploads beside repairs: p99 with / without, median of ten blocks",
            round(ratio, 3),
            "ratio",
            "≤ 1.25",
            holds=ratio <= 1.25,
        )
    )
    minutes = BLOCKS * BLOCK_SECONDS / 60
    figures.record(Figure("repairs meanwhile", round(healed / minutes), "repairs a minute", "", holds=healed > 0))
    figures.record(Figure("finalized uploads that waited for a lock", waits, "waits", "0", holds=waits == 0))
    _forget(database, firm, lost)


def test_healing_keeps_to_its_rate(at_scale: Scale, figures: Figures) -> None:
    """Ten thousand lost tickets, and no more repairs in any minute than were set."""
    database = at_scale.database
    count = min(LOST, at_scale.documents // 10)
    before = _repaired(database)
    lost = atscale.lose(database, count)
    began = time.monotonic()
    with healing(database, interval=0.5, repairs_per_minute=RATE) as healer:
        healer.go.set()
        wait_until(lambda: _repaired(database) - before >= count, timeout=600, interval=1.0)
        seconds = time.monotonic() - began
    with database.preparer.connect() as connection:
        most = connection.execute(
            text(
                "SELECT max(n) FROM (SELECT count(*) n FROM ops.registration_repair WHERE firm_id = :firm"
                " GROUP BY date_trunc('minute', at))"
            ),
            {"firm": lost},
        ).scalar_one()
        again = connection.execute(
            text(
                "SELECT count(*), count(DISTINCT document_id) FROM ops.document_ingest_outbox"
                " WHERE firm_id = :firm AND generation = 2"
            ),
            {"firm": lost},
        ).one()
    figures.record(Figure(f"healing {count:,} lost tickets", round(seconds), "s", "", holds=True))
    # what was reserved at the end of a minute may be written down at the beginning of the next
    bound = RATE + Reconcile().batch_size
    figures.record(
        Figure(
            "repairs in the busiest minute",
            most,
            "repairs",
            f"≤ {RATE} (set), and a batch of the minute before",
            holds=most <= bound,
        )
    )
    assert tuple(again) == (count, count), "each is asked for again once"
    _forget(database, lost)


def test_cost_follows_what_is_wrong(at_scale: Scale, figures: Figures) -> None:
    """A thousand of one discrepancy cost the same in a table a hundred times as large; a thousand of each, a page of each."""
    costs = {}
    atscale.clean(at_scale.small, at_scale.database)  # what was healed before has left dead entries in one of them
    for database in (at_scale.small, at_scale.database):
        firm = sicken(database, SICK, "request_stalled")
        measured = _passes(_loop(database, Mode.OBSERVE), _engine(database, Mode.OBSERVE), database, count=5)
        found = _loop(database, Mode.OBSERVE).run_once().found
        assert found == {"request_stalled": SICK}
        costs[database] = measured
        _forget(database, firm)
    small, large = costs[at_scale.small], costs[at_scale.database]
    figures.record(
        Figure(
            f"a pass that finds {SICK:,}, in {at_scale.about}: buffers",
            large.buffers,
            "buffers",
            "≤ twice those at 100,000 documents",
            holds=large.buffers <= 2 * small.buffers,
            peer=("at 100,000 documents", small.buffers),
            ratio=round(large.buffers / small.buffers, 2),
        )
    )
    figures.record(
        Figure(
            f"a pass that finds {SICK:,}, in {at_scale.about}: time",
            round(large.milliseconds, 1),
            "ms",
            "",
            holds=True,
            peer=("at 100,000 documents", round(small.milliseconds, 1)),
            ratio=round(large.milliseconds / small.milliseconds, 2),
        )
    )
    firm = sicken(at_scale.database, SICK)
    plans = _first_pages(at_scale.database)
    pages = sum(plan.buffers for plan in plans)
    figures.record(
        Figure(
            f"{SICK:,} of each of {len(OF_EACH)} discrepancies: a page of each",
            pages,
            "buffers",
            "≤ 2,500",
            holds=pages <= 2500,
        )
    )
    assert all("Seq Scan" not in plan.text.replace('"Relation Name": "dead_letter"', "") for plan in plans)
    found = _loop(at_scale.database, Mode.OBSERVE).run_once().found
    assert {name: found[name] for name in OF_EACH} == dict.fromkeys(OF_EACH, SICK)
    _forget(at_scale.database, firm)


def _first_pages(database: Database) -> list[Plan]:
    ground = _known(database)
    plans = []
    for name, row in DISCREPANCIES.items():
        for each in row.candidates:
            values = {
                "horizon": each.bound.horizon(now=ground.now, grace=ground.graces[name], lanes=ground.lanes),
                "after_at": NEVER,
                "after_id": 0 if each.by_number else UUID(int=0),
                "page": 100,
            }
            plans.append(explain(database, Role.RECONCILER, each.statement, values))
    return plans


# Loops


#: As the product connects.
_engines: dict[str, Engine] = {}


def _engine(database: Database, mode: Mode) -> Engine:
    url = database.url(_ROLES[mode])
    if url not in _engines:
        _engines[url] = database_engine(url, application="bench", pool_size=3)
    return _engines[url]


_ROLES: Final = {Mode.OBSERVE: Role.OBSERVER, Mode.REPAIR: Role.RECONCILER}


def _loop(database: Database, mode: Mode) -> Reconciler:
    return Reconciler(
        _engine(database, mode), settings=Settings(reconcile=Reconcile(backstop_rows=0, scrub_rate=0.0)), mode=mode
    )


def _known(database: Database) -> Ground:
    with database.engine(Role.OBSERVER).connect() as connection:
        return _loop(database, Mode.OBSERVE).ground(connection)


def _middle(at_scale: Scale) -> UUID:
    with at_scale.database.preparer.connect() as connection:
        return UUID(str(connection.exec_driver_sql(f"SELECT bench.id({at_scale.documents // 2}, 0)").scalar_one()))


def _forget(database: Database, *firms: UUID) -> None:
    for firm in firms:
        atscale.forget(database, firm)


def _repaired(database: Database) -> int:
    with database.preparer.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM ops.registration_repair").scalar_one())


# Live work


def _finalize(database: Database, firm: UUID, documents: Iterator[UUID], *, seconds: float) -> list[float]:
    """Finalize uploads at a steady rate; returns how long each took."""
    engine, store, took = database.engine(Role.MEMBER_APP), NullStore(), []
    pause, began = threading.Event(), time.perf_counter()
    for number in range(int(seconds * FINALIZES_PER_SECOND)):
        if time.perf_counter() - began > seconds:
            break
        pause.wait(max(began + number / FINALIZES_PER_SECOND - time.perf_counter(), 0))
        document = next(documents)
        start = time.perf_counter()
        with firm_transaction(engine, firm) as connection:
            finalize_upload(connection, document_id=document, store=store, actor="counsel")
        took.append(time.perf_counter() - start)
    return took


def _warm(go: Any, idle: Any) -> None:
    go.set()
    wait_until(lambda: not idle.is_set(), timeout=60)
    go.clear()
    wait_until(idle.is_set, timeout=60)


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def _waits(server: EmbeddedPostgres) -> int:
    """Waits for a row that somebody else holds, longer than the deadlock time-out, of those who finalize.

    Autovacuum may take a whole table for a moment, to give back what the benchmark itself has removed at its end.
    """
    log = server.log.read_text(errors="replace")
    row = rf"^@@{Role.MEMBER_APP}@@ .*still waiting for \w+ on (transaction|tuple)"
    return len(re.findall(row, log, re.MULTILINE))


# Measuring


def _seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _backend(engine: Engine) -> int:
    """The process that serves the engine's only connection."""
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def _say(what: str) -> None:
    print(what, flush=True)  # noqa: T201 - a long load says how far it is
