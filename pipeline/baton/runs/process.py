"""The settler as a process: the consumer of the results queue, and the sweeper beside it."""

from __future__ import annotations

import threading

from baton.consumers.messages import QueueConsumer
from baton.consumers.presence import QueueName
from baton.db.access import Role
from baton.runs.results import Results
from baton.runs.sweeper import Sweeper
from baton.settings.model import Settings
from baton.workload.ground import Ground, announced, ensured, stood

#: Connections besides the workers': the consumer's own, the sweeper's two, waking the relay.
_MORE_CONNECTIONS = 6


def run(settings: Settings, *, stop: threading.Event) -> None:
    """Settle runs until ``stop`` is set.

    :raises StartupRefusal: this process must not run against this database.
    :raises ValueError: the settings name no database.
    """
    with stood(
        settings,
        component="settler",
        role=Role.SETTLER,
        connections=max(settings.database.pool_size, settings.consumer.workers + _MORE_CONNECTIONS),
        stop=stop,
        metrics=("pramaan_agent",),
    ) as ground:
        if ground is None:
            return
        ensured(ground.results, ground.store)
        unannounced = settings.queues.create and announced(ground.clients, ground.store, results=ground.results)
        _settle(ground, settings=settings, unannounced=unannounced, stop=stop)


def _settle(ground: Ground, *, settings: Settings, unannounced: bool, stop: threading.Event) -> None:
    consumer = QueueConsumer(
        queue=ground.results,
        name=QueueName.RESULTS,
        handler=Results(ground.engine, ground.store, limits=settings.runs),
        engine=ground.engine,
        config=settings.consumer,
        stop=stop,
        progress=ground.progress,
    )
    sweeper = Sweeper(
        ground.engine,
        ground.store,
        config=settings.sweeper,
        limits=settings.runs,
        unannounced=unannounced,
        progress=ground.progress,
    )
    sweeping = threading.Thread(target=sweeper.run, args=(stop,), name="sweeper", daemon=True)
    sweeping.start()
    ground.progress.started()
    consumer.run()
    # a settlement under way is one short transaction, behind at most one look at the store
    sweeping.join(settings.consumer.shutdown_grace)
