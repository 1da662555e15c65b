"""Relays on real queues: what was met in public, and what the promise asks for besides."""

import json
import random
import threading
import time
from collections import Counter
from uuid import uuid4

import psycopg
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ReadTimeoutError
from sqlalchemy import text

from baton.aws.clients import Clients
from baton.aws.faults import Service
from baton.aws.queues import Queue
from baton.aws.sending import Entry, SendResult, SendState
from baton.db.states import Lane
from baton.outbox import claim
from baton.outbox.relay import Relay
from baton.outbox.sessions import own_session
from integration.outbox.conftest import IN_TRANSACTION, Recorder, Relays, claiming, sender_of
from support.aws_answers import accepted_then, answered
from support.databases import Database
from support.tickets import DISPATCHED, Bulk, count_where, fill
from support.waiting import wait_until


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: object) -> list[bytes]:
        """The content in one piece."""
        return [self._content]


def _answered(status: int, body: object) -> AWSResponse:
    headers = HTTPHeaders()
    headers["content-type"] = "application/x-amz-json-1.0"
    return AWSResponse("http://stub", status, headers, _Body(json.dumps(body).encode()))


def _received(queue: Queue, count: int) -> list[str]:
    """The bodies of ``count`` messages, and no more than there are."""
    bodies: list[str] = []

    def enough() -> bool:
        messages = queue.receive(wait=1)
        if messages:
            queue.delete_batch([message.receipt for message in messages])
        bodies.extend(message.body for message in messages)
        return len(bodies) >= count

    wait_until(enough, 30, what=f"{count} messages")
    assert not queue.receive(wait=0)
    return bodies


def test_tickets_arrive_and_are_marked(database: Database, relays: Relays, queue: Queue) -> None:
    """Every due ticket is sent once, with its id and key, and its row says when and as what."""
    fill(database, Bulk(count=25, firm=uuid4()))
    result = relays.make(sender_of(queue)).run_once()
    assert (result.claimed, result.dispatched, result.left) == (25, 25, 0)
    bodies = [json.loads(body) for body in _received(queue, 25)]
    with database.preparer.connect() as connection:
        rows = connection.execute(text("SELECT id, idempotency_key FROM ops.document_ingest_outbox")).all()
    assert sorted((body["ticket_id"], body["idempotency_key"]) for body in bodies) == sorted(map(tuple, rows))
    assert count_where(database, "claimed_at <= dispatched_at AND message_id IS NOT NULL") == 25


def test_four_relays_with_a_slow_sender_send_each_ticket_once(database: Database, relays: Relays) -> None:
    """Rows stay locked while they are sent, so relays side by side never send the same one."""
    for _ in range(4):
        fill(database, Bulk(count=100, firm=uuid4()))
    slow = threading.Event()
    recorder = Recorder(before=lambda: slow.wait(0.15))
    with relays.running(*(relays.make(recorder, batch_size=25, in_flight=2) for _ in range(4))):
        wait_until(lambda: count_where(database, DISPATCHED) == 400, 30)
    assert Counter(Counter(recorder.keys).values()) == {1: 400}


def test_a_send_that_never_returns_holds_rows_no_longer_than_its_bound(
    database: Database, relays: Relays, clients: Clients, queue: Queue
) -> None:
    """One call hangs: its transaction ends at the bound, others relay on meanwhile, and nothing is lost."""
    hung, release = threading.Event(), threading.Event()

    def hang_once(**_: object) -> None:
        if not hung.is_set():
            hung.set()
            release.wait(60)

    clients.events(Service.SQS).register("before-send.sqs.SendMessageBatch", hang_once)
    fill(database, Bulk(count=10, firm=uuid4()))
    stuck = relays.make(sender_of(queue), send_timeout=1.5, batch_size=10)
    began = time.monotonic()
    first = threading.Thread(target=stuck.run_once)
    first.start()
    try:
        assert hung.wait(5)
        fill(database, Bulk(count=30, firm=uuid4()))
        other = relays.make(sender_of(queue), send_timeout=1.5, batch_size=10)
        assert sum(other.run_once().dispatched for _ in range(3)) == 30
        first.join(10)
        assert time.monotonic() - began < 1.5 + 2.0
    finally:
        release.set()
    assert count_where(database, f"NOT {DISPATCHED}") == 10
    assert claiming(database, IN_TRANSACTION) == 0
    assert other.run_once().dispatched == 10


