"""The registrar's consumer as a process."""

from __future__ import annotations

import threading
from functools import partial

from baton.consumers.tickets import TicketConsumer
from baton.db.access import Role
from baton.db.states import Lane
from baton.record.apply import apply, give_up
from baton.registrar.routing import Routing
from baton.runs.dispatch import Dispatcher
from baton.runs.inputs import Inputs
from baton.runs.invocation import AgentClient
from baton.settings.model import Settings
from baton.workload.ground import ensured, stood

#: Connections besides the workers': receiving, keeping, heartbeat, waking the relay.
_MORE_CONNECTIONS = 4


def run(settings: Settings, *, stop: threading.Event) -> None:
    """Serve the registrar lane until ``stop`` is set.

    :raises StartupRefusal: this process must not run against this database.
    :raises AgentMissing: the settings name no agent.
    :raises ValueError: the settings name no database.
    """
    limits = settings.runs
    with (
        AgentClient(settings.agent) as agent,
        stood(
            settings,
            component="registrar",
            role=Role.REGISTRAR,
            connections=max(settings.database.pool_size, settings.consumer.workers + _MORE_CONNECTIONS),
            stop=stop,
            metrics=("pramaan_agent", "pramaan_record"),
        ) as ground,
    ):
        if ground is None:
            return
        ensured(ground.registrar, ground.store)
        requests = Dispatcher(
            ground.engine,
            agent=agent,
            inputs=Inputs(ground.engine, ground.store, limits=limits),
            limits=limits,
            breaker_config=settings.breaker,
        )
        consumer = TicketConsumer(
            queue=ground.registrar,
            lane=Lane.REGISTRAR,
            handler=Routing(
                ground.engine,
                requests=requests,
                apply=partial(apply, limits=limits),
                abandon=partial(give_up, limits=limits),
            ),
            engine=ground.engine,
            config=settings.consumer,
            stop=stop,
            progress=ground.progress,
        )
        ground.progress.started()
        consumer.run()
