"""A ticket's trace, from its writing to its message."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from baton.aws.queues import Queue
from baton.db.connect import firm_transaction
from baton.db.states import EventType
from baton.outbox.keys import Subject
from baton.outbox.tickets import Pointer, write_first
from baton.settings.watching import Telemetry
from baton.telemetry import instruments, tracing
from baton.telemetry.names import SpanName
from integration.outbox.conftest import Relays, sender_of
from support.collector import Collector, collecting
from support.databases import Database
from support.tickets import new_document


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that this process exports to."""
    with collecting() as found:
        tracing.start(Telemetry(otlp_endpoint=found.endpoint), component="tests", version="1")
        yield found
        tracing.stop()


def test_the_trace_of_a_ticket_is_stored_linked_and_sent(
    database: Database, relays: Relays, fifo: Queue, collector: Collector
) -> None:
    """The row keeps the producer span's trace, the batch links to it, and the message carries it on."""
    firm, document = new_document(database)
    subject = Subject(firm_id=firm, document_id=document, event_type=EventType.INGEST_REQUESTED, extraction_epoch=1)
    with firm_transaction(database.engine("baton_member_app"), firm) as connection:
        pointer = Pointer(matter_id=firm, object_key="documents/a.pdf", content_type="application/pdf")
        write_first(connection, subject, pointer=pointer)
    assert relays.make(sender_of(fifo)).run_once().dispatched == 1
    (message,) = fifo.receive(wait=1)
    with database.preparer.connect() as connection:
        stored = connection.execute(text("SELECT traceparent FROM ops.document_ingest_outbox")).scalar_one()
    assert tracing.stop(within=5)
    found = {span.name: span for span in collector.wait_for(2)}
    enqueue, batch = found[SpanName.OUTBOX_ENQUEUE], found[SpanName.RELAY_BATCH]
    assert stored == f"00-{enqueue.trace_id.hex()}-{enqueue.span_id.hex()}-01"
    assert message.traceparent == stored
    assert [(link.trace_id, link.span_id) for link in batch.links] == [(enqueue.trace_id, enqueue.span_id)]
    assert batch.kind == batch.SPAN_KIND_CONSUMER


def test_a_batch_is_timed(database: Database, relays: Relays, fifo: Queue) -> None:
    """The relay's duration is exported under its agreed name."""
    firm, document = new_document(database)
    with firm_transaction(database.engine("baton_member_app"), firm) as connection:
        write_first(
            connection,
            Subject(firm_id=firm, document_id=document, event_type=EventType.INGEST_REQUESTED, extraction_epoch=1),
            pointer=Pointer(matter_id=firm, object_key="documents/a.pdf", content_type="application/pdf"),
        )
    with instruments.isolated():
        relays.make(sender_of(fifo)).run_once()
        shown = instruments.exposition().decode()
    assert 'pramaan_document_ingest_relay_duration_seconds_count{lane="ingest"} 1.0' in shown
    assert 'pramaan_document_ingest_relay_tickets_total{lane="ingest",outcome="sent"} 1.0' in shown