def test_a_frozen_relay_is_cut_off_and_its_rows_are_sent_by_others(database: Database, relays: Relays) -> None:
    """A process that freezes between claim and settlement loses its session, marks nothing, and recovers by itself."""
    fill(database, Bulk(count=5, firm=uuid4()))
    with database.preparer.begin() as connection:
        connection.execute(
            text(
                f"ALTER ROLE baton_relay IN DATABASE {database.name} SET idle_in_transaction_session_timeout = '1500ms'"
            )
        )
    claimed, thaw = threading.Event(), threading.Event()

    def freeze() -> None:
        claimed.set()
        thaw.wait(30)

    frozen, other = Recorder(before=freeze), Recorder()
    with relays.running(relays.make(frozen, backoff_initial=0.05)):
        assert claimed.wait(10)
        wait_until(lambda: claiming(database, IN_TRANSACTION) == 0, what="the frozen session's end")
        assert relays.make(other).run_once().dispatched == 5
        thaw.set()
        wait_until(lambda: len(frozen.keys) == 5)
        fill(database, Bulk(count=3, firm=uuid4()))
        wait_until(lambda: count_where(database, DISPATCHED) == 8)
    assert len(frozen.keys) == 8


def test_settled_rows_are_counted_from_what_comes_back(database: Database, relays: Relays) -> None:
    """A ticket that somebody else marked while it was being sent is not counted as dispatched by this relay."""
    fill(database, Bulk(count=10, firm=uuid4()))
    statements = claim.statements_of(Lane.INGEST, size=10)
    with own_session(database.engine("baton_relay")) as driver, driver.transaction():
        claimed = claim.claim(driver, statements, cursor=uuid4())
        marks = {ticket.id: "m" for ticket in claimed.tickets}
        first = claim.settle(driver, statements, dict(list(marks.items())[:4]), claimed_at=claimed.at)
        rest = claim.settle(driver, statements, marks, claimed_at=claimed.at)
    assert (len(first), len(rest)) == (4, 6)
    assert not first & rest


def test_an_answer_with_failures_and_omissions_marks_exactly_the_rest(
    database: Database, relays: Relays, clients: Clients, queue: Queue
) -> None:
    """Of ten, three are refused in an answer of 200 and one is left out: exactly six are marked."""

    def partly(request: object, **_: object) -> AWSResponse:
        sent = [{"Id": str(n), "MessageId": f"m{n}", "MD5OfMessageBody": "0" * 32} for n in range(6)]
        refused = [
            {"Id": str(n), "SenderFault": True, "Code": "InvalidMessageContents", "Message": "no"} for n in (6, 7, 8)
        ]
        return _answered(200, {"Successful": sent, "Failed": refused})

    fill(database, Bulk(count=10, firm=uuid4(), documents=1))
    clients.events(Service.SQS).register("before-send.sqs.SendMessageBatch", partly)
    result = relays.make(sender_of(queue)).run_once()
    assert (result.dispatched, result.counted, result.delayed, result.parked) == (6, 3, 1, 0)
    assert count_where(database, DISPATCHED) == 6
    assert (
        count_where(database, "attempts = 1 AND last_error = 'InvalidMessageContents' AND not_before > app.clock()")
        == 3
    )
    assert count_where(database, f"attempts = 0 AND NOT {DISPATCHED}") == 1


def test_a_ticket_is_parked_after_its_last_refusal(database: Database, relays: Relays) -> None:
    """Only refusals by its own fault count; at the limit it is parked, and sent no more."""
    fill(database, Bulk(count=1, firm=uuid4()))
    recorder = Recorder(answer=lambda entry: SendResult(entry.key, SendState.REFUSED, code="TooLong"))
    relay = relays.make(recorder, max_attempts=3)
    for expected in (0, 0, 1):
        assert relay.run_once().parked == expected
        database.move_clock(600 * (relay is not None) * (len(recorder.batches)))
    assert count_where(database, "parked_at IS NOT NULL AND attempts = 3 AND dispatched_at IS NULL") == 1
    database.move_clock(86_400)
    assert relay.run_once().claimed == 0


def test_poison_rows_do_not_fill_every_batch(database: Database, relays: Relays) -> None:
    """A whole batch of refused tickets stands before a good one: the good one goes with the second batch."""
    firm = uuid4()  # the same one, so that no fairness between firms helps
    fill(database, Bulk(count=100, firm=firm, due_ago=100, documents=1))
    fill(database, Bulk(count=1, firm=firm, due_ago=1))
    with database.preparer.connect() as connection:
        wanted = str(connection.execute(text("SELECT max(id) FROM ops.document_ingest_outbox")).scalar_one())

    def answer(entry: Entry) -> SendResult:
        if entry.key == wanted:
            return SendResult(entry.key, SendState.SENT, "m")
        return SendResult(entry.key, SendState.REFUSED, code="Poison")

    recorder = Recorder(answer=answer)
    relay = relays.make(recorder)
    relay.run_once()
    relay.run_once()
    assert wanted in recorder.keys


