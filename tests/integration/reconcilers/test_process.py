"""`baton reconcile` as a process: it is refused where it may not work, ends in order, and dies without a trace."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.reconcilers import owner
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter
from support.operators import Operator
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

#: Far beyond what a machine under load needs to start a process, or to end one.
PATIENCE = 120.0
#: A document a transaction, and no wait between passes worth the name.
SMALL = {"BATON_RECONCILE_INTERVAL": "0.2", "BATON_RECONCILE_BATCH_SIZE": "1"}


@pytest.fixture
def operator(
    database: Database, aws: AwsAccount, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Operator:
    """Who starts processes."""
    return Operator(database, aws, capsys, monkeypatch)


@pytest.fixture
def loop(operator: Operator) -> Loop:
    """On lanes that are consumed for as long as a test may take."""
    found = Loop(Matter(operator.database, uuid7(), uuid7()))
    found.consumers()
    return found


@contextmanager
def _started(operator: Operator, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    process = operator.start("reconcile", *arguments, role=Role.RECONCILER, **SMALL, **more)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _once_each(loop: Loop, documents: list[UUID]) -> None:
    """Each has one successor of its ticket, and one row in the ledger that names it."""
    assert [loop.generations(each) for each in documents] == [[1, 2]] * len(documents)
    tickets = dict(loop.matter.rows("SELECT id, registration_ticket_id FROM documents"))
    ledger = loop.ledger()
    assert {entry.document_id: entry.ticket_id for entry in ledger} == tickets
    assert len(ledger) == len(documents)


def _healed(loop: Loop, count: int) -> bool:
    """Whether so many are; meanwhile somebody consumes."""
    loop.matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")
    return len(loop.ledger()) >= count


@pytest.mark.parametrize("arguments", [(), ("--once",), ("--once", "--observe"), ("--observe",)])
def test_a_role_that_is_not_its_own_is_refused_before_anything_is_done(
    operator: Operator, loop: Loop, arguments: tuple[str, ...]
) -> None:
    """Neither does one that only looks repair, nor one that repairs call itself a looker: exit code 77 and why."""
    (document,) = loop.lost()
    role = Role.RECONCILER if "--observe" in arguments else Role.OBSERVER
    for wrong in (role, Role.REGISTRAR):
        ran = operator.run("reconcile", *arguments, role=wrong)
        assert (ran.code, wrong.value in ran.err) == (77, True), ran.err
    assert loop.generations(document) == [1]
    assert loop.matter.count("ops.owner") == loop.matter.count("ops.lane_reading") == 0


def test_told_to_stop_while_it_heals_it_ends_in_order_and_leaves_no_half(operator: Operator, loop: Loop) -> None:
    """Exit code 0 long before it would be killed; whatever it did is done wholly, the rest is the next one's, and so is
    the database for a while yet.
    """
    documents = loop.lost(60)
    with _started(operator) as process:
        wait_until(partial(_healed, loop, 3), PATIENCE, what="it heals")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert not owner.claim(connection, "another")  # a replica might go on
    done = {entry.document_id for entry in loop.ledger()}
    assert [loop.generations(each) == [1, 2] for each in documents] == [each in done for each in documents]
    assert not _healed(loop, len(documents) + 1)
    assert operator.run("reconcile", "--once", role=Role.RECONCILER).code == 0
    _once_each(loop, documents)


def test_one_that_ends_leaves_the_database_to_the_other_of_its_name(operator: Operator, loop: Loop) -> None:
    """Two at once: each document once, whoever it was; the first goes, and a resource of another name finds the database
    taken as before.
    """
    documents = loop.lost(40)
    with _started(operator) as first, _started(operator) as second:
        wait_until(partial(_healed, loop, len(documents)), PATIENCE, what="all are healed")
        readings = "ops.lane_reading"
        first.send_signal(signal.SIGTERM)
        assert first.wait(PATIENCE) == 0
        with loop.database.engine(Role.RECONCILER).begin() as connection:
            assert not owner.claim(connection, "another")
        before = loop.matter.count(readings)
        wait_until(lambda: loop.matter.count(readings) > before, PATIENCE, what="the other one goes on")
        assert second.poll() is None
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
    _once_each(loop, documents)


@pytest.mark.chaos
def test_killed_again_and_again_while_it_heals_it_does_each_once(operator: Operator, loop: Loop) -> None:
    """By SIGKILL wherever it happens to be, five times, the last time beside another one; effects are counted in rows."""
    documents = loop.lost(120)
    for goal in (1, 20, 45, 70):
        with _started(operator) as process:
            wait_until(partial(_healed, loop, goal), PATIENCE, what="it heals")
            process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL
    with _started(operator) as last, _started(operator):
        wait_until(partial(_healed, loop, 90), PATIENCE, what="they heal")
        last.kill()
        wait_until(partial(_healed, loop, len(documents)), PATIENCE, what="all are healed")
    _once_each(loop, documents)
    assert _healed(loop, len(documents))
    told = operator.run("reconcile", "--once", "--json", role=Role.RECONCILER)
    assert json.loads(told.out)["found"] == {}


def test_told_to_stop_before_the_database_is_there_it_ends(operator: Operator) -> None:
    """A pod that is evicted while it waits: exit code 0, and nothing else."""
    nowhere = operator.database.url(Role.RECONCILER).rsplit("@", 1)[0] + "@127.0.0.1:9/nowhere"
    with _started(operator, DATABASE_URL=nowhere, BATON_LOG_FORMAT="json") as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # it has said that it waits
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
