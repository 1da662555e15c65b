"""What a document costs on its whole way: its statements and calls, and that an index serves each of them."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from baton.db.access import Role
from baton.embedded.binaries import PostgresBinaries
from baton.settings.stores import Queues
from support.aws_accounts import AwsAccount
from support.crashing.bench import Bench
from support.crashing.points import is_call
from support.crashing.scenes import SCENES
from support.crashing.sweeps import Sweep
from support.databases import Cluster, Database

pytestmark = [pytest.mark.check, pytest.mark.timeout(300)]

#: For one document of one page that ends registered with its three parts, four runs in all; COMMITs are among the
#: statements. One more is one more round trip for every document: it is written here with a reason, or not made.
STATEMENTS = {"platform": 10, "extractor": 21, "registrar": 175, "settler": 28}
CALLS = {"platform": 1, "extractor": 1, "registrar": 8, "settler": 4}

_ROLES = {
    "platform": Role.MEMBER_APP,
    "extractor": Role.EXTRACTOR,
    "registrar": Role.REGISTRAR,
    "settler": Role.SETTLER,
    "sweeper": Role.SETTLER,
    "relay-ingest": Role.RELAY,
    "relay-registrar": Role.RELAY,
}
#: One row, or one for each minute of an hour.
_SMALL = {"dispatch_guard", "agent_spend"}
_PLANNED = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}


@pytest.fixture
def sweep(cluster: Cluster, aws: AwsAccount, tmp_path: Path) -> Iterator[Sweep]:
    """The pipeline, driven step by step, with every statement seen."""
    with Bench(cluster, aws, tmp_path, queues=Queues()).opened() as bench:
        yield Sweep(bench)


def test_a_document_costs_so_many_statements_and_calls(sweep: Sweep) -> None:
    """Counted in a run; what workers ask while there is nothing to do is left out with the calls to receive."""
    points = sweep.count(SCENES[0]).points
    assert Counter(each.stage for each in points if not is_call(each.label) and each.stage in STATEMENTS) == STATEMENTS
    calls = [each for each in points if is_call(each.label) and not each.label.startswith("sqs:")]
    assert Counter(each.stage for each in calls) == CALLS


def test_an_index_serves_every_statement(
    sweep: Sweep, cluster: Cluster, postgres_binaries: PostgresBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned without looking at values, for tables that were large: none is read whole. Of a plan's choice between two
    indexes this says nothing; that is measured on filled tables (``test_plans.py`` of each part).
    """
    if postgres_binaries.major < 16:
        pytest.skip("needs EXPLAIN (GENERIC_PLAN)")
    said: set[tuple[str, bool, str]] = set()
    members: set[str] = set()
    execute = psycopg.Cursor.execute

    def noting(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        worker = sweep.bench.hooks.tracer.current
        if worker is not None and isinstance(query, str | bytes):
            statement = query if isinstance(query, str) else query.decode()
            if statement.startswith("SET LOCAL ROLE"):
                (members.discard if statement.endswith("NONE") else members.add)(worker.stage)
            said.add((worker.stage, worker.stage in members, _numbered(statement, params)))
        return execute(cursor, query, params, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", noting)
    for scene in SCENES[:3]:
        sweep.count(scene)
    monkeypatch.undo()
    database = cluster.create()
    asked = [each for each in sorted(said) if each[2].split(maxsplit=1)[0] in _PLANNED]
    read_whole = {f"{each}: {table}" for each in asked for table in _read_whole(database, *each)}
    database.close()
    assert len(asked) > 60
    assert not read_whole, "\n".join(sorted(read_whole))


#: Sent with their own type, which tells Postgres what an uncast parameter is.
_TYPED = {datetime: "::timestamptz", timedelta: "::interval"}


def _numbered(statement: str, params: Any) -> str:
    """The statement as the server sees it."""
    numbers = count(1)
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        name = found.group(1)
        number = next(numbers) if name is None else places.setdefault(name, len(places) + 1)
        return f"${number}{_TYPED.get(type(params[number - 1 if name is None else name]), '')}"

    return re.sub(r"%(?:\((\w+)\))?[sbt]", place, statement).replace("%%", "%")


def _read_whole(database: Database, stage: str, as_member: bool, statement: str) -> set[str]:
    """Tables that are read from end to end though reading so is made dear."""
    with psycopg.connect(database.direct_url(_ROLES[stage]).replace("+psycopg", "")) as session:
        session.execute("SET enable_seqscan = off")
        if as_member:
            session.execute(f"SET ROLE {Role.MEMBER}".encode())
        row = session.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {statement}".encode()).fetchone()
    assert row is not None
    whole = re.findall(r'"Node Type": "Seq Scan"[^{}]*?"Relation Name": "(\w+)"', json.dumps(row[0]))
    return set(whole) - _SMALL
