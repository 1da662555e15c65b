"""Faults that queue consumers have met elsewhere, each with what happens here."""

import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from sqlalchemy import text

from baton.aws.errors import AwsError
from baton.aws.faults import Service
from baton.consumers.verdicts import Ack, Retry
from baton.db.access import Role
from baton.telemetry import instruments
from support.aws_answers import answered, failing
from support.waiting import wait_until

TESTS = Path(__file__).parents[2]


class Gate:
    """A handler's answer that takes as long as the test wants."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, _: Any) -> Ack:
        """Wait, and be done."""
        self.entered.set()
        assert self.open.wait(60)
        return Ack()


def test_visibility_lapses_inside_a_prefetched_batch(hasty: Any, recorder: Any) -> None:
    """A batch of ten with a slow first one, hidden for two seconds: nobody else gets what waits behind it."""
    ids = hasty.write(10)
    hasty.send(ids)
    gate = Gate()
    recorder.answer = lambda ticket: gate(ticket) if ticket.id == ids[0] else Ack()
    hasty.start(recorder, workers=1)
    assert gate.entered.wait(20)
    hasty.start(recorder, workers=1)  # would take whatever becomes visible
    last = hasty.row(ids[-1]).hold_until
    wait_until(lambda: hasty.row(ids[-1]).hold_until > last + timedelta(seconds=5), 30, what="extending")
    assert recorder.began == [ids[0]]
    gate.open.set()
    wait_until(lambda: len(recorder.ended) == 10 and hasty.drained(), 30, what="draining")
    assert recorder.began == ids
    assert recorder.together == set()


def test_what_was_lost_while_waiting_is_not_begun(hasty: Any, recorder: Any) -> None:
    """The queue refuses every extension: what waits here is left to others, and nothing is done by two at once."""
    ids = hasty.write(6)
    hasty.send(ids)
    gate = Gate()
    recorder.answer = lambda ticket: gate(ticket) if ticket.id == ids[0] else Ack()
    away = failing(EndpointConnectionError(endpoint_url="http://sqs"))
    with answered(hasty.clients, Service.SQS, "ChangeMessageVisibilityBatch", away):
        first = hasty.start(recorder, workers=1)
        assert gate.entered.wait(20)
        other = type(recorder)()
        hasty.start(other, workers=1)
        wait_until(lambda: len(other.ended) >= 5, 30, what="another consumer taking over")
        released = _released()
        gate.open.set()
        wait_until(lambda: recorder.ended == [ids[0]] and _released() >= released + 5, 20, what="leaving the rest")
        hasty.end(first, within=20)
    assert recorder.began == [ids[0]]


def _released() -> float:
    labels = {"queue": "ingest", "outcome": "released"}
    return instruments.reading("pramaan_consumer_handled_total", labels=labels) or 0.0


def test_a_message_that_arrives_while_the_poll_is_ending_is_not_stranded(fifo: Any, recorder: Any) -> None:
    """A stop during the long poll: what that poll still brings is visible again at once, or done."""
    polling = threading.Event()
    fifo.clients.calls(Service.SQS, lambda name: polling.set() if name == "ReceiveMessage" else None)
    stop = fifo.start(recorder, receive_wait=5)
    assert polling.wait(20)
    (ticket,) = fifo.write(1)
    stop.set()
    fifo.send([ticket])
    fifo.end(stop)
    assert fifo.depth() == (0, 0) if recorder.ended else (1, 0)
    assert recorder.began == recorder.ended


def test_a_stop_releases_what_waits_and_finishes_what_is_begun(fifo: Any, recorder: Any) -> None:
    """One in work and five waiting: the one is finished and deleted, the five are visible at once."""
    ids = fifo.write(6)
    fifo.send(ids)
    gate = Gate()
    recorder.answer = gate
    stop = fifo.start(recorder, workers=1)
    assert gate.entered.wait(20)
    wait_until(lambda: fifo.depth() == (0, 6), what="prefetching")
    stop.set()
    wait_until(lambda: fifo.depth() == (5, 1), 10, what="releasing")
    gate.open.set()
    fifo.end(stop)
    assert fifo.depth() == (5, 0)
    assert recorder.ended == [ids[0]]


def test_work_that_hangs_does_not_keep_the_process(fifo: Any, recorder: Any) -> None:
    """After the grace period its message is visible at once, though the work has not ended."""
    (ticket,) = fifo.write(1)
    fifo.send([ticket])
    gate = Gate()
    recorder.answer = gate
    stop = fifo.start(recorder, shutdown_grace=0.5)
    assert gate.entered.wait(20)
    assert fifo.end(stop) < 8
    assert fifo.depth() == (1, 0)
    gate.open.set()


def test_a_poison_document_stalls_only_itself(rig: Any, recorder: Any) -> None:
    """Its neighbours are done while it fails; after its attempts it is given up, once, and gone."""
    ids = rig.write(10)
    rig.send(ids)

    def poisoned(ticket: Any) -> Ack:
        if ticket.id == ids[0]:
            raise ValueError("a bug that only this document meets")
        return Ack()

    recorder.answer = poisoned
    rig.start(recorder, max_attempts=3)
    wait_until(lambda: set(recorder.ended) == set(ids[1:]), 30, what="the neighbours")
    wait_until(lambda: recorder.given_up and rig.drained(), 60, what="giving up")
    assert recorder.began.count(ids[0]) == 3
    assert recorder.given_up == [ids[0]]
    assert rig.row(ids[0]).work_attempts == 4


CRASHER = """
import os, signal, sys, threading
sys.path.insert(0, {tests!r})
from baton.aws.clients import Clients
from baton.aws.queues import Queue, QueueSpec
from baton.consumers.tickets import TicketConsumer
from baton.db.connect import database_engine
from baton.db.states import Lane
from baton.settings.loading import load
from baton.settings.work import Consumer

