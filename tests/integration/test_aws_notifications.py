"""The bucket tells the results queue about artifacts, and nothing else that is configured is lost."""

import json
from collections.abc import Iterator

import pytest

from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.notifications import NotificationKind
from baton.aws.objects import Store
from baton.aws.queues import Queue, QueueSpec
from baton.settings import loading
from baton.settings.stores import Bucket
from support.aws_accounts import AwsAccount
from support.waiting import wait_until


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients of the test's account."""
    made = Clients(loading.load().aws)
    yield made
    made.close()


@pytest.fixture
def store(clients: Clients, aws: AwsAccount) -> Store:
    """A bucket; its name is one of the whole server, not of the account."""
    made = Store(clients, Bucket(name=f"tests-{aws.account}"))
    made.ensure()
    return made


@pytest.fixture
def queue(clients: Clients) -> Queue:
    """The results queue."""
    made = Queue(clients, QueueSpec("results", dead="results-dead"))
    made.ensure()
    return made


def told(queue: Queue, count: int) -> list[str]:
    """The keys that the queue was told of, once there are `count`."""
    keys: list[str] = []

    def look() -> bool:
        for message in queue.receive(wait=0):
            found = notifications.parse(message.body)
            assert found.kind in {NotificationKind.OBJECTS, NotificationKind.TEST}
            keys.extend(each.key for each in found.objects)
            queue.delete_batch([message.receipt])
        return len(keys) >= count

    wait_until(look, what=f"{count} notifications")
    return keys


def test_an_artifact_is_told_and_other_objects_are_not(clients: Clients, store: Store, queue: Queue) -> None:
    """Only keys under the prefix arrive, decoded as they were put."""
    assert notifications.ensure(clients, store.name, queue)
    store.put("uploads/x.pdf", b"", content_type="x")
    store.put("agent-runs/r/ü +.json", b"{}", content_type="application/json")
    assert told(queue, 1) == ["agent-runs/r/ü +.json"]


def test_ensuring_again_changes_nothing(clients: Clients, store: Store, queue: Queue) -> None:
    """The second time there is nothing to do."""
    assert notifications.ensure(clients, store.name, queue)
    assert not notifications.ensure(clients, store.name, queue)


def test_what_else_is_configured_stays(clients: Clients, store: Store, queue: Queue, aws: AwsAccount) -> None:
    """Another queue's notification and another statement of the policy are left in place."""
    sqs, s3 = aws.client("sqs"), aws.client("s3")
    other = sqs.create_queue(QueueName="other")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=other, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    theirs = {"Id": "theirs", "QueueArn": arn, "Events": ["s3:ObjectRemoved:*"]}
    s3.put_bucket_notification_configuration(
        Bucket=store.name, NotificationConfiguration={"QueueConfigurations": [theirs], "EventBridgeConfiguration": {}}
    )
    statement = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": queue.arn()}
    queue.set_policy({"Version": "2012-10-17", "Statement": statement})
    notifications.ensure(clients, store.name, queue)
    found = s3.get_bucket_notification_configuration(Bucket=store.name)
    assert [each["Id"] for each in found["QueueConfigurations"]] == ["theirs", "baton-artifacts"]
    assert "EventBridgeConfiguration" in found
    assert [each["Sid"] for each in queue.policy()["Statement"]] == ["Theirs", "BatonArtifactNotifications"]


def test_a_notification_of_ours_to_a_queue_that_is_gone_is_replaced(
    clients: Clients, store: Store, queue: Queue, aws: AwsAccount
) -> None:
    """After the results queue was renamed, the bucket tells the new one only."""
    notifications.ensure(clients, store.name, queue)
    renamed = Queue(clients, QueueSpec("renamed"))
    renamed.ensure()
    assert notifications.ensure(clients, store.name, renamed)
    found = aws.client("s3").get_bucket_notification_configuration(Bucket=store.name)
    assert [each["QueueArn"] for each in found["QueueConfigurations"]] == [renamed.arn()]


def test_somebody_elses_equal_notification_is_enough(
    clients: Clients, store: Store, queue: Queue, aws: AwsAccount
) -> None:
    """A notification made by Terraform under another id is not doubled."""
    configuration = {
        "Id": "terraform",
        "QueueArn": queue.arn(),
        "Events": ["s3:ObjectCreated:*"],
        "Filter": {"Key": {"FilterRules": [{"Name": "Prefix", "Value": "agent-runs/"}]}},
    }
    aws.client("s3").put_bucket_notification_configuration(
        Bucket=store.name, NotificationConfiguration={"QueueConfigurations": [configuration]}
    )
    notifications.ensure(clients, store.name, queue)
    found = aws.client("s3").get_bucket_notification_configuration(Bucket=store.name)
    assert [each["Id"] for each in found["QueueConfigurations"]] == ["terraform"]


def test_the_policy_admits_this_bucket_only(clients: Clients, store: Store, queue: Queue) -> None:
    """S3 may send on behalf of our bucket, nobody else's."""
    notifications.ensure(clients, store.name, queue)
    (statement,) = queue.policy()["Statement"]
    assert statement["Principal"] == {"Service": "s3.amazonaws.com"}
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{store.name}"}}
    assert json.dumps(statement).count("*") == 0
