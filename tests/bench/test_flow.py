"""A document's whole way through the processes that a cluster runs, on one machine, and what they take for it."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import text

from baton.aws.clients import Clients
from baton.aws.queues import Queue, configured
from baton.casefile.exhibits import TEXT, Exhibit
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.demo.arrivals import Firm, open_firm
from baton.demo.cast import PARTS, RECONCILER, RELAY_INGEST, Cast, program_of, running_cast, settings_of
from baton.demo.stage import ACCOUNT, Stage, open_stage
from baton.embedded.children import Child
from baton.outbox import envelope
from baton.settings.loading import load
from baton.settings.secret import Secret
from support import producing
from support.figures import Figure, Figures
from support.waiting import wait_until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

PER_SECOND, SECONDS, PRODUCERS = 100, 20, 3
DOCUMENTS, BATCH, IDLE = 300, 25, 10.0
_BETWEEN_LOOKS = 0.003

#: Between the moments of a ticket, by the database's clock.
STAGES: Mapping[str, str] = {
    "written to sent": "t.dispatched_at - t.created_at",
    "sent to received": "t.first_received_at - t.dispatched_at",
    "received to handled": "t.handled_at - t.first_received_at",
}


@contextmanager
def _durable_stage() -> Iterator[Stage]:
    """The demo's servers, with Postgres's default durability set again."""
    with open_stage() as stage:
        administrator = stage.postgres
        url = administrator.url(administrator.administrator, administrator.maintenance).replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            for name in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {name} = on".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield stage


def test_from_commit_to_received(figures: Figures, scale: float) -> None:
    """A hundred finalized uploads a second, evenly; a relay process, and somebody who asks the queue all the time.

    The queue server of the demo looks for new messages every 100 ms while a receiver waits with it, where SQS answers at
    once; so the receiver asks without waiting.
    """
    seconds = max(int(SECONDS * scale), 3)
    with ExitStack() as opened:
        stage = opened.enter_context(_durable_stage())
        firm = opened.enter_context(open_firm(stage))
        clients = Clients(load(stage.aws.environ(ACCOUNT)).aws)
        opened.callback(clients.close)
        queue = configured(clients, stage.queues)[0]
        queue.ensure()
        part = next(each for each in PARTS if each.name == RELAY_INGEST)
        settings = settings_of(part, stage, agent_port=1, token=Secret("none"))
        relay = Child(program_of(part, stage, settings, more={}))
        relay.start()
        opened.callback(relay.kill)
        received: dict[str, float] = {}
        stop = threading.Event()
        receiver = threading.Thread(target=_receive, args=(queue, received, stop))
        receiver.start()
        try:
            _produce(stage, firm, received, seconds=1)  # starts everything up, and is not counted
            committed, late = _produce(stage, firm, received, seconds=seconds)
        finally:
            stop.set()
            receiver.join(30)
    waits = sorted(1000 * (received[each] - at) for each, at in committed.items())
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    about = f"commit to received, {PER_SECOND} a second"
    figures.record(Figure(f"{about}, median", round(p50, 1), "ms", "at most 20 ms", holds=p50 <= 20))
    figures.record(Figure(f"{about}, 99th of 100", round(p99, 1), "ms", "at most 100 ms", holds=p99 <= 100))
    figures.record(Figure(f"{about}: finalized later than planned, at most", round(1000 * late, 1), "ms", ""))


def _produce(
    stage: Stage, firm: Firm, received: Mapping[str, float], *, seconds: int
) -> tuple[dict[str, float], float]:
    """See :func:`producing.finalize`; returns when all of it was received."""
    documents = producing.await_upload(firm.engine, firm.id, PER_SECOND * seconds)
    url = stage.database_url(Role.MEMBER_APP).reveal()
    committed, late = producing.finalize(url, firm.id, documents, a_second=PER_SECOND, processes=PRODUCERS)
    wait_until(lambda: committed.keys() <= received.keys(), timeout=60, what="every message")
    return committed, late


def _receive(queue: Queue, received: dict[str, float], stop: threading.Event) -> None:
    while not stop.is_set():
        messages = queue.receive(wait=0)
        now = time.monotonic()
        for each in messages:
            received[str(envelope.parse(each.body).ticket_id)] = now
        if messages:
            queue.delete_batch([each.receipt for each in messages])
        else:
            stop.wait(_BETWEEN_LOOKS)


@pytest.mark.timeout(4 * 3600)  # for those who ask for very many
def test_the_whole_way(request: pytest.FixtureRequest, figures: Figures, scale: float, tmp_path: Path) -> None:
    """Letters come in as fast as they can be taken; each is read, registered and understood by the reference agent."""
    asked = request.config.getoption("--bench-documents") or int(DOCUMENTS * scale)
    count = max(asked, BATCH) // BATCH * BATCH
    paper = tmp_path / "letter.txt"
    paper.write_text("LETTER\n\nTo: Jane Roe\nFrom: Richard Doe\n\n1 March 2024\n\nDear Ms Roe,\n\nWe write.\n" * 5)
    exhibit = Exhibit(paper.name, paper, "letter", TEXT, "indexed", "registered", "")
    with ExitStack() as opened:
        stage = opened.enter_context(_durable_stage())
        firm = opened.enter_context(open_firm(stage))
        with running_cast(stage) as cast:
            cast.begin(RECONCILER)
            firm.upload([exhibit], batch=1)
            wait_until(lambda: _done(firm) == 1, timeout=120, interval=0.2, what="the first document")
            _rest(cast, figures)
            before, memory = _processors(cast, stage), _memory(cast)
            began = time.monotonic()
            uploading = threading.Thread(target=_upload, args=(firm, exhibit, count))
            uploading.start()
            half = _wait_for(firm, 1 + count // 2, patience=900 + count)
            at_half = _memory(cast)
            end = _wait_for(firm, 1 + count, patience=900 + count)
            uploading.join()
            at_end, after = _memory(cast), _processors(cast, stage)
            starts = cast.starts()
        assert set(starts.values()) == {1}, starts
        figures.record(Figure("documents, whole way", round(count / (end - began), 2), "documents/s", ""))
        second = count - count // 2
        figures.record(Figure("the same, second half", round(second / (end - half), 2), "documents/s", ""))
        for name, used in sorted(after.items(), key=lambda each: before.get(each[0], 0) - each[1]):
            spent = 1000 * (used - before.get(name, 0.0)) / count
            figures.record(Figure(f"processor time of {name}", round(spent, 2), "ms/document", ""))
        for name, seconds in _stages(firm).items():
            figures.record(Figure(f"median, {name}", round(1000 * seconds), "ms", ""))
        for name, now in sorted(at_end.items()):
            growth = now / at_half[name]
            figures.record(
                Figure(
                    f"memory of {name} after {count:,} documents",
                    round(now / 2**20, 1),
                    "MiB",
                    "at most 1.1 times that after half of them",
                    peer=("at rest", round(memory[name] / 2**20, 1)),
                    ratio=round(growth, 3),
                    holds=growth <= 1.1,
                )
            )


def _upload(firm: Firm, exhibit: Exhibit, count: int) -> None:
    for number in range(count // BATCH):
        firm.upload([exhibit] * BATCH, batch=number + 2)


def _wait_for(firm: Firm, count: int, *, patience: float) -> float:
    wait_until(lambda: _done(firm) >= count, timeout=patience, interval=0.5, what=f"{count} documents")
    return time.monotonic()


def _done(firm: Firm) -> int:
    with firm_transaction(firm.engine, firm.id) as connection:
        return int(
            connection.execute(
                text(
                    "SELECT count(*) FROM documents d WHERE registration_status = 'registered' AND 3 = (SELECT count(*)"
                    " FROM record.understanding_part p WHERE p.document_id = d.id AND p.state = 'ready')"
                )
            ).scalar_one()
        )


def _rest(cast: Cast, figures: Figures) -> None:
    """What the processes take while there is nothing to do."""
    pids = cast.pids()
    before = {name: _processor(pid) for name, pid in pids.items()}
    threading.Event().wait(IDLE)
    for name, pid in pids.items():
        share = 100 * (_processor(pid) - before[name]) / IDLE
        often = " with a pass a second" if name == RECONCILER else ""
        figures.record(Figure(f"processor of {name} at rest{often}", round(share, 2), "% of a core", ""))


def _memory(cast: Cast) -> dict[str, int]:
    """Bytes of each process and its children that are its own."""
    return {name: sum(each.memory_info().rss for each in _family(pid)) for name, pid in cast.pids().items()}


def _processors(cast: Cast, stage: Stage) -> dict[str, float]:
    """Seconds of a processor that each process has used so far, servers and this test included."""
    found = {name: _processor(pid) for name, pid in cast.pids().items()}
    servers = {"Postgres": "postgres", "the SQS and S3 of the demo": "ministack"}
    for each in psutil.Process().children():
        line = " ".join(each.cmdline())
        for name, word in servers.items():
            if word in line and "baton.cli" not in line and str(stage.folder) in line + each.cwd():
                found[name] = _processor(each.pid)
    times = psutil.Process().cpu_times()
    return {**found, "whoever uploads": times.user + times.system}


def _processor(pid: int) -> float:
    total = 0.0
    for each in _family(pid):
        times = each.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _family(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def _stages(firm: Firm) -> dict[str, float]:
    """Median seconds of each stage of each kind of ticket."""
    columns = ", ".join(
        f"percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM {expression}))"
        for expression in STAGES.values()
    )
    with firm_transaction(firm.engine, firm.id) as connection:
        rows = connection.execute(
            text(
                f"SELECT t.event_type, {columns} FROM ops.document_ingest_outbox t"
                " WHERE t.first_received_at IS NOT NULL AND t.handled_at IS NOT NULL GROUP BY 1 ORDER BY min(t.id)"
            )
        ).all()
    return {
        f"{event}, {stage}": float(value)
        for event, *values in rows
        for stage, value in zip(STAGES, values, strict=True)
    }