class Deadly:
    def handle(self, ticket):
        os.kill(os.getpid(), signal.SIGKILL)
    give_up = handle

queue = Queue(Clients(load().aws), QueueSpec({queue!r}, visibility=2))
TicketConsumer(queue=queue, lane=Lane.INGEST, handler=Deadly(), engine=database_engine({url!r}, application="x"),
               config=Consumer(receive_wait=5), stop=threading.Event()).run()
"""


def test_work_that_kills_the_process_is_counted(database: Any, aws: Any, hasty: Any, recorder: Any) -> None:
    """Killed three times in the middle of the work: at the next receive the ticket is given up, and not tried again."""
    (ticket,) = hasty.write(1)
    hasty.send([ticket])
    script = CRASHER.format(tests=str(TESTS), queue=hasty.queue.name, url=database.url(Role.EXTRACTOR))
    for attempt in (1, 2, 3):
        ended = subprocess.run([sys.executable, "-c", script], env=dict(aws.environ), timeout=60, check=False)
        assert ended.returncode == -9
        assert hasty.row(ticket).work_attempts == attempt
    hasty.start(recorder, max_attempts=3)
    wait_until(lambda: recorder.given_up == [ticket] and hasty.drained(), 30, what="giving up")
    assert recorder.began == []


def test_a_queue_that_is_deleted_is_made_again(rig: Any, recorder: Any) -> None:
    """The consumer makes it anew and goes on with what is sent to it."""
    rig.start(recorder)
    wait_until(lambda: rig.database.preparer and _alive(rig), what="the heartbeat")
    rig.queue.delete()
    wait_until(lambda: _exists(rig), 30, what="a new queue")
    (ticket,) = rig.write(1)
    rig.send([ticket])
    wait_until(lambda: recorder.ended == [ticket], 30, what="the new queue's message")


def _exists(rig: Any) -> bool:
    try:
        rig.queue.depth()
    except AwsError:
        return False
    return True


def _alive(rig: Any) -> list[Any]:
    with rig.database.preparer.connect() as connection:
        return list(connection.execute(text("SELECT * FROM ops.consumer_heartbeat")))


GARBAGE = {
    "not json": "dead",
    "[1, 2]": "dead",
    "{}": "dead",
    '{"v": 1}': "dead",
    '{"v": 1, "ticket_id": "1; DROP TABLE documents", "idempotency_key": "k"}': "dead",
    '{"v": 2, "ticket_id": 1}': "left",
    '{"v": 1, "ticket_id": 1, "idempotency_key": "k", "event_type": "document.unheard.of"}': "left",
    '{"v": 1, "ticket_id": 999999, "idempotency_key": "k", "event_type": "document.ingest.requested"}': "gone",
    "[" * 50_000: "dead",
}


def test_garbage_is_sorted_by_kind_and_stops_nothing(rig: Any, recorder: Any) -> None:
    """Unreadable and misdirected messages are dead-lettered, unknown tickets dropped, newer releases' left; good ones done."""
    good, forged = rig.write(2)
    (misdirected,) = rig.write(1, lane="registrar")
    for body in GARBAGE:
        rig.send_raw(body)
    rig.send([forged], idempotency_key="another's")
    rig.send([misdirected])
    rig.send([good])
    rig.start(recorder)
    dead = [body for body, fate in GARBAGE.items() if fate == "dead"]
    left = [body for body, fate in GARBAGE.items() if fate == "left"]
    wait_until(lambda: recorder.ended == [good], 20, what="the good one")
    wait_until(lambda: rig.queue.dead.depth().visible == len(dead) + 1, 20, what="dead letters")
    wait_until(lambda: rig.depth() == (0, len(left)), 20, what="what is left for a newer release")
    assert recorder.began == [good]
    assert rig.row(forged).receive_count == 0
    assert rig.row(misdirected).handled_at is None
    kept = {message.body for _ in range(3) for message in rig.queue.dead.receive(wait=0, limit=10)}
    assert set(dead) <= kept


