"""The bucket tells the results queue about new artifacts: setting that up, and reading it.

An event is an untrusted hint: it names a key, and the object is looked at before anything is
believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote_plus

from baton.aws import naming
from baton.aws.clients import Clients
from baton.aws.errors import KeyRefused
from baton.aws.faults import Service, translated
from baton.aws.queues import Queue

ARTIFACT_PREFIX: Final = "agent-runs/"
_ID: Final = "baton-artifacts"
_SID: Final = "BatonArtifactNotifications"
_MOST_RECORDS: Final = 1000


class NotificationKind(StrEnum):
    """What a message of the results queue turned out to be."""

    OBJECTS = "objects"
    TEST = "test"
    """S3's own greeting when a notification is set up; to be acknowledged."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    """One object that S3 says was written."""

    bucket: str
    key: str
    size: int | None
    """Bytes, as told; ``None``: not told."""
    etag: str | None


@dataclass(frozen=True, slots=True)
class Notification:
    """One message of the results queue, read."""

    kind: NotificationKind
    objects: tuple[ObjectCreated, ...] = ()
    ignored: int = 0
    """Records of another kind, or whose key is none that Baton could have made."""
    reason: str | None = None
    """Why it is unreadable; holds nothing of the message."""


def ensure(clients: Clients, bucket: str, queue: Queue, *, prefix: str = ARTIFACT_PREFIX) -> bool:
    """Have ``bucket`` tell ``queue`` about objects created under ``prefix``.

    What else is configured on bucket and queue stays in place; the queue's policy comes first,
    because S3 tries it when the notification is put. Both documents can only be replaced as a
    whole, so somebody who changes them in the same instant may be overwritten: run this at
    start-up, not in a loop.

    Returns:
        Whether anything had to be changed.
    """
    arn = queue.arn()
    changed = _ensure_policy(queue, arn=arn, bucket=bucket)
    found = _configuration(clients, bucket)
    wanted = _wanted(arn, prefix)
    present = list(found.get("QueueConfigurations") or ())
    if any(_same(each, wanted) for each in present):
        return changed
    kept = [each for each in present if each.get("Id") != _ID]
    with translated(Service.S3, "PutBucketNotificationConfiguration"):
        clients.s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={**found, "QueueConfigurations": [*kept, wanted]},  # type: ignore[typeddict-item]
        )
    return True


def missing(clients: Clients, bucket: str, queue: Queue, *, prefix: str = ARTIFACT_PREFIX) -> tuple[str, ...]:
    """What ``ensure`` would have to add, in words; empty where all is in place. Changes nothing."""
    arn = queue.arn()
    found = []
    if _statement(arn=arn, bucket=bucket) not in _statements(queue.policy()):
        found.append("the queue's policy does not let the bucket send")
    present = _configuration(clients, bucket).get("QueueConfigurations") or ()
    if not any(_same(each, _wanted(arn, prefix)) for each in present):
        found.append("the bucket has no notification for artifacts")
    return tuple(found)


def parse(body: str) -> Notification:
    """Read one message of the results queue; never raises.

    Keys come URL-encoded with ``+`` for blanks, several records may share a message, and S3
    sends a test event of its own.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _unreadable("not JSON")
    match document:
        case {"Event": "s3:TestEvent"}:
            return Notification(NotificationKind.TEST)
        case {"Records": list(records)} if len(records) <= _MOST_RECORDS:
            objects = tuple(found for record in records if (found := _record(record)) is not None)
            ignored = len(records) - len(objects)
            return Notification(NotificationKind.OBJECTS, objects, ignored=ignored)
        case _:
            return _unreadable("no list of records, or too long a one")


def _record(record: object) -> ObjectCreated | None:
    match record:
        case {
            "eventName": str(event),
            "s3": {"bucket": {"name": str(bucket)}, "object": {"key": str(raw), **rest}},
        } if event.removeprefix("s3:").startswith("ObjectCreated:"):
            pass
        case _:
            return None
    try:
        key = naming.checked_key(unquote_plus(raw, errors="strict"))
    except (KeyRefused, UnicodeDecodeError):
        return None
    size, etag = rest.get("size"), rest.get("eTag")
    return ObjectCreated(
        bucket=bucket,
        key=key,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        etag=etag.strip('"') if isinstance(etag, str) else None,
    )


def _unreadable(reason: str) -> Notification:
    return Notification(NotificationKind.UNREADABLE, reason=reason)


def _same(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a configuration does what is wanted, under whatever id."""
    return (
        present.get("QueueArn") == wanted["QueueArn"]
        and set(present.get("Events", ())) >= set(wanted["Events"])
        and _rules(present) == _rules(wanted)
    )


def _rules(configuration: Mapping[str, Any]) -> list[tuple[str, str]]:
    rules = configuration.get("Filter", {}).get("Key", {}).get("FilterRules", ())
    return sorted((str(rule["Name"]).lower(), str(rule["Value"])) for rule in rules)


def _configuration(clients: Clients, bucket: str) -> dict[str, Any]:
    with translated(Service.S3, "GetBucketNotificationConfiguration"):
        found: dict[str, Any] = dict(clients.s3.get_bucket_notification_configuration(Bucket=bucket))
    found.pop("ResponseMetadata", None)
    return found


def _wanted(arn: str, prefix: str) -> dict[str, Any]:
    return {
        "Id": _ID,
        "QueueArn": arn,
        "Events": ["s3:ObjectCreated:*"],
        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
    }


def _statement(*, arn: str, bucket: str) -> dict[str, Any]:
    return {
        "Sid": _SID,
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": f"arn:{arn.split(':')[1]}:s3:::{bucket}"}},
    }


def _statements(document: Mapping[str, Any]) -> list[Any]:
    statements = document.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


def _ensure_policy(queue: Queue, *, arn: str, bucket: str) -> bool:
    statement = _statement(arn=arn, bucket=bucket)
    document = queue.policy()
    present = _statements(document)
    if statement in present:
        return False
    kept = [each for each in present if each.get("Sid") != _SID]
    queue.set_policy({"Version": "2012-10-17", **document, "Statement": [*kept, statement]})
    return True