def test_unanswered_rows_do_not_fill_every_batch(database: Database, relays: Relays) -> None:
    """Tickets that the service never answers for step aside for the others, and spend no attempt."""
    firm = uuid4()
    fill(database, Bulk(count=100, firm=firm, due_ago=100))
    fill(database, Bulk(count=1, firm=firm, due_ago=1))
    silent = set[str]()

    def answer(entry: Entry) -> SendResult:
        if len(silent) < 99 or entry.key in silent:
            silent.add(entry.key)
            return SendResult(entry.key, SendState.UNANSWERED)
        return SendResult(entry.key, SendState.SENT, "m")

    relay = relays.make(Recorder(answer=answer))
    relay.run_once()
    relay.run_once()
    assert count_where(database, DISPATCHED) == 2
    assert count_where(database, "attempts = 0 AND parked_at IS NULL") == 101


def test_batches_too_large_for_one_call_are_split(
    database: Database, relays: Relays, clients: Clients, queue: Queue
) -> None:
    """Ten tickets that each fit, but not together, all arrive."""
    fill(database, Bulk(count=10, firm=uuid4()))
    with database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        connection.execute(
            # three bytes each as UTF-8, twelve as JSON's ASCII: a key of 4,000 characters makes 48 kB
            text("UPDATE ops.document_ingest_outbox SET object_key = repeat('\U00010348', 3900)")
        )
    calls: list[str] = []
    clients.calls(Service.SQS, calls.append)
    assert relays.make(sender_of(queue)).run_once().dispatched == 10
    assert calls.count("SendMessageBatch") > 1
    assert len(_received(queue, 10)) == 10


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (400, "RequestThrottled"), (503, "ServiceUnavailable"), (500, "InternalError")],
)
def test_an_outage_parks_nothing_and_spends_nothing(
    database: Database, relays: Relays, sending: tuple[Clients, Queue], status: int, code: str
) -> None:
    """Authentication, throttling and 5xx back off the relay as a whole; afterwards everything goes."""
    clients, queue = sending
    fill(database, Bulk(count=20, firm=uuid4()))
    events = clients.events(Service.SQS)

    def refuse(**_: object) -> AWSResponse:
        return _answered(status, {"__type": f"com.amazonaws.sqs#{code}", "message": "no"})

    events.register("before-send.sqs.SendMessageBatch", refuse)
    relay = relays.make(sender_of(queue), backoff_initial=0.05, backoff_max=0.2, stalled_after=1.0)
    with relays.running(relay):
        wait_until(lambda: relay.stalled, what="the stall")
        assert count_where(database, "attempts = 0 AND parked_at IS NULL AND dispatched_at IS NULL") == 20
        events.unregister("before-send.sqs.SendMessageBatch", refuse)
        wait_until(lambda: count_where(database, DISPATCHED) == 20)
        wait_until(lambda: not relay.stalled)


def test_an_answer_lost_after_acceptance_costs_a_second_message_at_most(
    database: Database, relays: Relays, clients: Clients, queue: Queue
) -> None:
    """The service takes a call and its answer is lost: it is sent again, and a FIFO queue drops the second one."""
    fill(database, Bulk(count=10, firm=uuid4()))
    relay = relays.make(sender_of(queue))
    lost = accepted_then(ReadTimeoutError(endpoint_url="https://sqs"))
    with answered(clients, Service.SQS, "SendMessageBatch", lost):
        result = relay.run_once()
    assert (result.dispatched, result.left, result.counted) == (0, 10, 0)
    assert relay.run_once().dispatched == 10
    bodies = _received(queue, 10 if queue.fifo else 20)
    assert len({json.loads(body)["ticket_id"] for body in bodies}) == 10


def test_a_queue_that_is_gone_is_made_again(database: Database, relays: Relays, queue: Queue) -> None:
    """The queue is deleted while the relay runs: it comes back, and the tickets with it."""
    relay = relays.make(sender_of(queue), backoff_initial=0.05, backoff_max=0.2)
    fill(database, Bulk(count=3, firm=uuid4()))
    assert relay.run_once().dispatched == 3
    queue.delete()
    fill(database, Bulk(count=4, firm=uuid4()))
    with relays.running(relay):
        wait_until(lambda: count_where(database, DISPATCHED) == 7, 20)
    assert len(_received(queue, 4)) == 4