def test_a_queue_service_that_is_away_is_asked_patiently(fifo: Any, recorder: Any) -> None:
    """Refused for a while: a handful of receives, no heartbeat that claims to poll, and everything done afterwards."""
    ids = fifo.write(5)
    fifo.send(ids)
    calls: list[str] = []
    fifo.clients.calls(Service.SQS, calls.append)
    away = failing(EndpointConnectionError(endpoint_url="http://sqs"))
    with answered(fifo.clients, Service.SQS, "ReceiveMessage", away):
        fifo.start(recorder, backoff=None)
        wait_until(lambda: calls.count("ReceiveMessage") >= 3, 30, what="three receives")
        assert _alive(fifo) == []
    assert calls.count("ReceiveMessage") <= 4
    wait_until(lambda: set(recorder.ended) == set(ids) and fifo.drained(), 40, what="resuming")
    assert all(row.work_attempts == 1 for row in fifo.rows())


def test_a_database_that_is_away_costs_neither_messages_nor_attempts(fifo: Any, recorder: Any) -> None:
    """Nothing is received while it is away but what shows that; then everything is done, with one attempt each."""
    ids = fifo.write(8)
    calls: list[str] = []
    fifo.clients.calls(Service.SQS, calls.append)
    stop = fifo.start(recorder, backoff=None)
    wait_until(lambda: _alive(fifo), what="the heartbeat")
    with _database_away(fifo):
        before = _database_failures()
        wait_until(lambda: _database_failures() > before, 30, what="noticing")
        received = calls.count("ReceiveMessage")
        wait_until(lambda: _database_failures() >= before + 4, 30, what="asking again, less and less often")
        assert calls.count("ReceiveMessage") == received
    fifo.send(ids)
    wait_until(lambda: set(recorder.ended) == set(ids), 40, what="resuming")
    assert all(row.work_attempts == 1 for row in fifo.rows())
    fifo.end(stop)


