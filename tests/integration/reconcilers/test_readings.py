"""What a loop reads of the queues, and remembers: in Postgres where it may write, else in the process."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from uuid_utils.compat import uuid7

from baton.aws.clients import Clients
from baton.aws.faults import Service
from baton.aws.queues import Queue, configured
from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers.lanes import NEVER
from baton.reconcilers.readings import Readings
from baton.settings.loading import load
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter
from support.reconciling import Loop


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Who asks the queues."""
    clients = Clients(load(aws.environ).aws)
    yield clients
    clients.close()


@pytest.fixture
def queues(aws: AwsAccount, clients: Clients) -> dict[Lane, Queue]:
    """The lanes' queues, which are empty."""
    ingest, registrar, _ = configured(clients, load(aws.environ).queues)
    for queue in (ingest, registrar):
        queue.ensure()
    return {Lane.INGEST: ingest, Lane.REGISTRAR: registrar}


@pytest.fixture
def loop(database: Database, queues: dict[Lane, Queue]) -> Loop:
    """A loop that sees the queues, with somebody polling for long."""
    loop = Loop(Matter(database, uuid7(), uuid7()), queues=queues)
    loop.consumers(since=7200.0)
    return loop


def sent(loop: Loop) -> None:
    """A queued document's ticket was sent an hour ago, and the queue is empty."""
    _, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET claimed_at = app.clock() - interval '1 hour',"
        " dispatched_at = app.clock() - interval '1 hour', message_id = 'm' WHERE id = :id",
        id=ticket.id,
    )


def pass_at(loop: Loop, seconds: float) -> None:
    """Time moves on, consumers poll on."""
    loop.database.move_clock(seconds)
    loop.matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")


def test_an_observer_alone_knows_what_is_lost(loop: Loop) -> None:
    """With nobody that repairs, its own three readings tell that the queue is empty; and it writes none of them down."""
    sent(loop)
    found = []
    for seconds in (0, 200, 400):
        pass_at(loop, seconds)
        found.append(dict(loop.observe().found))
    assert found == [{}, {}, {"request_stalled": 1}]
    assert loop.matter.count("ops.lane_reading") == 0


def test_one_that_repairs_shares_what_it_read(loop: Loop) -> None:
    """Another loop, which took a single reading, goes by all of them."""
    sent(loop)
    for seconds in (0, 200):
        pass_at(loop, seconds)
        assert loop.repair().total == 0
    pass_at(loop, 400)
    other = replace(loop, _kept={})
    assert dict(other.observe().found) == {"request_stalled": 1}
    assert loop.matter.count("ops.lane_reading", "lane = 'registrar'") == 2


def test_what_an_observer_saw_counts_beside_what_others_wrote(loop: Loop) -> None:
    """A message that somebody else saw in between begins the count anew."""
    sent(loop)
    for seconds in (0, 200):
        pass_at(loop, seconds)
        loop.observe()
    loop.matter.prepare(
        "INSERT INTO ops.lane_reading (lane, visible, in_flight, delayed) VALUES ('registrar', 1, 0, 0)"
    )
    pass_at(loop, 400)
    assert loop.observe().total == 0


def test_an_observer_asks_no_queue_that_was_just_read(loop: Loop, clients: Clients) -> None:
    """Who keeps its readings has asked for both; half a minute later they are old. One that keeps its own always asks."""
    asked: list[str] = []
    clients.calls(Service.SQS, asked.append)
    numbers = []
    for seconds, look in (
        (0, loop.repair),
        (29, loop.observe),
        (31, loop.observe),
        (32, loop.repair),
        (33, loop.repair),
    ):
        pass_at(loop, seconds)
        asked.clear()
        look()
        numbers.append(asked.count("GetQueueAttributes"))
    assert numbers == [2, 0, 2, 2, 2]


def test_an_observer_forgets_what_can_decide_nothing(loop: Loop, queues: dict[Lane, Queue]) -> None:
    """What is more than a day old is let go of, so that a loop of months does not grow."""
    engine = loop.database.engine(Role.OBSERVER)
    readings = Readings(queues, config=loop.settings.queues, keep=False)
    for hours in (0, 1, 40):
        loop.database.move_clock(hours * 3600)
        readings.take(engine)
        with engine.connect() as connection:
            readings.states(connection, now=connection.exec_driver_sql("SELECT app.clock()").scalar_one())
    assert [len(seen) for seen in readings._seen.values()] == [1, 1]


def test_a_queue_that_does_not_answer_is_no_reading(loop: Loop, queues: dict[Lane, Queue], aws: AwsAccount) -> None:
    """One that is gone says nothing, least of all that it is empty; the other lane is read all the same."""
    gone = queues[Lane.REGISTRAR]
    sqs = aws.client("sqs")
    (url,) = [each for each in sqs.list_queues()["QueueUrls"] if each.endswith(gone.name)]
    sqs.delete_queue(QueueUrl=url)
    engine = loop.database.engine(Role.RECONCILER)
    readings = Readings(queues, config=loop.settings.queues, keep=True)
    for seconds in (0, 200, 400):
        pass_at(loop, seconds)
        readings.take(engine)
    with engine.connect() as connection:
        now = connection.exec_driver_sql("SELECT app.clock()").scalar_one()
        states = readings.states(connection, now=now)
    assert (states[Lane.REGISTRAR].empty_before, states[Lane.INGEST].empty_before != NEVER) == (NEVER, True)
    assert loop.matter.count("ops.lane_reading", "lane = 'registrar'") == 0
