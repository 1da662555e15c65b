"""The relay's drain, beside the best queues in Postgres and beside pgbench with the same statements."""

import re
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from baton.db.states import Lane
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from baton.outbox import claim
from bench.conftest import SERVER
from support import draining
from support.databases import Cluster, Database
from support.figures import Figure, Figures
from support.tickets import Bulk, fill

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

FIRMS, SIZE, ROUNDS = 20, 100, 3
_FIRST = str(UUID(int=1 << 127))


@dataclass(frozen=True)
class Field:
    """One durable server with Baton's database and one for the peers."""

    ours: Database
    theirs: Database
    binaries: PostgresBinaries
    tickets: int
    rounds: int

    def filled(self) -> None:
        """So many due tickets of several firms, and nothing else; vacuumed and on disk."""
        with self.ours.preparer.begin() as connection:
            connection.execute(text("TRUNCATE ops.document_ingest_outbox"))
        for _ in range(FIRMS):
            fill(self.ours, Bulk(count=self.tickets // FIRMS, firm=uuid4()))
        draining.settle(self.ours)


@pytest.fixture(scope="module")
def the_field(session_folder: Path, postgres_binaries: PostgresBinaries, scale: float) -> Iterator[Field]:
    """Default durability; every contender on the same server."""
    with EmbeddedPostgres(session_folder / "relay-bench", binaries=postgres_binaries, settings=SERVER) as server:
        cluster = Cluster(server)
        ours, theirs = cluster.create(), cluster.create(migrated=False)
        yield Field(
            ours, theirs, postgres_binaries, max(int(20_000 * scale) // 2000, 1) * 2000, ROUNDS if scale >= 0.5 else 1
        )
        for each in (ours, theirs):
            each.close()


#: Peer, how it is filled, and by how many it drains less than the others, so that a run does not take minutes.
PEERS: dict[str, tuple[draining.Opening, Callable[[str, int], None], int]] = {
    "pgmq": (draining.pgmq, draining.fill_pgmq, 1),
    "pgqueuer": (draining.pgqueuer, draining.fill_pgqueuer, 1),
    "procrastinate": (draining.procrastinate, draining.fill_procrastinate, 10),
}


@pytest.mark.parametrize("relays", [1, 2, 4])
def test_a_drain_beside_its_peers(the_field: Field, figures: Figures, tmp_path: Path, relays: int) -> None:
    """The same batch, durability and server for all, in turns; the median of the turns' ratios counts."""
    ours: list[float] = []
    bare: list[float] = []
    peers: dict[str, list[float]] = {name: [] for name in PEERS}
    for _ in range(the_field.rounds):
        the_field.filled()
        url = the_field.ours.url("baton_relay")
        ours.append(draining.rate(draining.relay, url, size=SIZE, processes=relays, expected=the_field.tickets))
        the_field.filled()
        bare.append(_pgbench(the_field, tmp_path, clients=relays))
        for name, (opening, filling, part) in PEERS.items():
            count = max(the_field.tickets // part // 1000, 1) * 1000
            peer = the_field.theirs.url("postgres")
            filling(peer, count)
            draining.settle(the_field.theirs)
            peers[name].append(draining.rate(opening, peer, size=SIZE, processes=relays, expected=count))
    for name, rates in peers.items():
        figures.record(Figure(f"{name}: {relays} at work", round(statistics.median(rates)), "jobs/s", ""))
    best = max(peers, key=lambda name: statistics.median(peers[name]))
    ratio = _ratio(ours, peers[best])
    drain = round(statistics.median(ours))
    figures.record(
        Figure(
            f"drain, {relays} {'relay' if relays == 1 else 'relays'}, batches of {SIZE}",
            drain,
            "tickets/s",
            "at least 2 times the best peer",
            peer=(best, round(statistics.median(peers[best]))),
            ratio=ratio,
            holds=ratio >= 2,
        )
    )
    ratio = _ratio(ours, bare)
    figures.record(
        Figure(
            f"drain, {relays} {'relay' if relays == 1 else 'relays'}, beside pgbench with the same statements",
            drain,
            "tickets/s",
            "at least 0.8 of pgbench",
            peer=("pgbench", round(statistics.median(bare))),
            ratio=ratio,
            holds=ratio >= 0.8,
        )
    )


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return round(statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True)), 2)


def _pgbench(the_field: Field, folder: Path, *, clients: int) -> float:
    """The relay's two statements in one transaction, the cursor handed on as the relay does; tickets a second."""
    statements = claim.statements_of(Lane.INGEST, size=SIZE)
    claiming = statements.claim.replace("%(cursor)s", ":cursor::uuid")
    settling = re.sub(r"%\((\w+)\)s", r":\1", statements.settle)
    aggregated = (
        "SELECT coalesce(array_agg(id), '{}') AS ids, coalesce(string_agg('m' || id, chr(10)), '') AS message_ids,"
        " max(claimed_at) AS claimed_at,"
        f" coalesce((array_agg(cursor) FILTER (WHERE cursor IS NOT NULL))[count(cursor)], '{_FIRST}') AS cursor"
        f" FROM ({claiming}) c WHERE id IS NOT NULL"
    )
    script = folder / "drain.sql"
    script.write_text(f"BEGIN;\n{_line(aggregated)} \\gset\n{_line(settling)};\nCOMMIT;\n", encoding="utf-8")
    batches = the_field.tickets // SIZE // clients
    options = {"-M": "prepared", "-c": clients, "-j": clients, "-t": batches, "-D": f"cursor={_FIRST}", "-f": script}
    given = [str(word) for option in options.items() for word in option]
    url = the_field.ours.url("baton_relay").replace("+psycopg", "")
    run = subprocess.run(
        [str(the_field.binaries.postgres.with_name("pgbench")), "-n", *given, url],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"tps = ([\d.]+)", run.stdout)
    assert found is not None
    with the_field.ours.preparer.connect() as connection:
        drained = connection.execute(
            text("SELECT count(*) FROM ops.document_ingest_outbox WHERE dispatched_at IS NOT NULL")
        ).scalar_one()
    return float(found.group(1)) * int(drained) / (batches * clients)


def _line(statement: str) -> str:
    return " ".join(statement.split())