def _database_failures() -> float:
    labels = {"queue": "ingest", "fault": "database"}
    return instruments.reading("pramaan_consumer_failures_total", labels=labels) or 0.0


class _database_away:  # noqa: N801 - reads as the state it makes
    """Nobody gets a connection to this test's database inside the block, and those that there were are gone."""

    def __init__(self, rig: Any) -> None:
        self._database = rig.database

    def __enter__(self) -> None:
        with self._database.cluster._admin.connect() as admin:
            admin.execute(text(f"ALTER DATABASE {self._database.name} WITH ALLOW_CONNECTIONS false"))
            admin.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
                {"name": self._database.name},
            )

    def __exit__(self, *_: object) -> None:
        with self._database.cluster._admin.connect() as admin:
            admin.execute(text(f"ALTER DATABASE {self._database.name} WITH ALLOW_CONNECTIONS true"))
        self._database.preparer.dispose()


def test_messages_received_while_the_database_is_away_come_again(fifo: Any, recorder: Any) -> None:
    """Tickets whose rows cannot be read are released, not acknowledged, and nobody's attempt is spent."""
    ids = fifo.write(8)
    stop = fifo.start(recorder, backoff=None)
    wait_until(lambda: _alive(fifo), what="the heartbeat")
    rows = {row.id: row for row in fifo.rows()}
    fifo.rows = lambda: list(rows.values())  # the test must not need the database either
    with _database_away(fifo):
        fifo.send(ids)
        wait_until(lambda: fifo.depth()[1] > 0, 20, what="a receive")
        wait_until(lambda: fifo.depth()[1] == 0, 20, what="a release")
        assert recorder.began == []
    del fifo.rows
    wait_until(lambda: set(recorder.ended) == set(ids), 40, what="resuming")
    assert all(row.work_attempts == 1 for row in fifo.rows())
    fifo.end(stop)


def test_no_worker_dies_of_what_a_handler_raises(fifo: Any, recorder: Any) -> None:
    """Even of what is meant to end a program: the thread is replaced, the message comes again, the others are done."""
    ids = fifo.write(6)
    fifo.send(ids)

    def deadly(ticket: Any) -> Ack:
        if recorder.began.count(ticket.id) == 1:
            raise SystemExit
        return Ack()

    recorder.answer = deadly
    fifo.start(recorder, workers=2)
    wait_until(lambda: set(recorder.ended) == set(ids) and fifo.drained(), 40, what="draining")


def test_the_heartbeat_is_there_while_it_polls_and_gone_after_a_clean_stop(fifo: Any, recorder: Any) -> None:
    """One row of its own, renewed, removed; what a dead consumer left long ago is swept."""
    with fifo.database.preparer.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, started_at, polled_at)"
                " SELECT gen_random_uuid(), 'ingest', '0', t, t FROM (SELECT now() - interval '2 days' AS t) x"
            )
        )
    stop = fifo.start(recorder)
    wait_until(lambda: len(_alive(fifo)) == 1 and _alive(fifo)[0].version != "0", what="one row")
    first = _alive(fifo)[0].polled_at
    wait_until(lambda: _alive(fifo)[0].polled_at > first, 20, what="renewing")
    fifo.end(stop)
    assert _alive(fifo) == []


def test_one_document_is_worked_on_in_order(rig: Any, recorder: Any) -> None:
    """Twelve tickets of two documents in one batch, many workers: each document's in order, one at a time."""
    ids = rig.write(10, documents=2)
    rig.send(ids)
    gate = threading.Barrier(2, timeout=20)
    recorder.answer = lambda ticket: (gate.wait(), Ack())[1]  # both documents at once, or nothing moves
    rig.start(recorder, workers=8)
    wait_until(lambda: len(recorder.ended) == 10, 30, what="draining")
    documents = {row.id: row.document_id for row in rig.rows()}
    for document in set(documents.values()):
        theirs = [ticket for ticket in ids if documents[ticket] == document]
        assert [ticket for ticket in recorder.ended if ticket in theirs] == theirs


