"""The consumer of an outbox lane."""

from __future__ import annotations

import threading
from datetime import timedelta

from sqlalchemy import Engine, text

from baton.aws.queues import Queue
from baton.consumers.backoff import Backoff
from baton.consumers.handlers import TicketHandler
from baton.consumers.intake import TicketIntake
from baton.consumers.loop import Loop
from baton.consumers.presence import Presence, QueueName
from baton.consumers.work import TicketWorker
from baton.db.states import Lane
from baton.settings.work import Consumer
from baton.telemetry.progress import Progress


class TicketConsumer(Loop):
    """Receives a lane's messages, and has ``handler`` do what their tickets ask for."""

    def __init__(
        self,
        *,
        queue: Queue,
        lane: Lane,
        handler: TicketHandler,
        engine: Engine,
        config: Consumer,
        stop: threading.Event,
        prefetch: bool = True,
        backoff: Backoff | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Make a consumer that is not running yet.

        :param engine: of the workload's own role; needs ``workers`` + 3 connections besides what the handler opens.
        :param prefetch: whether a batch may be larger than the number of free workers: right for quick work, wrong for
            work of minutes, which another replica might begin at once.
        :param backoff: waits after a failed attempt, and while queue or database are away; ``None``: 1 s to 30 s.
        :param progress: where the loop shows that it moves.
        """
        waits = backoff or Backoff()
        super().__init__(
            queue=queue,
            name=QueueName(lane.value),
            intake=TicketIntake(engine, lane=lane, visibility=timedelta(seconds=queue.spec.visibility)),
            worker=TicketWorker(engine, handler, max_attempts=config.max_attempts, backoff=waits),
            presence=Presence(engine, QueueName(lane.value)),
            ask_database=lambda: ask(engine),
            config=config,
            stop=stop,
            backoff=waits,
            prefetch=prefetch,
            progress=progress,
        )


def ask(engine: Engine) -> None:
    """Return where the database answers; otherwise what the driver raises comes out."""
    with engine.begin() as connection:
        connection.execute(text("SELECT 1"))
