"""The relay of one lane as a process."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from sqlalchemy import Engine

from baton.db.access import Role
from baton.db.states import Lane
from baton.outbox.relay import Relay
from baton.outbox.senders import QueueSender
from baton.settings.model import Settings
from baton.workload.ground import Ground, ensured, stood

#: Beside the batches in flight: the relay's ear.
_LISTENING = 1


def run(settings: Settings, *, lane: Lane, stop: threading.Event) -> None:
    """Relay the lane's tickets until ``stop`` is set.

    :raises StartupRefusal: this process must not run against this database.
    :raises ValueError: the settings name no database.
    """
    with (
        stood(
            settings,
            component=f"relay-{lane}",
            role=Role.RELAY,
            connections=settings.relay.in_flight + _LISTENING,
            stop=stop,
            metrics=("pramaan_document_ingest_relay",),
        ) as ground,
        ExitStack() as ends,
    ):
        if ground is None:
            return
        queue = ground.ingest if lane is Lane.INGEST else ground.registrar
        ensured(queue)
        relay = Relay(
            ground.engine,
            lane=lane,
            sender=QueueSender(queue, parallel=settings.relay.parallel_sends),
            config=settings.relay,
            listen=_direct_engine(ground, settings, ends),
            progress=ground.progress,
        )
        ground.progress.started()
        relay.run(stop=stop)


def _direct_engine(ground: Ground, settings: Settings, ends: ExitStack) -> Engine | None:
    """Past the pooler, for listening; ``None`` where the settings name no such way."""
    url = settings.database.direct_url
    if url is None:
        return None
    engine = ground.engine_of(url.reveal(), pool_size=1)
    ends.callback(engine.dispose)
    return engine
