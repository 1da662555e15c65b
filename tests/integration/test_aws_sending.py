"""Sending in bulk: what is known of each message, whatever the service does."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from baton.aws import sending
from baton.aws.clients import Bounds, Clients
from baton.aws.errors import FaultKind, QueueUnavailable, RequestRefused
from baton.aws.faults import Service
from baton.aws.queues import Queue, QueueSpec
from baton.aws.sending import CALL_BYTES, Entry, SendState, Sent
from baton.settings import loading
from support.aws_accounts import AwsAccount
from support.aws_answers import accepted_then, answered, failing, hanging, json_answer
from support.waiting import wait_until

ACTION = "SendMessageBatch"


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients of the test's account."""
    made = Clients(loading.load().aws)
    yield made
    made.close()


@pytest.fixture
def queue(clients: Clients) -> Queue:
    """A FIFO queue."""
    made = Queue(clients, QueueSpec("tests.fifo"))
    made.ensure()
    return made


def entries(count: int, *, size: int = 20) -> list[Entry]:
    """Messages of as many documents."""
    return [Entry(f"k{n}", "x" * size, group=f"g{n}", deduplication=f"d{n}") for n in range(count)]


def states(sent: Sent) -> list[str]:
    """The states in order."""
    return [str(result.state) for result in sent.results]


def drained(queue: Queue) -> list[str]:
    """The bodies of everything in the queue."""
    bodies: list[str] = []
    while messages := queue.receive(wait=0):
        bodies += [message.body for message in messages]
        queue.delete_batch([message.receipt for message in messages])
    return bodies


def test_a_batch_is_sent_and_every_message_has_its_id(queue: Queue) -> None:
    """A hundred and five messages over four strands: each sent once, results in order."""
    sent = queue.send_batch(entries(105), parallel=4)
    assert sent.failure is None
    assert [result.key for result in sent.results] == [f"k{n}" for n in range(105)]
    assert len({result.message_id for result in sent.results}) == 105
    assert queue.depth().visible == 105


def test_a_group_keeps_its_order_over_many_calls(queue: Queue) -> None:
    """Thirty messages of one document, among others, arrive in the order they were given."""
    mixed = [Entry(str(n), str(n), group="one" if n % 2 else f"g{n}", deduplication=str(n)) for n in range(60)]
    assert queue.send_batch(mixed, parallel=4).failure is None
    ours = [int(body) for body in drained(queue) if int(body) % 2]
    assert ours == sorted(ours)
    assert len(ours) == 30


def test_failed_and_omitted_entries_are_exactly_those_not_sent(clients: Clients, queue: Queue) -> None:
    """Of ten, three fail and one is left out: six are sent, and each of the four is told apart."""
    stub = json_answer(
        {
            "Successful": [{"Id": str(n), "MessageId": f"m{n}", "MD5OfMessageBody": "x"} for n in range(6)],
            "Failed": [
                {"Id": "6", "SenderFault": True, "Code": "InvalidMessageContents"},
                {"Id": "7", "SenderFault": False, "Code": "InternalError"},
                {"Id": "8", "SenderFault": True, "Code": "AccessDenied"},
                {"Id": "77", "SenderFault": True, "Code": "InternalError"},
            ],
        }
    )
    with answered(clients, Service.SQS, ACTION, stub):
        sent = queue.send_batch(entries(10))
    assert states(sent) == ["sent"] * 6 + ["refused", "failed", "failed", "unanswered"]
    assert [result.message_id for result in sent.of(SendState.SENT)] == [f"m{n}" for n in range(6)]
    assert sent.results[6].code == "InvalidMessageContents"
    assert sent.failure is None