def test_nothing_overtakes_a_ticket_that_comes_again(fifo: Any, recorder: Any) -> None:
    """The first of a document's three is put off once: the other two are released, and come after it."""
    ids = fifo.write(3, documents=1)
    fifo.send(ids)
    recorder.answer = lambda ticket: (
        Retry(timedelta(seconds=1)) if ticket.id == ids[0] and recorder.began.count(ids[0]) == 1 else Ack()
    )
    fifo.start(recorder)
    wait_until(lambda: recorder.ended == ids, 30, what="the order")
    assert recorder.began == [ids[0], *ids]


def test_an_attempt_is_handed_back_where_nobody_failed(fifo: Any, recorder: Any) -> None:
    """Put off ten times for want of something outside: no attempt is spent, and nothing is given up."""
    (ticket,) = fifo.write(1)
    fifo.send([ticket])
    recorder.answer = lambda _: Retry(timedelta(0)) if len(recorder.began) <= 10 else Ack()
    fifo.start(recorder, max_attempts=2)
    wait_until(lambda: recorder.ended == [ticket], 40, what="the eleventh")
    assert recorder.given_up == []
    assert fifo.row(ticket).work_attempts == 1


def test_a_redelivery_of_what_was_handled_is_never_given_up(rig: Any, recorder: Any) -> None:
    """Delivered ten times after it was handled: the handler is asked each time, and no attempt adds up."""
    (ticket,) = rig.write(1)
    with rig.database.preparer.begin() as connection:
        connection.execute(text("UPDATE ops.document_ingest_outbox SET handled_at = now(), outcome = 'done'"))
    for _ in range(10):
        rig.send([ticket])
    rig.start(recorder, max_attempts=2)
    wait_until(lambda: recorder.began.count(ticket) == 10, 40, what="ten redeliveries")
    wait_until(rig.drained, what="draining")
    assert recorder.given_up == []
    assert rig.row(ticket).work_attempts == 0


def test_a_ticket_that_cannot_be_marked_does_not_stop_its_batch(fifo: Any, recorder: Any) -> None:
    """Its row is locked by somebody for long: the others of the batch are done meanwhile, it comes afterwards."""
    ids = fifo.write(5)
    with fifo.database.preparer.begin() as connection:
        connection.execute(text("ALTER ROLE baton_extractor SET lock_timeout = '200ms'"))
    try:
        fifo.send(ids)
        with fifo.database.preparer.begin() as holder:
            holder.execute(text("SELECT 1 FROM ops.document_ingest_outbox WHERE id = :id FOR UPDATE"), {"id": ids[2]})
            fifo.start(recorder)
            wait_until(lambda: len(recorder.ended) == 4, 30, what="the others")
            assert ids[2] not in recorder.began
        wait_until(lambda: set(recorder.ended) == set(ids), 30, what="the last one")
    finally:
        with fifo.database.preparer.begin() as connection:
            connection.execute(text("ALTER ROLE baton_extractor SET lock_timeout = '10s'"))


@pytest.mark.parametrize("action", ["DeleteMessageBatch"])
def test_a_delete_that_fails_leads_to_a_harmless_redelivery(hasty: Any, recorder: Any, action: str) -> None:
    """The effect is committed and the delete is lost: the message comes again, and is then deleted."""
    (ticket,) = hasty.write(1)
    hasty.send([ticket])
    away = failing(EndpointConnectionError(endpoint_url="http://sqs"))
    with answered(hasty.clients, Service.SQS, action, away):
        hasty.start(recorder)
        wait_until(lambda: len(recorder.ended) >= 2, 30, what="a redelivery")
    wait_until(hasty.drained, 30, what="draining")
