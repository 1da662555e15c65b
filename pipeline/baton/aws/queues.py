"""One queue: finding it, making it where it is missing, reading its depth.

Sending and receiving have modules of their own (``sending``, ``receiving``); ``Queue`` is what
the rest of Baton holds and calls.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from baton.aws import naming, receiving, sending
from baton.aws.clients import Clients
from baton.aws.errors import QueueMissing, RequestRefused
from baton.aws.faults import Service, translated
from baton.settings.stores import RETENTION_LIMIT, Queues

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

_DEPTH: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """What a queue is called and what it is made with where it is missing."""

    queue: str
    """Name or URL."""
    dead: str | None = None
    """Name or URL of its dead-letter queue; ``None``: it has none."""
    visibility: int = 60
    """Seconds that a received message is hidden."""
    retention: int = RETENTION_LIMIT
    """Seconds that a message is kept."""
    max_receives: int = 1000
    """Receives before SQS dead-letters by itself."""
    create: bool = True
    """Whether it may be made by us."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Messages in a queue, as SQS estimates them: approximate, and minutes late at worst.

    One reading is never reason enough to call a message lost.
    """

    visible: int
    in_flight: int
    delayed: int

    @property
    def empty(self) -> bool:
        """Whether this reading saw nothing at all."""
        return not (self.visible or self.in_flight or self.delayed)


class Queue:
    """A queue that may be shared between threads; its URL is looked up once and kept.

    Every method raises ``QueueMissing`` when the queue does not exist (any more) and
    ``QueueUnavailable`` when the service as a whole does not do as asked.
    """

    def __init__(self, clients: Clients, spec: QueueSpec) -> None:
        self.spec = spec
        self.name = naming.queue_name(spec.queue)
        self.fifo = naming.is_fifo(spec.queue)
        self._clients = clients
        self._lock = threading.Lock()
        self._url: str | None = None
        self.dead: Queue | None = None
        """Its dead-letter queue."""
        if spec.dead is not None:
            dead = QueueSpec(spec.dead, visibility=spec.visibility, create=spec.create)
            self.dead = Queue(clients, dead)

    @property
    def url(self) -> str:
        """Its URL; looked up when first asked for."""
        found = self._url
        if found is None:
            found = self._url = self._lookup()
        return found

    def ensure(self) -> str:
        """Make the queue, and before it its dead-letter queue, where they are missing.

        One that exists is left as it is. Safe to call from many processes at once.

        Returns:
            The queue's URL.

        Raises:
            QueueMissing: when it does not exist and ``create`` is off.
        """
        if self.dead is not None and self.spec.create:
            self.dead.ensure()
        with self._lock:
            known, self._url = self._url, None
            if known is None or not self._answers(known):
                known = self._found() or self._create()
            self._url = known
            return known

    def arn(self) -> str:
        """Its ARN."""
        return str(self._attributes(self.url, ["QueueArn"])["QueueArn"])

    def depth(self) -> Depth:
        """One reading of its depth."""
        found = self._attributes(self.url, _DEPTH)
        visible, in_flight, delayed = (int(found.get(name, 0)) for name in _DEPTH)
        return Depth(visible=visible, in_flight=in_flight, delayed=delayed)

    def attributes(self) -> dict[str, str]:
        """Everything that SQS says about it, by SQS's names."""
        return self._attributes(self.url, ["All"])

    def policy(self) -> dict[str, Any]:
        """Its access policy as a document; empty when it has none."""
        text = self._attributes(self.url, ["Policy"]).get("Policy", "")
        return dict(json.loads(text)) if text else {}

    def set_policy(self, document: Mapping[str, Any]) -> None:
        """Replace its access policy."""
        with self._asking("SetQueueAttributes") as sqs:
            sqs.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": json.dumps(document)})

    def send_batch(
        self,
        entries: Sequence[sending.Entry],
        *,
        bound: float = 5.0,
        parallel: int = 1,
    ) -> sending.Sent:
        """Send many messages; see ``sending.send``."""
        sent = sending.send(
            self._clients,
            lambda: self.url,
            entries,
            fifo=self.fifo,
            bound=bound,
            parallel=parallel,
        )
        if isinstance(sent.failure, QueueMissing):
            self._url = None
        return sent

    def receive(self, *, wait: int, limit: int = 10, visibility: int | None = None) -> tuple[receiving.Message, ...]:
        """Receive up to ``limit`` (1 to 10) messages; see ``receiving.receive``."""
        with self._forgetting():
            return receiving.receive(
                self._clients,
                self.url,
                fifo=self.fifo,
                wait=wait,
                limit=limit,
                visibility=visibility,
            )

    def delete_batch(self, receipts: Sequence[str]) -> dict[str, str]:
        """Delete messages by receipt; returns the refused receipts with their codes."""
        with self._forgetting():
            return receiving.delete(self._clients, self.url, receipts)

    def change_visibility_batch(self, receipts: Sequence[str], *, seconds: int) -> dict[str, str]:
        """Hide messages for ``seconds`` from now (0: show them at once), by receipt.

        Returns:
            The refused receipts with their codes: those messages are no longer held.
        """
        with self._forgetting():
            return receiving.change_visibility(self._clients, self.url, receipts, seconds=seconds)

    def purge(self) -> None:
        """Delete every message, those in consumers' hands too (tests and the demo; never a running system)."""
        with self._asking("PurgeQueue") as sqs:
            sqs.purge_queue(QueueUrl=self.url)

    def delete(self) -> None:
        """Delete the queue with all its messages (tests and the demo; never a running system)."""
        with self._asking("DeleteQueue") as sqs:
            sqs.delete_queue(QueueUrl=self.url)
        self._url = None

    @contextmanager
    def _asking(self, call: str) -> Iterator[SQSClient]:
        with self._forgetting(), translated(Service.SQS, call):
            yield self._clients.sqs

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Forgets the URL of a queue that turns out to be gone: its successor may have another."""
        try:
            yield
        except QueueMissing:
            self._url = None
            raise

    def _lookup(self) -> str:
        if naming.is_url(self.spec.queue):
            return self.spec.queue
        with translated(Service.SQS, "GetQueueUrl"):
            return self._clients.sqs.get_queue_url(QueueName=self.name)["QueueUrl"]

    def _found(self) -> str | None:
        """Its URL, if it is there; ``None`` where it is to be made.

        Raises:
            QueueMissing: when it is not there, and ``create`` is off.
        """
        try:
            url = self._lookup()
            self._attributes(url, ["QueueArn"])  # an URL from the settings proves nothing
        except QueueMissing:
            if not self.spec.create:
                raise
            return None
        return url

    def _answers(self, url: str) -> bool:
        """Whether there is a queue at this URL still; its successor may have another."""
        try:
            self._attributes(url, ["QueueArn"])
        except QueueMissing:
            return False
        return True

    def _attributes(self, url: str, names: Sequence[str]) -> dict[str, str]:
        with self._asking("GetQueueAttributes") as sqs:
            answer: Any = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*names])  # type: ignore[list-item]
        return dict(answer.get("Attributes", {}))

    def _create(self) -> str:
        spec = self.spec
        attributes = {
            "VisibilityTimeout": str(spec.visibility),
            "MessageRetentionPeriod": str(spec.retention),
        }
        if self.fifo:
            # Deduplication by content would swallow a redrive whose body did not change.
            attributes |= {"FifoQueue": "true", "ContentBasedDeduplication": "false"}
        if self.dead is not None:
            attributes["RedrivePolicy"] = json.dumps(
                {"deadLetterTargetArn": self.dead.arn(), "maxReceiveCount": spec.max_receives}
            )
        try:
            with translated(Service.SQS, "CreateQueue"):
                return self._clients.sqs.create_queue(
                    QueueName=self.name,
                    Attributes=attributes,  # type: ignore[arg-type]
                )["QueueUrl"]
        except RequestRefused as refused:
            if refused.code not in {"QueueAlreadyExists", "QueueNameExists"}:
                raise
            return self._lookup()  # somebody made it in between, with attributes of their own


def configured(clients: Clients, queues: Queues) -> tuple[Queue, Queue, Queue]:
    """The ingest, registrar and results queue, as the settings name them."""
    dead = naming.dead_letter_queues(queues)
    ingest, registrar, results = (
        Queue(
            clients,
            QueueSpec(
                queue,
                dead=dead[queue],
                visibility=queues.visibility,
                retention=queues.retention,
                max_receives=queues.max_receives,
                create=queues.create,
            ),
        )
        for queue in (queues.ingest, queues.registrar, queues.results)
    )
    return ingest, registrar, results
