"""What each workload asks of SQS and S3, and nothing beyond: the matrix that its credentials are made from.

Named by IAM's words. ``WORK`` is what a workload needs day by day; ``SETUP`` comes on top where it may create what is
missing (``BATON_CREATE_QUEUES``), and is not needed where queues, bucket and notification are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Workload(StrEnum):
    """Who holds credentials. The agent holds none: it works by signed addresses."""

    PLATFORM = "platform"
    RELAY_INGEST = "relay ingest"
    RELAY_REGISTRAR = "relay registrar"
    EXTRACTOR = "extractor"
    REGISTRAR = "registrar"
    SETTLER = "settler"
    RECONCILER = "reconciler"
    AGENT = "agent"


class Place(StrEnum):
    """What an action is about: a queue, its dead-letter queue, the bucket, or the keys below a prefix."""

    INGEST = "ingest queue"
    REGISTRAR = "registrar queue"
    RESULTS = "results queue"
    INGEST_DEAD = "ingest dead-letter queue"
    REGISTRAR_DEAD = "registrar dead-letter queue"
    RESULTS_DEAD = "results dead-letter queue"
    BUCKET = "the bucket"
    DOCUMENTS = "documents/*"
    INPUTS = "agent-inputs/*"
    ARTIFACTS = "agent-runs/*"


class Action(StrEnum):
    """Actions by IAM's names; batch calls are allowed by the name of the single one."""

    SEND = "sqs:SendMessage"
    RECEIVE = "sqs:ReceiveMessage"
    DELETE = "sqs:DeleteMessage"
    EXTEND = "sqs:ChangeMessageVisibility"
    FIND = "sqs:GetQueueUrl"
    READ_QUEUE = "sqs:GetQueueAttributes"
    CREATE_QUEUE = "sqs:CreateQueue"
    SET_QUEUE = "sqs:SetQueueAttributes"
    GET = "s3:GetObject"
    PUT = "s3:PutObject"
    LIST = "s3:ListBucket"
    CREATE_BUCKET = "s3:CreateBucket"
    READ_NOTIFICATION = "s3:GetBucketNotification"
    SET_NOTIFICATION = "s3:PutBucketNotification"


Allowed = Mapping[Place, frozenset[Action]]

_LOOK = frozenset({Action.FIND, Action.READ_QUEUE})
_SEND = _LOOK | {Action.SEND}
_CONSUME = _LOOK | {Action.RECEIVE, Action.DELETE, Action.EXTEND}
_CREATE = _LOOK | {Action.CREATE_QUEUE}
# telling a missing object from one that may not be seen needs the bucket's list
_LIST = frozenset({Action.LIST})
_GET = frozenset({Action.GET})
_PUT = frozenset({Action.PUT})

WORK: Final[Mapping[Workload, Allowed]] = {
    Workload.PLATFORM: {Place.BUCKET: _LIST, Place.DOCUMENTS: _GET | _PUT},
    Workload.RELAY_INGEST: {Place.INGEST: _SEND},
    Workload.RELAY_REGISTRAR: {Place.REGISTRAR: _SEND},
    Workload.EXTRACTOR: {Place.INGEST: _CONSUME, Place.BUCKET: _LIST, Place.DOCUMENTS: _GET},
    # signs what the agent may do: fetch its input, leave its artifact
    Workload.REGISTRAR: {
        Place.REGISTRAR: _CONSUME,
        Place.BUCKET: _LIST,
        Place.INPUTS: _GET | _PUT,
        Place.ARTIFACTS: _PUT,
    },
    Workload.SETTLER: {Place.RESULTS: _CONSUME, Place.BUCKET: _LIST, Place.ARTIFACTS: _GET},
    # reads how deep the lanes' queues are, collects dead letters, and looks for artifacts; it never sends
    Workload.RECONCILER: {
        Place.INGEST: _LOOK,
        Place.INGEST_DEAD: _CONSUME,
        Place.REGISTRAR: _LOOK,
        Place.REGISTRAR_DEAD: _CONSUME,
        Place.RESULTS: _LOOK,
        Place.RESULTS_DEAD: _CONSUME,
        Place.BUCKET: _LIST,
        Place.ARTIFACTS: _GET,
    },
    Workload.AGENT: {},
}

_BUCKET = frozenset({Action.LIST, Action.CREATE_BUCKET})

SETUP: Final[Mapping[Workload, Allowed]] = {
    Workload.PLATFORM: {Place.BUCKET: _BUCKET},
    Workload.RELAY_INGEST: {Place.INGEST: _CREATE, Place.INGEST_DEAD: _CREATE},
    Workload.RELAY_REGISTRAR: {Place.REGISTRAR: _CREATE, Place.REGISTRAR_DEAD: _CREATE},
    Workload.EXTRACTOR: {Place.INGEST: _CREATE, Place.INGEST_DEAD: _CREATE, Place.BUCKET: _BUCKET},
    Workload.REGISTRAR: {Place.REGISTRAR: _CREATE, Place.REGISTRAR_DEAD: _CREATE, Place.BUCKET: _BUCKET},
    Workload.SETTLER: {
        Place.RESULTS: _CREATE | {Action.SET_QUEUE},
        Place.RESULTS_DEAD: _CREATE,
        Place.BUCKET: _BUCKET | {Action.READ_NOTIFICATION, Action.SET_NOTIFICATION},
    },
    # mends what somebody deleted while everything runs
    Workload.RECONCILER: {
        Place.INGEST: _CREATE,
        Place.INGEST_DEAD: _CREATE,
        Place.REGISTRAR: _CREATE,
        Place.REGISTRAR_DEAD: _CREATE,
        Place.RESULTS: _CREATE | {Action.SET_QUEUE},
        Place.RESULTS_DEAD: _CREATE,
        Place.BUCKET: _BUCKET | {Action.READ_NOTIFICATION, Action.SET_NOTIFICATION},
    },
    Workload.AGENT: {},
}


def rows(matrix: Mapping[Workload, Allowed]) -> list[tuple[str, str, str]]:
    """Workload, place and actions in words, in the order in which they are declared."""
    return [
        (workload.value, place.value, ", ".join(action.value for action in Action if action in actions))
        for workload, places in matrix.items()
        for place, actions in places.items()
    ]
