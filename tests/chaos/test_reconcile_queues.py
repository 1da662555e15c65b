"""Queues and notifications that vanish while everything runs: made again, and what was in them asked for again, once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from uuid_utils.compat import uuid7

from baton.aws.clients import Clients
from baton.aws.queues import Queue, configured
from baton.db.access import Role
from baton.db.states import Lane
from baton.embedded.ministack import EmbeddedAws
from baton.outbox.relay import Relay
from baton.outbox.senders import QueueSender
from baton.reconcilers import process
from baton.settings.loading import load
from baton.settings.model import Settings
from baton.settings.secret import Secret
from baton.workload.ground import stood
from support.aws_accounts import AwsAccount, new_account
from support.databases import Database
from support.matters import Matter
from support.reconciling import QUICK, Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


def _settings(database: Database, account: AwsAccount) -> Settings:
    loaded = load(account.environ)
    url = Secret(database.url(Role.RECONCILER).replace("postgresql://", "postgresql+psycopg://"))
    return replace(
        loaded,
        database=replace(loaded.database, url=url),
        bucket=replace(loaded.bucket, name=f"baton-{account.account}"),
        reconcile=replace(QUICK, interval=0.3),
    )


@contextmanager
def _running(settings: Settings) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=process.run, args=(settings,), kwargs={"stop": stop}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(40)
    assert not thread.is_alive()


def _send(database: Database, queue: Queue) -> None:
    """One go of the registrar lane's relay."""
    relay = Relay(database.engine(Role.RELAY), lane=Lane.REGISTRAR, sender=QueueSender(queue, parallel=1))
    relay.run_once()


def _poll(loop: Loop) -> None:
    loop.matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")


def test_the_queue_server_killed_with_messages_in_it(database: Database, state_folder: Path) -> None:
    """Its queues are empty afterwards; within the rule's time each message is asked for again, exactly once."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    with EmbeddedAws(state_folder / "aws") as server:
        settings = _settings(database, new_account(server))
        clients = Clients(settings.aws)
        _, queue, _ = configured(clients, settings.queues)
        queue.ensure()
        documents = [loop.queued()[0] for _ in range(5)]
        _send(database, queue)
        assert queue.depth().visible == 5
        server.kill()
        server.start()
        loop.consumers(since=7200.0)
        with _running(settings):
            wait_until(lambda: loop.matter.count("ops.lane_reading", "lane = 'registrar'") >= 2, 30, what="readings")
            assert [loop.generations(each) for each in documents] == [[1]] * 5
            for moved in (200, 420, 640):
                database.move_clock(moved)
                _poll(loop)
                seen = loop.matter.count("ops.lane_reading", "at > app.clock() - interval '60 seconds'")
                wait_until(
                    lambda seen=seen: (
                        loop.matter.count(  # type: ignore[misc]
                            "ops.lane_reading", "at > app.clock() - interval '60 seconds' AND lane = 'registrar'"
                        )
                        > seen
                    ),
                    30,
                    what="a reading at the new time",
                )
            wait_until(
                lambda: [loop.generations(each) for each in documents] == [[1, 2]] * 5, 40, what="the second generation"
            )
        assert len(loop.ledger()) == 5
        clients.close()


def test_queues_and_notification_deleted_are_made_again(database: Database, aws: AwsAccount) -> None:
    """By what the loop does before each pass, though its own process knew them a moment ago."""
    settings = _settings(database, aws)
    sqs, s3 = aws.client("sqs"), aws.client("s3")
    with stood(
        settings, component="reconciler", role=Role.RECONCILER, connections=1, stop=threading.Event(), metrics=()
    ) as ground:
        assert ground is not None
        process.mend(ground, settings)
        assert _there(aws) == 3
        for url in sqs.list_queues()["QueueUrls"]:
            sqs.delete_queue(QueueUrl=url)
        s3.put_bucket_notification_configuration(Bucket=ground.store.name, NotificationConfiguration={})
        process.mend(ground, settings)
        assert _there(aws) == 3
        assert "QueueConfigurations" in s3.get_bucket_notification_configuration(Bucket=ground.store.name)


def _there(aws: AwsAccount) -> int:
    urls = aws.client("sqs").list_queues().get("QueueUrls", [])
    return len([url for url in urls if "dead" not in url])
