"""Which AWS actions a process really used: notes taken inside the process, read in IAM's words."""

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from baton.aws.permissions import SETUP, WORK, Action, Place, Workload
from baton.settings.stores import Bucket, Queues

RECORDING = Path(__file__).parent / "recording"
"""A folder for PYTHONPATH."""

_ACTIONS = {
    "SendMessageBatch": Action.SEND,
    "SendMessage": Action.SEND,
    "ReceiveMessage": Action.RECEIVE,
    "DeleteMessageBatch": Action.DELETE,
    "DeleteMessage": Action.DELETE,
    "ChangeMessageVisibilityBatch": Action.EXTEND,
    "ChangeMessageVisibility": Action.EXTEND,
    "GetQueueUrl": Action.FIND,
    "GetQueueAttributes": Action.READ_QUEUE,
    "CreateQueue": Action.CREATE_QUEUE,
    "SetQueueAttributes": Action.SET_QUEUE,
    "GetObject": Action.GET,
    "HeadObject": Action.GET,
    "Presign get_object": Action.GET,
    "PutObject": Action.PUT,
    "Presign put_object": Action.PUT,
    "HeadBucket": Action.LIST,
    "ListObjectsV2": Action.LIST,
    "CreateBucket": Action.CREATE_BUCKET,
    "GetBucketNotificationConfiguration": Action.READ_NOTIFICATION,
    "PutBucketNotificationConfiguration": Action.SET_NOTIFICATION,
}
_QUEUES = {
    Queues().ingest: Place.INGEST,
    Queues().registrar: Place.REGISTRAR,
    Queues().results: Place.RESULTS,
    "baton-ingest-dead.fifo": Place.INGEST_DEAD,
    "baton-registrar-dead.fifo": Place.REGISTRAR_DEAD,
    "baton-results-dead": Place.RESULTS_DEAD,
}


def noting(file: Path) -> Mapping[str, str]:
    """What a process's environment needs, for its calls to be noted in the file."""
    path = os.pathsep.join(filter(None, (str(RECORDING), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "BATON_TEST_AWS_CALLS": str(file)}


def read_calls(file: Path) -> dict[Place, set[Action]]:
    """The actions that were noted, by what they were about; raises KeyError for one that has no name here."""
    used: dict[Place, set[Action]] = defaultdict(set)
    for line in file.read_text().splitlines() if file.exists() else ():
        call = json.loads(line)
        used[_place(call)].add(_ACTIONS[call["operation"]])
    return used


def beyond(workload: Workload, used: Mapping[Place, set[Action]]) -> list[str]:
    """What was used and is not documented for the workload."""
    allowed = {
        place: WORK[workload].get(place, frozenset()) | SETUP[workload].get(place, frozenset()) for place in Place
    }
    return [
        f"{workload}: {action} on {place}"
        for place, actions in used.items()
        for action in sorted(actions - allowed[place])
    ]


def _place(call: Mapping[str, str]) -> Place:
    if "QueueUrl" in call or "QueueName" in call:
        return _QUEUES[call.get("QueueName", call.get("QueueUrl", "").rsplit("/", 1)[-1])]
    assert call["Bucket"] == Bucket().name
    for place in (Place.DOCUMENTS, Place.INPUTS, Place.ARTIFACTS):
        if call.get("Key", "").startswith(place.value.rstrip("*")):
            return place
    return Place.BUCKET
