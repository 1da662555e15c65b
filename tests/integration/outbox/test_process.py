"""The relay as a process: from its settings to the queue."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from baton.db.errors import StartupRefusal
from baton.db.states import Lane
from baton.outbox import process
from baton.settings.loading import load
from baton.settings.model import Settings
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.pgbouncer import Pooler
from support.tickets import Bulk, count_where, fill
from support.waiting import wait_until


def _settings(aws: AwsAccount, url: str, **more: str) -> Settings:
    plain = url.replace("+psycopg", "")
    return load({**aws.environ, "DATABASE_URL": plain, "BATON_HEALTH_PORT": "0", **more})


@contextmanager
def _running(settings: Settings, lane: Lane) -> Iterator[list[BaseException]]:
    stop = threading.Event()
    errors: list[BaseException] = []

    def target() -> None:
        try:
            process.run(settings, lane=lane, stop=stop)
        except Exception as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield errors
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("by_pooler", [False, True], ids=["direct", "pooled"])
def test_it_makes_its_queue_and_relays(database: Database, aws: AwsAccount, pooler: Pooler, by_pooler: bool) -> None:
    """With nothing but settings it makes queue and dead-letter queue, relays, listens, and ends when told to."""
    fill(database, Bulk(count=12, firm=uuid4(), lane="registrar"))
    url = pooler.url(database, "baton_relay") if by_pooler else database.url("baton_relay")
    more = {"BATON_DATABASE_DIRECT_URL": database.url("baton_relay").replace("+psycopg", "")} if by_pooler else {}
    with _running(_settings(aws, url, **more), Lane.REGISTRAR) as errors:
        wait_until(lambda: errors or count_where(database, "dispatched_at IS NOT NULL") == 12, 20)
        fill(database, Bulk(count=3, firm=uuid4(), lane="registrar"))
        wait_until(lambda: errors or count_where(database, "dispatched_at IS NOT NULL") == 15, 20)
    assert errors == []
    sqs = aws.client("sqs")
    (message,) = sqs.receive_message(QueueUrl=sqs.get_queue_url(QueueName="baton-registrar.fifo")["QueueUrl"])[
        "Messages"
    ]
    assert json.loads(message["Body"])["event_type"] == "document.registration.requested"


def test_it_refuses_to_run_as_somebody_else(database: Database, aws: AwsAccount) -> None:
    """Another workload's role is refused at the start, and nothing is sent."""
    fill(database, Bulk(count=2, firm=uuid4()))
    with _running(_settings(aws, database.url("baton_extractor")), Lane.INGEST) as errors:
        wait_until(lambda: errors, 20)
    assert isinstance(errors[0], StartupRefusal)
    assert count_where(database, "dispatched_at IS NOT NULL") == 0
