"""How many small files a worker process extracts in a second."""

import threading
import time
from typing import Any

import pytest

from baton.aws.queues import Queue, QueueSpec
from baton.consumers.tickets import TicketConsumer
from baton.db.states import Lane
from baton.settings.work import Consumer
from integration.extraction.conftest import clients, firm, reader
from support.figures import Figure, Figures
from support.tickets import entry_of
from support.waiting import wait_until

__all__ = ["clients", "firm", "reader"]  # fixtures

COUNT = 100


@pytest.mark.bench
@pytest.mark.parametrize("workers", [1, 4])
def test_small_files_a_second(firm: Any, clients: Any, reader: Any, figures: Figures, workers: int) -> None:
    """From the first receive to the last commit; the queue is filled before."""
    queue = Queue(clients, QueueSpec("bench.fifo"))
    queue.ensure()
    tickets = [firm.upload(b"Letter about parcel %d.\n" % number * 20) for number in range(COUNT)]
    assert queue.send_batch(list(map(entry_of, tickets)), bound=60).failure is None
    reader.start()
    stop = threading.Event()
    consumer = TicketConsumer(
        queue=queue,
        lane=Lane.INGEST,
        handler=firm.worker(reader),
        engine=firm.engine,
        config=Consumer(workers=workers, receive_wait=1),
        stop=stop,
        prefetch=False,
    )
    running = threading.Thread(target=consumer.run)
    began = time.monotonic()
    running.start()
    done = "SELECT count(*) FROM documents WHERE processing_status = 'indexed'"
    wait_until(lambda: firm.rows(done)[0][0] == COUNT, 300, interval=0.1, what="extraction")
    seconds = time.monotonic() - began
    stop.set()
    running.join(30)
    figures.record(Figure(f"small files, {workers} at a time", round(COUNT / seconds, 1), "files/s", ""))
