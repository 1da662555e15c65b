"""Postgres goes away under a relay, and comes back."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import event

from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from integration.outbox.conftest import Recorder, Relays
from support.databases import Cluster, Database
from support.tickets import Bulk, count_where, fill
from support.waiting import wait_until


@pytest.fixture
def database(state_folder: Path, postgres_binaries: PostgresBinaries) -> Iterator[Database]:
    """A database on a server of its own, which may be stopped."""
    server = EmbeddedPostgres(state_folder / "postgres", binaries=postgres_binaries, durable=True)
    with server:
        database = Cluster(server).create()
        yield database
        database.close()


@pytest.mark.slow
def test_a_database_that_is_away_is_asked_calmly_and_met_again_at_once(database: Database, relays: Relays) -> None:
    """Twenty seconds without Postgres: at most twenty attempts; after its return work goes on within five seconds."""
    server = database.cluster.server
    attempts: list[float] = []
    engine = database.engine("baton_relay")
    event.listen(engine, "do_connect", lambda *_: attempts.append(time.monotonic()))
    recorder = Recorder()
    relay = relays.make(recorder, engine=engine, stalled_after=5.0)
    fill(database, Bulk(count=10, firm=uuid4()))
    with relays.running(relay):
        wait_until(lambda: len(recorder.keys) == 10)
        server.kill()
        attempts.clear()
        threading.Event().wait(20)
        assert 0 < len(attempts) <= 20
        assert relay.stalled
        server.start()
        database.preparer.dispose()
        back = time.monotonic()
        fill(database, Bulk(count=10, firm=uuid4()))
        wait_until(lambda: count_where(database, "dispatched_at IS NOT NULL") == 20, 15)
        assert time.monotonic() - back < 5
        wait_until(lambda: relay.listening and not relay.stalled, 15)


def test_a_restart_in_mid_batch_loses_nothing(database: Database, relays: Relays) -> None:
    """Postgres is killed between send and settlement: what was sent is sent again, and then marked."""
    server = database.cluster.server
    fill(database, Bulk(count=10, firm=uuid4()))
    sending, go_on = threading.Event(), threading.Event()

    def held() -> None:
        sending.set()
        go_on.wait(30)

    recorder = Recorder(before=held)
    relay = relays.make(recorder, backoff_initial=0.1)
    with relays.running(relay):
        assert sending.wait(10)
        server.kill()
        go_on.set()
        server.start()
        database.preparer.dispose()
        wait_until(lambda: count_where(database, "dispatched_at IS NOT NULL") == 10, 15)
    assert len(recorder.keys) == 20
