"""The answers: each from the resource, and all but the status from its database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

from baton.aws.objects import Store
from baton.aws.queues import configured
from baton.db.states import Lane
from baton.operator.api import Api, Body
from baton.operator.reading import grounds, telling
from baton.operator.reading.grounds import Ground, Replica
from baton.operator.reading.paths import Asked, View
from baton.operator.reading.refusals import Missing
from baton.reconcilers import explain
from baton.reconcilers.doctor.examination import examine
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import Mode, PassResult
from baton.settings.model import Settings

#: Seconds after which a plan is told as far as it came.
_PLAN_ENDS: Final = 20.0
#: Parts of a resource's metadata that are told: no annotation, since other programs write there what they like.
_METADATA: Final = ("name", "namespace", "uid", "generation", "creationTimestamp")

Answer = dict[str, Any]


def answer(api: Api, asked: Asked, *, replica: Replica, ambient: Settings) -> Answer:
    """Answer a question that was found to be allowed.

    :raises Refused: there is no answer.
    """
    body = grounds.resource(api, asked)
    told = {"resource": _resource(body), "replica": _replica(replica)}
    if asked.view is View.STATUS:
        return told
    with grounds.opened(api, body, ambient=ambient) as ground:
        return {**told, **_VIEWS[asked.view](ground, asked)}


def _resource(body: Body) -> Answer:
    metadata = body["metadata"]
    return {
        **{name: metadata[name] for name in _METADATA if name in metadata},
        "spec": body.get("spec") or {},
        "status": body.get("status") or {},
    }


def _replica(replica: Replica) -> Answer:
    return {"identity": replica.identity, "leads": replica.leads(), "version": version("baton")}


def _plan(ground: Ground, _: Asked) -> Answer:
    return {"plan": telling.plan(_made(ground))}


def _explain(ground: Ground, asked: Asked) -> Answer:
    if asked.document is None:
        raise Missing("NotFound", "no document is named")
    with ground.engine.connect() as connection:
        found = explain.explain(connection, asked.document, settings=ground.settings)
    if found is None:
        raise Missing("NotFound", "there is no such document")
    return {"explanation": telling.explanation(found)}


def _report(ground: Ground, _: Asked) -> Answer:
    """What somebody needs who is asked for help from afar."""
    findings = [each.as_json(quoting=False) for each in examine(ground.engine, ground.settings, ground.clients)]
    return {"findings": findings, "plan": telling.plan(_made(ground), shown=0)}


_VIEWS: Final[Mapping[View, Callable[[Ground, Asked], Answer]]] = {
    View.PLAN: _plan,
    View.EXPLAIN: _explain,
    View.REPORT: _report,
}


def _made(ground: Ground) -> PassResult:
    """A pass up to the first lock, for so long at most."""
    settings = ground.settings
    ingest, registrar, _ = configured(ground.clients, settings.queues)
    reconciler = Reconciler(
        ground.engine,
        settings=settings,
        mode=Mode.OBSERVE,
        queues={Lane.INGEST: ingest, Lane.REGISTRAR: registrar},
        store=Store(ground.clients, settings.bucket, create=False),
    )
    stop = threading.Event()
    ends = threading.Timer(_PLAN_ENDS, stop.set)
    ends.daemon = True
    ends.start()
    try:
        return reconciler.run_once(stop)
    finally:
        ends.cancel()