def test_one_firm_does_not_starve_the_others(database: Database, relays: Relays) -> None:
    """Ten thousand older tickets of one firm, one of another: it goes within two batches."""
    fill(database, Bulk(count=10_000, firm=uuid4(), due_ago=3600))
    small = uuid4()
    fill(database, Bulk(count=1, firm=small))
    recorder = Recorder()
    relay = relays.make(recorder)
    relay.run_once()
    relay.run_once()
    assert count_where(database, f"firm_id = '{small}' AND {DISPATCHED}") == 1
    assert len(recorder.keys) == 200


def test_every_firm_has_its_turn(database: Database, relays: Relays) -> None:
    """Of many firms with many tickets each, all are served before one is served a third time."""
    firms = [uuid4() for _ in range(40)]
    for firm in firms:
        fill(database, Bulk(count=30, firm=firm, due_ago=60))
    relay = relays.make(Recorder(), batch_size=100)
    for _ in range(4):
        relay.run_once()
    assert all(count_where(database, f"firm_id = '{firm}' AND {DISPATCHED}") == 10 for firm in firms)


def test_tickets_of_a_lane_never_reach_the_other_queue(database: Database, relays: Relays, queue: Queue) -> None:
    """A relay takes its own lane's tickets alone."""
    fill(database, Bulk(count=5, firm=uuid4(), lane="registrar"))
    fill(database, Bulk(count=5, firm=uuid4(), lane="ingest"))
    assert relays.make(sender_of(queue), lane=Lane.INGEST).run_once().dispatched == 5
    events = {json.loads(body)["event_type"] for body in _received(queue, 5)}
    assert events == {"document.ingest.requested"}
    assert count_where(database, f"lane = 'registrar' AND {DISPATCHED}") == 0


def test_a_ticket_waits_for_its_time(database: Database, relays: Relays) -> None:
    """What is not due is not sent, and is sent once it is, by the database's clock."""
    fill(database, Bulk(count=1, firm=uuid4(), due_ago=-120))
    relay = relays.make(Recorder())
    assert relay.run_once().claimed == 0
    database.move_clock(121)
    assert relay.run_once().dispatched == 1


def test_one_documents_tickets_keep_their_order(database: Database, relays: Relays, fifo: Queue) -> None:
    """Tickets of one document arrive in the order in which they became due, however many calls are in flight."""
    fill(database, Bulk(count=60, firm=uuid4(), documents=3))
    assert relays.make(sender_of(fifo)).run_once().dispatched == 60
    arrived: dict[str, list[int]] = {}
    for body in map(json.loads, _received(fifo, 60)):
        arrived.setdefault(body["document_id"], []).append(body["ticket_id"])
    assert len(arrived) == 3
    assert all(ids == sorted(ids) for ids in arrived.values())


def test_two_settlers_of_shuffled_ids_do_not_deadlock(database: Database) -> None:
    """Overlapping batches in any order, over and over: no deadlock, every row marked once."""
    fill(database, Bulk(count=60, firm=uuid4()))
    with database.preparer.connect() as connection:
        ids = list(connection.execute(text("SELECT id FROM ops.document_ingest_outbox")).scalars())
        now = connection.execute(text("SELECT app.clock()::text")).scalar_one()
    statements = claim.statements_of(Lane.INGEST, size=10)
    errors: list[Exception] = []
    marked: Counter[int] = Counter()

    def settler(seed: int) -> None:
        chooser = random.Random(seed)
        try:
            with own_session(database.engine("baton_relay")) as driver:
                driver.autocommit = False
                for _ in range(500):
                    chosen = chooser.sample(ids, 30)
                    claim.settle(driver, statements, dict.fromkeys(chosen, "m"), claimed_at=now)
                    driver.rollback()
                marked.update(claim.settle(driver, statements, dict.fromkeys(ids, "m"), claimed_at=now))
                driver.commit()
        except psycopg.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=settler, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(marked.elements()) == sorted(ids)


def test_stopping_finishes_the_batch_that_is_under_way(database: Database, relays: Relays) -> None:
    """A relay that is told to stop while it sends marks what it sent."""
    fill(database, Bulk(count=10, firm=uuid4()))
    sending, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        sending.set()
        go_on.wait(10)

    stop = threading.Event()
    relay: Relay = relays.make(Recorder(before=slowly))
    thread = threading.Thread(target=relay.run, kwargs={"stop": stop})
    thread.start()
    assert sending.wait(5)
    stop.set()
    go_on.set()
    thread.join(5)
    assert not thread.is_alive()
    assert count_where(database, DISPATCHED) == 10
