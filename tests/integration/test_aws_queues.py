"""Queues on a real server: found or made, recreated when gone, received from and let go of."""

import json
import threading
from collections.abc import Iterator

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from baton.aws import queues, receiving
from baton.aws.clients import Clients
from baton.aws.errors import FaultKind, QueueMissing, QueueUnavailable
from baton.aws.faults import Service
from baton.aws.queues import Depth, Queue, QueueSpec
from baton.aws.sending import Entry, SendState
from baton.settings import loading
from baton.settings.secret import Secret
from baton.settings.stores import Aws, Queues
from support.aws_accounts import AwsAccount
from support.aws_answers import answered, json_answer
from support.collector import closed_port
from support.waiting import wait_until


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients of the test's account."""
    made = Clients(loading.load().aws)
    yield made
    made.close()


@pytest.fixture
def queue(clients: Clients) -> Queue:
    """A FIFO queue with its dead-letter queue."""
    made = Queue(clients, QueueSpec("tests.fifo", dead="tests-dead.fifo", visibility=30))
    made.ensure()
    return made


def entry(key: str, *, group: str = "g", body: str = "{}") -> Entry:
    """A message of a document."""
    return Entry(key, body, group=group, deduplication=key, attributes={"traceparent": f"trace-{key}"})


def test_missing_queues_are_made_as_the_settings_say(clients: Clients, aws: AwsAccount) -> None:
    """Each queue comes with order, visibility, retention and its dead-letter queue."""
    settings = Queues(visibility=45, retention=3600, max_receives=77)
    for made in queues.configured(clients, settings):
        url = made.ensure()
        found = aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert found["VisibilityTimeout"] == "45"
        assert found["MessageRetentionPeriod"] == "3600"
        assert made.dead is not None
        assert json.loads(found["RedrivePolicy"]) == {"deadLetterTargetArn": made.dead.arn(), "maxReceiveCount": 77}
        assert (found.get("FifoQueue") == "true") == made.fifo == made.dead.fifo
        assert found.get("ContentBasedDeduplication", "false") == "false"


def test_an_existing_queue_is_left_as_it_is(clients: Clients, aws: AwsAccount) -> None:
    """A queue that somebody else made with other attributes is used, not changed."""
    url = aws.client("sqs").create_queue(QueueName="theirs", Attributes={"VisibilityTimeout": "7"})["QueueUrl"]
    assert Queue(clients, QueueSpec("theirs", visibility=99)).ensure() == url
    found = aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert found["Attributes"]["VisibilityTimeout"] == "7"


def test_a_queue_made_by_somebody_else_in_between_is_used(clients: Clients, aws: AwsAccount) -> None:
    """Between not finding a queue and making it, another maker with other attributes may be faster."""
    url = aws.client("sqs").create_queue(QueueName="raced", Attributes={"VisibilityTimeout": "7"})["QueueUrl"]
    answers = iter([json_answer({}, status=400, code="AWS.SimpleQueueService.NonExistentQueue")])

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        stub = next(answers, None)
        return None if stub is None else stub(request)

    with answered(clients, Service.SQS, "GetQueueUrl", answer):
        assert Queue(clients, QueueSpec("raced", visibility=99)).ensure() == url


def test_a_queue_may_be_given_by_its_url(clients: Clients, queue: Queue) -> None:
    """The URL is used without looking the name up."""
    calls: list[str] = []
    clients.calls(Service.SQS, calls.append)
    by_url = Queue(clients, QueueSpec(queue.url))
    assert by_url.fifo
    assert by_url.depth() == Depth(0, 0, 0)
    assert calls == ["GetQueueAttributes"]


