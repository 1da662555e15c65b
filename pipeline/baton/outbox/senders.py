"""Where a relay's tickets go: the port, and the queue behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from baton.aws.errors import AwsError, QueueMissing
from baton.aws.queues import Queue
from baton.aws.sending import Entry, Sent
from baton.outbox import envelope
from baton.outbox.claim import Claimed


class Sender(Protocol):
    """Takes a batch somewhere, within a bound."""

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """Send what can be sent within ``bound`` seconds: one result for each entry, in their order.

        The entries' rows are locked meanwhile, so the bound holds whatever the other side does. Never raises for a
        fault of the other side.
        """
        ...

    def mend(self, failure: AwsError) -> None:
        """Put right what made a batch fail, where that can be done from here; no row is locked. May raise AwsError."""
        ...


class QueueSender:
    """Sends to one queue, which is made again when it turns out to be gone."""

    def __init__(self, queue: Queue, *, parallel: int) -> None:
        """:param parallel: calls of ten messages in flight at once; the tickets of one document stay in order."""
        self._queue = queue
        self._parallel = parallel

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """See :meth:`Sender.send`."""
        return self._queue.send_batch(entries, bound=bound, parallel=self._parallel)

    def mend(self, failure: AwsError) -> None:
        """See :meth:`Sender.mend`."""
        if isinstance(failure, QueueMissing):
            self._queue.ensure()


def entries_of(tickets: Iterable[Claimed]) -> list[Entry]:
    """The messages of tickets. A document is a FIFO group; a generation's key is what a queue deduplicates by."""
    return [
        Entry(
            key=str(ticket.id),
            body=envelope.write(
                ticket_id=ticket.id,
                idempotency_key=ticket.idempotency_key,
                event_type=ticket.event_type,
                firm_id=ticket.firm_id,
                matter_id=ticket.matter_id,
                document_id=ticket.document_id,
                object_key=ticket.object_key,
                content_type=ticket.content_type,
                run_id=ticket.run_id,
                part=ticket.part,
            ),
            group=ticket.document_id,
            deduplication=ticket.idempotency_key,
            attributes=envelope.attributes(ticket.traceparent),
        )
        for ticket in tickets
    ]
