"""Clients: one of each kind for a process, led by the environment alone, open to observers."""

import threading
from typing import Any

import pytest

from baton.aws.clients import Clients
from baton.aws.faults import Service
from baton.aws.queues import Queue, QueueSpec
from baton.settings import loading
from baton.settings.secret import Secret
from baton.settings.stores import Aws
from support.aws_accounts import AwsAccount


def test_the_environment_alone_leads_to_the_server(aws: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing in the settings, the SDK's own variables are enough."""
    clients = Clients(Aws())
    assert clients.sqs.meta.endpoint_url == aws.endpoint
    assert Queue(clients, QueueSpec("tests")).ensure().endswith("/tests")
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")
    assert Clients(Aws(region="eu-west-1")).sqs.meta.endpoint_url == "https://sqs.eu-west-1.amazonaws.com"


def test_real_aws_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any variable, addresses are AWS's and buckets have hosts of their own."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SQS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    clients = Clients(Aws(access_key_id="k", secret_access_key=Secret("s")))
    assert clients.sqs.meta.region_name == "us-east-1"
    url = clients.presigner.generate_presigned_url("get_object", Params={"Bucket": "b1b", "Key": "k"})
    assert url.startswith("https://b1b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256")


def test_threads_share_one_client_of_each_kind(aws: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen threads that ask at once are given the same client, made once."""
    made: list[str] = []
    original = Clients._make

    def counting(self: Clients, use: str, *rest: Any) -> Any:
        made.append(use)
        return original(self, use, *rest)

    monkeypatch.setattr(Clients, "_make", counting)
    clients, barrier, got = Clients(loading.load().aws), threading.Barrier(16), list[object]()

    def ask() -> None:
        barrier.wait()
        got.append(clients.sqs)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({id(each) for each in got}) == 1
    assert made == ["sqs"]
    clients.close()


def test_every_client_is_observed_those_made_later_included(aws: AwsAccount) -> None:
    """Actions are told by name, whichever client makes the call, until the observer leaves."""
    clients = Clients(loading.load().aws)
    calls: list[str] = []
    clients.calls(Service.SQS, calls.append)
    sent: list[str] = []

    def watch(event_name: str, **_: object) -> None:
        sent.append(event_name)

    events = clients.events(Service.SQS)
    events.register("before-send.sqs.*", watch)
    queue = Queue(clients, QueueSpec("tests", dead="tests-dead"))
    queue.ensure()
    queue.receive(wait=0)
    events.unregister("before-send.sqs.*", watch)
    queue.depth()
    assert calls[-2:] == ["ReceiveMessage", "GetQueueAttributes"]
    assert sent[-1] == "before-send.sqs.ReceiveMessage"
    clients.close()


def test_each_use_has_its_own_patience(aws: AwsAccount) -> None:
    """The sender tries once; a long poll's client waits the poll on top of the ordinary time-out."""
    clients = Clients(Aws(read_timeout=7, connect_timeout=2, max_attempts=4))
    configs: list[Any] = [each.meta.config for each in (clients.sqs, clients.receiver, clients.sender)]
    ordinary, receiver, sender = configs
    assert (ordinary.read_timeout, ordinary.connect_timeout) == (7, 2)
    assert receiver.read_timeout == 27
    assert [each.retries["total_max_attempts"] for each in (ordinary, receiver, sender)] == [4, 4, 1]
    assert sender.connect_timeout + sender.read_timeout <= 5
    clients.close()


def test_clients_can_be_used_again_after_closing(aws: AwsAccount) -> None:
    """Closing drops connections, not the ability to make new ones."""
    clients = Clients(loading.load().aws)
    queue = Queue(clients, QueueSpec("tests"))
    queue.ensure()
    clients.close()
    assert queue.depth().empty
    clients.close()
