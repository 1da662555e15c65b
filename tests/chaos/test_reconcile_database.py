"""Postgres goes away in the middle of a pass, again and again: the next passes heal, and each document once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from baton.reconcilers import loops
from baton.reconcilers.results import Mode
from support.databases import Cluster, Database
from support.matters import Matter
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]


@contextmanager
def looping(loop: Loop) -> Iterator[threading.Thread]:
    """A supervised loop in a thread."""
    stop = threading.Event()
    supervised = loops.Loop(loop.reconciler(Mode.REPAIR), interval=0.1)
    thread = threading.Thread(target=supervised.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(40)
    assert not thread.is_alive()


def repaired(loop: Loop) -> int:
    """How many documents have a repair."""
    with suppress(DBAPIError):
        return loop.matter.count("ops.registration_repair", "result = 'repaired'")
    return 0


def poll(loop: Loop) -> bool:
    """Consumers go on polling."""
    loop.matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")
    return True


def test_postgres_restarted_in_the_middle_of_a_batch(
    state_folder: Path, postgres_binaries: PostgresBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with documents locked and repaired but not committed; back again, all of them are healed once."""
    monkeypatch.setattr(loops, "_BACKOFF_MAX", 1.0)
    with EmbeddedPostgres(state_folder / "postgres", binaries=postgres_binaries) as server:
        database = Cluster(server).create()
        loop = Loop(Matter(database, uuid7(), uuid7())).limited(batch_size=5)
        loop.consumers(since=1e6)
        documents = loop.lost(40)
        reached, resume = threading.Event(), threading.Event()
        written = [0]

        def hold(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("INSERT INTO ops.document_ingest_outbox"):
                written[0] += 1
                if written[0] == 18:
                    reached.set()
                    resume.wait(30)

        event.listen(database.engine(Role.RECONCILER), "before_cursor_execute", hold)
        with looping(loop):
            assert reached.wait(60)
            server.kill()
            resume.set()
            server.start()
            database.preparer.dispose()  # its connections went with the server
            loop.consumers(since=1e6)
            wait_until(lambda: repaired(loop) == 40, timeout=90, interval=0.2, what="every repair")
        assert [loop.generations(each) for each in documents] == [[1, 2]] * 40
        for engine in database._engines.values():
            engine.dispose()


def test_backends_killed_every_second(database: Database) -> None:
    """For half a minute; what was under way is rolled back, and found again."""
    loop = Loop(Matter(database, uuid7(), uuid7())).limited(batch_size=3)
    loop.consumers(since=1e6)
    documents = loop.lost(60)
    slow = threading.Event()

    def drag(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO ops.document_ingest_outbox"):
            slow.wait(0.1)

    event.listen(database.engine(Role.RECONCILER), "before_cursor_execute", drag)
    killed = 0
    with looping(loop):
        for _ in range(30):
            threading.Event().wait(1)
            with database.preparer.begin() as connection:
                killed += connection.execute(
                    text(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND usename = 'baton_reconciler'"
                    )
                ).scalar_one()
            poll(loop)
        wait_until(lambda: poll(loop) and repaired(loop) == 60, timeout=60, interval=0.2, what="every repair")
    assert killed >= 3
    assert [loop.generations(each) for each in documents] == [[1, 2]] * 60
    assert replace(loop, _kept={}).repair().total == 0
