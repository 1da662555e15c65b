"""The queues, their dead-letter queues, the bucket, and its notification: that they are there and as Baton needs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.errors import AwsError, BucketMissing, Missing, QueueMissing
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.reconcilers.doctor.findings import Finding, fault, ok, unknown, warning
from baton.settings.model import Settings
from baton.settings.stores import Queues

_RESTART: Final = "start its consumer again with BATON_CREATE_QUEUES=true, or make it as the settings say"


def queues(clients: Clients, settings: Settings) -> Iterator[Finding]:
    """Every queue is there, with what it is made with, and no dead letter lies unread."""
    lanes = configured(clients, settings.queues)
    for name, queue in zip(("ingest", "registrar", "results"), lanes, strict=True):
        yield from _guarded("queues", queue.name, partial(_queue, name, queue, settings.queues))
        if queue.dead is not None:
            yield from _guarded("dead-letters", queue.dead.name, partial(_dead, name, queue.dead))


def bucket(clients: Clients, settings: Settings) -> Iterator[Finding]:
    """The bucket is there, and tells the results queue about artifacts."""
    store = Store(clients, settings.bucket, create=False)
    try:
        store.ensure()
    except BucketMissing:
        yield fault("bucket", f"there is no bucket {store.name}", todo="make it, or correct BATON_BUCKET")
        return
    except AwsError as error:
        yield unknown("bucket", f"{store.name}: {error}", todo="see to the object store and its credentials")
        return
    yield ok("bucket", f"{store.name} answers")
    *_, results = configured(clients, settings.queues)
    yield from _guarded("notifications", store.name, partial(_notification, clients, store.name, results))


def _queue(name: str, queue: Queue, wanted: Queues) -> Iterator[Finding]:
    found = queue.attributes()
    faults = list(_attributes(queue, found, wanted))
    yield from faults
    if not faults:
        depth = queue.depth()
        yield ok(
            "queues",
            f"{name}: {queue.name}, {depth.visible} waiting, {depth.in_flight} in hand, {depth.delayed} delayed",
        )


def _attributes(queue: Queue, found: Mapping[str, str], wanted: Queues) -> Iterator[Finding]:
    redrive = json.loads(found.get("RedrivePolicy") or "{}")
    if not redrive:
        yield fault(
            "queues",
            f"{queue.name} has no dead-letter queue: a message that nobody can handle is dropped when it grows old",
            todo=f"set its RedrivePolicy to {queue.dead.name if queue.dead else 'one'}",
        )
    elif queue.dead is not None and not str(redrive.get("deadLetterTargetArn", "")).endswith(f":{queue.dead.name}"):
        yield warning(
            "queues",
            f"{queue.name} dead-letters to {redrive.get('deadLetterTargetArn')}, where Baton does not look",
            todo=f"name that queue in the settings, or point the RedrivePolicy at {queue.dead.name}",
        )
    retention = int(found.get("MessageRetentionPeriod", 0))
    if retention < wanted.retention:
        yield fault(
            "queues",
            f"{queue.name} keeps messages for {retention} s, the settings say {wanted.retention} s:"
            " what it drops in between counts as waiting",
            todo=f"raise its MessageRetentionPeriod, or set BATON_QUEUE_RETENTION={retention}",
        )
    visibility = int(found.get("VisibilityTimeout", 0))
    if visibility != wanted.visibility:
        yield warning(
            "queues",
            f"{queue.name} hides messages for {visibility} s, the settings say {wanted.visibility} s",
            todo=f"set its VisibilityTimeout, or BATON_QUEUE_VISIBILITY={visibility}",
        )
    if found.get("ContentBasedDeduplication") == "true":
        yield warning(
            "queues",
            f"{queue.name} deduplicates by content",
            todo="switch ContentBasedDeduplication off; Baton names each message",
        )


def _dead(name: str, queue: Queue) -> Iterator[Finding]:
    depth = queue.depth()
    lying = depth.visible + depth.in_flight + depth.delayed
    if lying:
        yield warning(
            "dead-letters",
            f"{name}: about {lying} messages lie on {queue.name}",
            todo="baton redrive --dead-letters --dry-run shows them; --reason … sends them again",
        )
    else:
        yield ok("dead-letters", f"{name}: {queue.name} is empty")


def _notification(clients: Clients, name: str, results: Queue) -> Iterator[Finding]:
    missing = notifications.missing(clients, name, results)
    if missing:
        yield fault(
            "notifications",
            f"{name}: {' and '.join(missing)}: answers of the agent are found only by the sweeper, late",
            todo="start 'baton settler' again with BATON_CREATE_QUEUES=true, which sets both",
        )
    else:
        yield ok("notifications", f"{name} tells {results.name} about artifacts")


def _guarded(check: str, name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from list(look())
    except QueueMissing:
        yield fault(check, f"there is no queue {name}", todo=_RESTART)
    except Missing as error:
        yield fault(check, f"{name}: {error}", todo="make it, or correct the settings")
    except AwsError as error:
        yield unknown(check, f"{name}: {error}", todo="see to the queue service, its address and credentials")
