"""The consumer of a queue whose messages are not tickets."""

from __future__ import annotations

import threading

from sqlalchemy import Engine

from baton.aws.queues import Queue
from baton.consumers.backoff import Backoff
from baton.consumers.handlers import MessageHandler
from baton.consumers.intake import PlainIntake
from baton.consumers.loop import Loop
from baton.consumers.presence import Presence, QueueName
from baton.consumers.tickets import ask
from baton.consumers.work import MessageWorker
from baton.settings.work import Consumer
from baton.telemetry.progress import Progress


class QueueConsumer(Loop):
    """Receives messages, and has ``handler`` do what they mean. Nothing counts their attempts but the queue."""

    def __init__(
        self,
        *,
        queue: Queue,
        name: QueueName,
        handler: MessageHandler,
        engine: Engine,
        config: Consumer,
        stop: threading.Event,
        prefetch: bool = True,
        backoff: Backoff | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Make a consumer that is not running yet; parameters as with ``TicketConsumer``."""
        waits = backoff or Backoff()
        super().__init__(
            queue=queue,
            name=name,
            intake=PlainIntake(),
            worker=MessageWorker(handler, backoff=waits),
            presence=Presence(engine, name),
            ask_database=lambda: ask(engine),
            config=config,
            stop=stop,
            backoff=waits,
            prefetch=prefetch,
            progress=progress,
        )
