"""The operator as a process: its threads, and how they end."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from typing import Final

from baton.consumers.backoff import Backoff, Failures
from baton.operator import access, leases
from baton.operator.api import Api, ApiError
from baton.operator.crews import Crew
from baton.operator.declaring import Declared, declare
from baton.operator.edge import Edge
from baton.operator.events import Herald
from baton.operator.leases import Election
from baton.operator.loops import ResourceLoop
from baton.operator.reading.answering import Answering
from baton.operator.reading.grounds import Replica
from baton.operator.reading.serving import serve
from baton.operator.redrives import Place
from baton.operator.redriving import RedriveLoop
from baton.operator.rollcall import RollCall
from baton.operator.roster import Change, Roster
from baton.operator.scribe import Scribe
from baton.operator.specs import Key
from baton.operator.supervision import Supervisor
from baton.operator.threads import Group
from baton.operator.vocabulary import Plural
from baton.settings.model import Settings
from baton.telemetry import instruments, metrics
from baton.telemetry.process import watched
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Seconds that each has to end in, one after the other: together, with the telemetry's, within a pod's grace of 30.
_WORK_ENDS: Final = 12.0
_LEASE_ENDS: Final = 3.0
_PENS_END: Final = 3.0
#: Seconds without a beat after which a thread counts as stuck.
_EDGE_SILENT_AFTER: Final = 30.0
#: Seconds between two beats of the roll-call.
_BEAT: Final = 30.0
#: Seconds; the first wait after a roll-call that failed.
_AGAIN: Final = 1.0


def run(settings: Settings, *, stop: threading.Event) -> None:
    """Work for the resources of one namespace, or of all, until ``stop`` is set.

    :raises AccessMissing: nothing says how the API server is reached.
    :raises SettingsError: the default resource is none.
    """
    found = access.find(settings.operator)
    namespace = None if settings.operator.cluster_wide else found.namespace
    with ExitStack() as ends:
        watch = ends.enter_context(watched(settings, component="operator", version=version("baton")))
        _prepare_metrics()
        api = Api(found)
        ends.callback(api.close)
        progress = watch.progress

        def make(key: Key) -> ResourceLoop:
            return ResourceLoop(
                key,
                roster=roster,
                api=api,
                leave=scribe.leave,
                ambient=settings,
                progress=progress,
                installation=election.installation,
            )

        def make_redrives(place: Place) -> RedriveLoop:
            return RedriveLoop(
                place,
                redrives=redrives,
                reconcilers=roster,
                api=api,
                leave=redrive_scribe.leave,
                ambient=settings,
                progress=progress,
                ended=lambda loop: crew.may_end(redrives, loop),
            )

        def changed(change: Change, key: Key) -> None:
            supervisor.changed(change, key)
            crew.reconciler_changed(change, key)

        supervisor, crew = Supervisor(make), Crew(make_redrives)
        roster = Roster(changed)
        redrives = Roster(lambda *_: crew.changed(redrives))
        rosters = {Plural.RECONCILERS: roster, Plural.REDRIVES: redrives}
        identity = access.identity(settings.operator)
        herald = Herald(api, identity=identity, beat=partial(progress.beat, "herald"))
        scribe = Scribe(api, roster, beat=partial(progress.beat, "scribe"), tell=herald.tell)
        redrive_scribe = Scribe(
            api,
            redrives,
            beat=partial(progress.beat, "scribe of redrives"),
            plural=Plural.REDRIVES,
            tell=herald.tell,
        )
        election = Election(
            api,
            namespace=found.namespace,
            name=settings.operator.lease,
            identity=identity,
            duration=settings.operator.lease_duration,
        )
        edge = Edge(found, rosters, beat=partial(progress.beat, "edge"), cluster_wide=settings.operator.cluster_wide)
        # what writes for others ends last, and the lease is let go once nobody works any more
        pens = ends.enter_context(Group(progress, within=_PENS_END))
        pens.begin("herald", herald.run, wake=herald.end)
        pens.begin("scribe", scribe.run, wake=scribe.end)
        pens.begin("scribe of redrives", redrive_scribe.run, wake=redrive_scribe.end)

        def turned(leads: bool) -> None:  # noqa: FBT001 - as the election says it
            metrics.OPERATOR_LEADS.set(int(leads))
            supervisor.turned(roster, leads=leads)
            crew.turned(redrives, leads=leads)

        leading = ends.enter_context(Group(progress, within=_LEASE_ENDS))
        leading.begin(
            "lease",
            lambda until: leases.keep(election, stop=until, beat=partial(progress.beat, "lease"), turned=turned),
        )
        working = ends.enter_context(Group(progress, within=_WORK_ENDS))
        working.add("loops", supervisor.end)
        working.add("redrives", crew.end)
        working.begin("edge", edge.run, silent_after=_EDGE_SILENT_AFTER, wake=edge.wake)
        call = RollCall(api, rosters, namespace=namespace, leads=lambda: election.leads)
        working.begin(
            "roll-call",
            lambda until: roll_call(call, every=settings.operator.roll_call, stop=until, progress=progress),
            ready=False,
        )
        _begin_default(working, settings, api=api, namespace=found.namespace, progress=progress)
        port = settings.operator.reading_port
        if port is not None:
            replica = Replica(identity, lambda: supervisor.leads, namespace)
            answering, beat = Answering(api, replica=replica, ambient=settings), partial(progress.beat, "reading")
            working.begin(
                "reading",
                lambda until: serve(answering, until, port=port, beat=beat),
                silent_after=_EDGE_SILENT_AFTER,
            )
        progress.started()
        stop.wait()


def _begin_default(working: Group, settings: Settings, *, api: Api, namespace: str, progress: Progress) -> None:
    """Have the resource that the settings ask for be there, if they do."""
    if settings.operator.default_reconciler is None:
        return
    declared, name = Declared.of(settings.operator.default_reconciler), "default resource"
    beat = partial(progress.beat, name)
    working.begin(name, lambda until: declare(declared, api=api, namespace=namespace, stop=until, beat=beat))


def _prepare_metrics() -> None:
    instruments.label_resources()
    for prefix in ("pramaan_reconcile", "pramaan_operator"):
        instruments.prepare(prefix)
    metrics.OPERATOR_LEADS.set(0)


def roll_call(call: RollCall, *, every: float, stop: threading.Event, progress: Progress) -> None:
    """Make the roll-call now and then; one that failed soon again: kinds that were just defined are not served at once."""
    failures = Failures(Backoff(initial=min(_AGAIN, every), maximum=every))
    while not stop.is_set():
        progress.beat("roll-call")
        wait = every
        try:
            call.make()
            failures.succeeded()
            progress.ready("roll-call")
        except ApiError as error:
            wait = failures.failed()
            _log.warning("the resources could not be listed", exc_info=error)
            progress.not_ready("roll-call", "the API server does not list the resources")
        until = time.monotonic() + wait
        while (left := until - time.monotonic()) > 0 and not stop.wait(min(left, _BEAT)):
            progress.beat("roll-call")