def test_success_without_a_message_id_is_no_success(clients: Clients, queue: Queue) -> None:
    """An entry that is named and has no id counts as unanswered."""
    with answered(clients, Service.SQS, ACTION, json_answer({"Successful": [{"Id": "0"}]})):
        assert states(queue.send_batch(entries(1))) == ["unanswered"]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, FaultKind.THROTTLED),
        ("AccessDenied", 403, FaultKind.DENIED),
        ("ServiceUnavailable", 503, FaultKind.SERVER),
    ],
)
def test_a_call_refused_as_a_whole_counts_for_nobody(
    clients: Clients, queue: Queue, code: str, status: int, kind: FaultKind
) -> None:
    """Throttling, credentials and 5xx leave every message untried, and no retry is made inside."""
    with answered(clients, Service.SQS, ACTION, json_answer({}, status=status, code=code)) as seen:
        sent = queue.send_batch(entries(25))
    assert states(sent) == ["untried"] * 25
    assert isinstance(sent.failure, QueueUnavailable)
    assert sent.failure.kind is kind
    assert len(seen) == 1


def test_a_connection_that_breaks_counts_for_nobody(clients: Clients, queue: Queue) -> None:
    """A transport error stops the batch at once."""
    broken = failing(ConnectionClosedError(endpoint_url="http://x"))
    with answered(clients, Service.SQS, ACTION, broken) as seen:
        sent = queue.send_batch(entries(25))
    assert states(sent) == ["untried"] * 25
    assert isinstance(sent.failure, QueueUnavailable)
    assert len(seen) == 1


def test_a_time_out_after_acceptance_leaves_its_messages_unanswered(clients: Clients, queue: Queue) -> None:
    """They may have arrived: sending them again within five minutes doubles nothing on a FIFO queue."""
    late = accepted_then(ReadTimeoutError(endpoint_url="http://x"))
    with answered(clients, Service.SQS, ACTION, late):
        sent = queue.send_batch(entries(15))
    assert states(sent) == ["unanswered"] * 10 + ["untried"] * 5
    assert isinstance(sent.failure, QueueUnavailable)
    assert sent.failure.kind is FaultKind.TIMEOUT
    assert queue.send_batch(entries(15)).failure is None
    assert len(drained(queue)) == 15


def test_a_sender_that_hangs_gives_back_within_the_bound(clients: Clients, queue: Queue) -> None:
    """Past the bound the caller has its rows back; a late answer changes nothing any more."""
    released = threading.Event()
    try:
        with answered(clients, Service.SQS, ACTION, hanging(released)):
            began = time.perf_counter()
            sent = queue.send_batch(entries(25), bound=0.4)
            assert time.perf_counter() - began < 1.5
        before = states(sent)
        assert before == ["unanswered"] * 10 + ["untried"] * 15
        assert isinstance(sent.failure, QueueUnavailable)
        assert sent.failure.kind is FaultKind.TIMEOUT
    finally:
        released.set()
    wait_until(lambda: not any(thread.name == "sqs-send" for thread in threading.enumerate()))
    assert states(sent) == before
    assert queue.depth().visible == 10