def test_many_processes_may_ensure_at_once(aws: AwsAccount) -> None:
    """Eight makers of the same queue, each with clients of its own, agree on one."""
    barrier, urls = threading.Barrier(8), list[str]()

    def ensure() -> None:
        own = Clients(loading.load().aws)
        barrier.wait()
        urls.append(Queue(own, QueueSpec("shared.fifo", dead="shared-dead.fifo")).ensure())
        own.close()

    threads = [threading.Thread(target=ensure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(urls) == 8
    assert len(set(urls)) == 1


def test_without_leave_to_create_a_missing_queue_is_said_to_be_missing(clients: Clients) -> None:
    """An operator who makes queues elsewhere is told which one is missing."""
    with pytest.raises(QueueMissing):
        Queue(clients, QueueSpec("nowhere.fifo", dead="nowhere-dead.fifo", create=False)).ensure()


def test_a_queue_deleted_while_in_use_is_missing_until_it_is_ensured(
    clients: Clients, queue: Queue, aws: AwsAccount
) -> None:
    """Every call says so by type, whether or not the URL was known, and ensure makes it again."""
    aws.client("sqs").delete_queue(QueueUrl=queue.url)
    calls: list[str] = []
    clients.calls(Service.SQS, calls.append)
    for _ in range(2):  # with the URL that is remembered, and with the name looked up again
        with pytest.raises(QueueMissing):
            queue.receive(wait=0)
    assert calls == ["ReceiveMessage", "GetQueueUrl"]
    with pytest.raises(QueueMissing):
        queue.depth()
    sent = queue.send_batch([entry("a")])
    assert isinstance(sent.failure, QueueMissing)
    assert sent.results[0].state is SendState.UNTRIED
    queue.ensure()
    assert queue.send_batch([entry("a")]).results[0].state is SendState.SENT
    assert len(queue.receive(wait=1)) == 1


def test_a_queue_that_is_known_is_asked_once_whether_it_is_there(clients: Clients, queue: Queue) -> None:
    """Its dead-letter queue, too; loops ensure both at every pass."""
    queue.ensure()
    calls: list[str] = []
    clients.calls(Service.SQS, calls.append)
    queue.ensure()
    assert calls == ["GetQueueAttributes"] * 2


def test_the_dead_letter_queue_is_made_again_too(queue: Queue, aws: AwsAccount) -> None:
    """A dead-letter queue that was deleted under a living queue comes back."""
    assert queue.dead is not None
    aws.client("sqs").delete_queue(QueueUrl=queue.dead.url)
    queue.ensure()
    assert queue.dead.depth().empty


def test_a_message_comes_with_what_a_consumer_needs(queue: Queue) -> None:
    """Group, receive count, time and traceparent stand beside the body."""
    queue.send_batch([entry("a", body='{"n":1}')])
    (first,) = queue.receive(wait=1, visibility=0)
    (second,) = wait_until(lambda: queue.receive(wait=1))
    assert (first.body, first.group, first.traceparent) == ('{"n":1}', "g", "trace-a")
    assert first.receive_count == 1
    assert second.receive_count == 2
    assert second.message_id == first.message_id
    assert second.receipt != first.receipt
    assert first.sent_at is not None
    assert "n" not in repr(first).partition("body")[2][:3]


def test_letting_go_reports_each_receipt(queue: Queue) -> None:
    """More than ten receipts go in several calls, and a refused one is named with its code."""
    queue.send_batch([entry(f"m{n}", group=f"g{n}") for n in range(23)])
    held: list[receiving.Message] = []
    while len(held) < 23:
        held += wait_until(lambda: queue.receive(wait=1))
    receipts = [message.receipt for message in held]
    assert queue.depth() == Depth(visible=0, in_flight=23, delayed=0)
    assert queue.change_visibility_batch([*receipts, "bogus"], seconds=40) == {"bogus": "ReceiptHandleIsInvalid"}
    assert queue.delete_batch([*receipts[:22], "bogus"]) == {"bogus": "ReceiptHandleIsInvalid"}
    assert queue.change_visibility_batch(receipts[22:], seconds=0) == {}
    assert len(wait_until(lambda: queue.receive(wait=1))) == 1


def test_a_receipt_that_the_answer_omits_is_not_taken_for_deleted(clients: Clients, queue: Queue) -> None:
    """Neither in Successful nor in Failed means not deleted."""
    stub = json_answer(
        {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}]}
    )
    with answered(clients, Service.SQS, "DeleteMessageBatch", stub):
        assert queue.delete_batch(["a", "b", "c"]) == {"b": "InternalError", "c": "Unanswered"}


def test_the_sdks_retries_of_a_fifo_receive_carry_one_attempt(clients: Clients, queue: Queue) -> None:
    """An answer lost on its way is given again, because the retry names the same attempt."""
    stub = json_answer({}, status=500, code="InternalError", fault="Server")
    with (
        answered(clients, Service.SQS, "ReceiveMessage", stub) as seen,
        pytest.raises(QueueUnavailable) as raised,
    ):
        queue.receive(wait=0)
    assert raised.value.kind is FaultKind.SERVER
    assert len(seen) == 3
    assert len({each["ReceiveRequestAttemptId"] for each in seen}) == 1


def test_an_answer_that_is_no_answer_of_sqs_is_the_services_fault(clients: Clients, queue: Queue) -> None:
    """A message without its receipt, as from a broken proxy, is not half believed."""
    with (
        answered(clients, Service.SQS, "ReceiveMessage", json_answer({"Messages": [{"Body": "x"}]})),
        pytest.raises(QueueUnavailable),
    ):
        queue.receive(wait=0)


def test_a_service_that_is_away_is_said_to_be_away() -> None:
    """A closed port is a transport fault, not a missing queue, within its bounds."""
    away = Clients(Aws(sqs_endpoint=closed_port(), access_key_id="k", secret_access_key=Secret("s"), max_attempts=1))
    with pytest.raises(QueueUnavailable) as raised:
        Queue(away, QueueSpec("any.fifo")).ensure()
    assert raised.value.kind is FaultKind.TRANSPORT


def test_half_a_key_is_a_fault_of_credentials() -> None:
    """A key without its secret is a typed error, as everything that the SDK complains of."""
    with pytest.raises(QueueUnavailable) as raised:
        Queue(Clients(Aws(access_key_id="k")), QueueSpec("any.fifo")).ensure()
    assert raised.value.kind is FaultKind.DENIED
