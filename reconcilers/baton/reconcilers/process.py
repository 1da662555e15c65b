"""The reconcile loop as a process of its own, without Kubernetes; or one pass of it."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial

from baton.aws.queues import Queue
from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers import deadletters, gauges, owner
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.loops import LOOP, Loop
from baton.reconcilers.results import Mode, PassResult
from baton.settings.model import Settings
from baton.workload.ground import Ground, announced, ensured, stood

#: For how much longer than its waits a replica may be silent: while it repairs.
_LINGER = timedelta(minutes=2)
#: The loop's own connection, one for a repair beside it, one to spare.
_CONNECTIONS = 3


def _queues(ground: Ground) -> dict[Lane, Queue]:
    return {Lane.INGEST: ground.ingest, Lane.REGISTRAR: ground.registrar}


def mend(ground: Ground, settings: Settings) -> None:
    """Make again what somebody deleted while everything runs: queues, bucket, notification."""
    ensured(ground.ingest, ground.registrar, ground.results, ground.store)
    if settings.queues.create:
        announced(ground.clients, ground.store, results=ground.results)


def _sweep(ground: Ground) -> None:
    deadletters.sweep(ground.engine, (ground.ingest, ground.registrar, ground.results))


def run(settings: Settings, *, stop: threading.Event, once: bool = False, observe: bool = False) -> PassResult | None:
    """Reconcile until ``stop`` is set, or once.

    :param once: make one pass, and return its result; an error of it is raised.
    :param observe: report what would be repaired; the database's role is the observer's, which cannot write.
    :raises StartupRefusal: this process must not run against this database.
    :raises ValueError: the settings name no database.
    """
    mode = Mode.OBSERVE if observe else Mode.REPAIR
    with stood(
        settings,
        component="reconciler",
        role=Role.RECONCILER if mode is Mode.REPAIR else Role.OBSERVER,
        connections=_CONNECTIONS,
        stop=stop,
        metrics=("pramaan_reconcile",),
        prepare=False,
    ) as ground:
        if ground is None:
            return None
        if once:
            return _once(ground, settings, mode=mode, stop=stop)
        _keep_on(ground, settings, mode=mode, stop=stop)
        return None


def _once(ground: Ground, settings: Settings, *, mode: Mode, stop: threading.Event) -> PassResult:
    if mode is Mode.REPAIR:
        _sweep(ground)
    reconciler = Reconciler(ground.engine, settings=settings, mode=mode, queues=_queues(ground), store=ground.store)
    return reconciler.run_once(stop)


def _keep_on(ground: Ground, settings: Settings, *, mode: Mode, stop: threading.Event) -> None:
    def show(result: PassResult) -> None:
        gauges.tell(ground.engine, result, memory=reconciler.memory)

    def before() -> None:
        if mode is Mode.REPAIR:
            mend(ground, settings)
            _sweep(ground)

    reconciler = Reconciler(
        ground.engine,
        settings=settings,
        mode=mode,
        queues=_queues(ground),
        store=ground.store,
        beat=partial(ground.progress.beat, LOOP),
    )
    loop = Loop(reconciler, interval=settings.reconcile.interval, progress=ground.progress, before=before, after=show)
    ground.progress.started()
    loop.run(stop)
    if mode is Mode.REPAIR:
        interval = timedelta(seconds=settings.reconcile.interval)
        with ground.engine.begin() as connection:
            owner.leave(connection, settings.reconcile.resource, linger=_LINGER + 2 * interval)