def test_hanging_senders_do_not_pile_up(clients: Clients, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too many calls hang past their bound, nothing more is started."""
    monkeypatch.setattr(sending, "_ABANDONED_LIMIT", 2)
    released = threading.Event()
    try:
        with answered(clients, Service.SQS, ACTION, hanging(released)) as seen:
            for _ in range(4):
                assert queue.send_batch(entries(1), bound=0.1).failure is not None
            assert len(seen) == 2
    finally:
        released.set()
    wait_until(lambda: not any(thread.name == "sqs-send" for thread in threading.enumerate()))
    assert queue.send_batch(entries(1)).failure is None


def test_a_slow_service_is_left_when_the_bound_has_passed(clients: Clients, queue: Queue) -> None:
    """Messages whose turn did not come are untried, those already sent are sent."""
    slow = threading.Event()

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        slow.wait(1.0)
        return None

    with answered(clients, Service.SQS, ACTION, answer):
        sent = queue.send_batch(entries(60), bound=3.5)
    assert set(states(sent)) >= {"sent", "untried"}
    assert sent.failure is not None
    assert queue.depth().visible >= len(sent.of(SendState.SENT)) >= 10


def test_a_poisoned_call_is_halved_until_the_poison_stands_alone(clients: Clients, queue: Queue) -> None:
    """A service that refuses a whole call for one entry costs that entry an attempt, and no other."""

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        asked: Any = request.body
        bodies = [each["MessageBody"] for each in json.loads(asked)["Entries"]]
        if "poison" in bodies:
            return json_answer({}, status=400, code="InvalidMessageContents")(request)
        return None

    batch = entries(10)
    batch[4] = Entry("k4", "poison", group="g4", deduplication="d4")
    with answered(clients, Service.SQS, ACTION, answer):
        sent = queue.send_batch(batch)
    assert states(sent) == ["sent"] * 4 + ["refused"] + ["sent"] * 5
    assert sent.failure is None
    assert len(drained(queue)) == 9


def test_a_wrong_queue_is_not_blamed_on_the_messages(clients: Clients, queue: Queue) -> None:
    """A refusal that no entry can be at fault for stops the batch and counts for nobody."""
    stub = json_answer({}, status=400, code="UnsupportedOperation")
    with answered(clients, Service.SQS, ACTION, stub) as seen:
        sent = queue.send_batch(entries(10))
    assert states(sent) == ["untried"] * 10
    assert isinstance(sent.failure, RequestRefused)
    assert len(seen) == 1


def test_sizes_near_the_limit_are_split(clients: Clients, queue: Queue) -> None:
    """Entries that each fit and together do not go in several calls; one over the limit is refused unsent."""
    batch = [Entry(f"k{n}", "x" * (CALL_BYTES // 2 - 100), group=f"g{n}", deduplication=f"d{n}") for n in range(3)]
    batch.insert(1, Entry("huge", "x" * (CALL_BYTES + 1), group="h", deduplication="h"))
    with answered(clients, Service.SQS, ACTION, lambda _: None) as seen:
        sent = queue.send_batch(batch)
    assert states(sent) == ["sent", "refused", "sent", "sent"]
    assert sent.results[1].code == "MessageTooLong"
    assert [len(each["Entries"]) for each in seen] == [2, 1]


def test_one_strand_that_fails_stops_the_others(clients: Clients, queue: Queue) -> None:
    """With several calls in flight, those are finished after a failure of the service, and no new one is begun."""
    unavailable = json_answer({}, status=503, code="ServiceUnavailable")
    first, failed, noted = threading.Lock(), threading.Event(), threading.Event()

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        if first.acquire(blocking=False):
            failed.set()
            return unavailable(request)
        failed.wait(10)
        noted.wait(0.3)  # never set: the failing strand's time to tell the others
        return None

    with answered(clients, Service.SQS, ACTION, answer) as seen:
        sent = queue.send_batch(entries(200), parallel=4)
    assert isinstance(sent.failure, QueueUnavailable)
    assert len(seen) <= 4
    assert len(sent.of(SendState.SENT)) == (len(seen) - 1) * 10
    assert len(sent.of(SendState.UNTRIED)) == 200 - (len(seen) - 1) * 10


def test_a_standard_queue_takes_no_group(clients: Clients) -> None:
    """What only FIFO queues know is left out for the others."""
    queue = Queue(clients, QueueSpec("standard"))
    queue.ensure()
    with answered(clients, Service.SQS, ACTION, lambda _: None) as seen:
        assert queue.send_batch(entries(1)).failure is None
    assert set(seen[0]["Entries"][0]) == {"Id", "MessageBody"}


def test_a_fifo_message_without_group_is_a_programming_error(queue: Queue) -> None:
    """It is refused before anything is sent."""
    with pytest.raises(ValueError, match="group"):
        queue.send_batch([*entries(1), Entry("k", "x", group="g")])


def test_nothing_to_send_makes_no_call(clients: Clients, queue: Queue) -> None:
    """An empty batch costs nothing."""
    with answered(clients, Service.SQS, ACTION, lambda _: None) as seen:
        assert queue.send_batch([]) == Sent((), None)
    assert seen == []


def test_a_read_that_times_out_is_not_repeated_inside(aws: AwsAccount) -> None:
    """The sending client makes one try only: its caller holds rows locked meanwhile."""
    clients = Clients(loading.load().aws, sender=Bounds(connect=1, read=0.3, attempts=1))
    queue = Queue(clients, QueueSpec("tests.fifo"))
    queue.ensure()
    with answered(clients, Service.SQS, ACTION, failing(ReadTimeoutError(endpoint_url="http://x"))) as seen:
        assert queue.send_batch(entries(1)).failure is not None
    assert len(seen) == 1
    clients.close()
