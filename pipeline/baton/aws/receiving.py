"""Receiving messages, and letting go of them: delete, extend, show again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from baton.aws.clients import Clients
from baton.aws.faults import Service, translated

TRACEPARENT: Final = "traceparent"
"""The message attribute in which the trace travels."""

_CALL_ENTRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Message:
    """One received message. Nothing in it is to be trusted but its receipt."""

    message_id: str
    receipt: str
    """Names this receive of the message; the next receive has another."""
    body: str = field(repr=False)
    group: str | None = None
    """The FIFO group; ``None`` on a standard queue."""
    receive_count: int = 1
    """SQS's own estimate, this receive included; decides nothing."""
    sent_at: float | None = None
    """Unix seconds by the queue's clock; for metrics only."""
    traceparent: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The message's own text attributes, ``traceparent`` included."""


def receive(
    clients: Clients,
    url: str,
    *,
    fifo: bool,
    wait: int,
    limit: int = 10,
    visibility: int | None = None,
) -> tuple[Message, ...]:
    """Receive up to ``limit`` messages, waiting up to ``wait`` seconds for the first.

    On a FIFO queue the retries inside the SDK carry one attempt id: an answer that got lost on
    its way is given again instead of staying hidden for a whole visibility time.

    Args:
        clients: where the receiving client comes from.
        url: the queue's URL.
        fifo: whether the queue keeps order by group.
        wait: seconds of long poll, 0 to 20.
        limit: messages at most, 1 to 10.
        visibility: seconds for which they are hidden; ``None``: as the queue says.
    """
    options: dict[str, Any] = {}
    if visibility is not None:
        options["VisibilityTimeout"] = visibility
    if fifo:
        options["ReceiveRequestAttemptId"] = uuid.uuid4().hex
    with translated(Service.SQS, "ReceiveMessage"):
        answer: Any = clients.receiver.receive_message(
            QueueUrl=url,
            WaitTimeSeconds=wait,
            MaxNumberOfMessages=limit,
            MessageSystemAttributeNames=[
                "MessageGroupId",
                "ApproximateReceiveCount",
                "SentTimestamp",
            ],
            MessageAttributeNames=["All"],
            **options,
        )
        return tuple(_read(each) for each in answer.get("Messages") or ())


def delete(clients: Clients, url: str, receipts: Sequence[str]) -> dict[str, str]:
    """Delete messages by receipt, in calls of ten.

    Returns:
        The receipts that were refused or left unanswered, each with a code.
    """
    refused: dict[str, str] = {}
    for chunk in _chunks(receipts):
        with translated(Service.SQS, "DeleteMessageBatch"):
            answer: Any = clients.sqs.delete_message_batch(
                QueueUrl=url,
                Entries=[{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(chunk)],
            )
            refused |= _refused(chunk, answer)
    return refused


def change_visibility(clients: Clients, url: str, receipts: Sequence[str], *, seconds: int) -> dict[str, str]:
    """Hide messages for ``seconds`` from now, in calls of ten; 0 shows them at once.

    Returns:
        The receipts that were refused or left unanswered, each with a code.
    """
    refused: dict[str, str] = {}
    for chunk in _chunks(receipts):
        with translated(Service.SQS, "ChangeMessageVisibilityBatch"):
            answer: Any = clients.sqs.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(n), "ReceiptHandle": each, "VisibilityTimeout": seconds} for n, each in enumerate(chunk)
                ],
            )
            refused |= _refused(chunk, answer)
    return refused


def _chunks(receipts: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(receipts)
    while chunk := list(islice(rest, _CALL_ENTRIES)):
        yield chunk


def _refused(chunk: Sequence[str], answer: Mapping[str, Any]) -> dict[str, str]:
    done = {str(each.get("Id")) for each in answer.get("Successful") or ()}
    codes = {str(each.get("Id")): str(each.get("Code", "")) for each in answer.get("Failed") or ()}
    return {receipt: codes.get(str(n), "Unanswered") for n, receipt in enumerate(chunk) if str(n) not in done}


def _read(raw: Mapping[str, Any]) -> Message:
    system = raw.get("Attributes") or {}
    own = {
        name: value["StringValue"]
        for name, value in (raw.get("MessageAttributes") or {}).items()
        if "StringValue" in value
    }
    sent = str(system.get("SentTimestamp", ""))
    count = str(system.get("ApproximateReceiveCount", "1"))
    return Message(
        message_id=str(raw["MessageId"]),
        receipt=str(raw["ReceiptHandle"]),
        body=str(raw.get("Body", "")),
        group=system.get("MessageGroupId"),
        receive_count=int(count) if count.isdecimal() else 1,
        sent_at=int(sent) / 1000 if sent.isdecimal() else None,
        traceparent=own.get(TRACEPARENT),
        attributes=own,
    )
