"""Watches that close, lie or go silent, answers that make no sense, tasks that die: the operator goes on."""

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from baton.db.access import Role
from baton.operator import edge
from baton.operator.edge import Edge
from baton.operator.roster import Roster
from baton.operator.vocabulary import Plural
from baton.telemetry.progress import Progress
from cluster.bed.asking import Kubernetes
from cluster.bed.between import Asked, Between, Mood, Spoiled, standing_between
from cluster.bed.harm import broken, held, repaired, waiting
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.resources import RECONCILERS, reconciler
from support.parts import needs
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

NO_ROLL_CALL = {"BATON_OPERATOR_ROLL_CALL": "1h"}


def _event(kind: str, **content: Any) -> bytes:
    return json.dumps({"type": kind, **content}).encode() + b"\n"


def _status(code: int) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "metadata": {},
        "message": "spoiled",
    }


WATCHES = {
    "closed at once": Spoiled(200, b""),
    "gone, as an answer": Spoiled(410, json.dumps(_status(410)).encode()),
    "gone, as an event": Spoiled(200, _event("ERROR", object=_status(410))),
    "an error, as an event": Spoiled(200, _event("ERROR", object=_status(500))),
    "an event about nothing": Spoiled(200, _event("MODIFIED")),
    "an object without anything": Spoiled(200, _event("ADDED", object={"metadata": {}})),
    "a kind of event that nobody knows": Spoiled(200, _event("SURPRISE", object={"metadata": {}})),
    "no JSON": Spoiled(200, b"<html>\n"),
    "half a line": Spoiled(200, b'{"type": "MODIF', closes=True),
    "not authenticated": Spoiled(401, json.dumps(_status(401)).encode()),
    "not allowed": Spoiled(403, json.dumps(_status(403)).encode()),
    "too many": Spoiled(429, json.dumps(_status(429)).encode()),
    "out of order": Spoiled(500, b"oops"),
}
ANSWERS = (b"{}", b"[]", b"null", b'"yes"', b"", b"<html>", b'{"items": [null], "metadata": {}, "data": 7, "spec": []}')


class Spoiler:
    """Spoils some answers, and counts them."""

    def __init__(self, between: Between, chosen: Callable[[Asked], bool], *answers: Spoiled) -> None:
        self.between = between
        self.chosen = chosen
        self.answers = answers
        self.spoiled: list[Asked] = []
        between.spoil = self

    def __call__(self, asked: Asked) -> Spoiled | None:
        """Answer in the API server's place, or not."""
        if not self.chosen(asked):
            return None
        self.spoiled.append(asked)
        return self.answers[len(self.spoiled) % len(self.answers)]

    def spoiled_of(self, about: str, count: int = 1) -> bool:
        """Whether so many answers about something were spoiled."""
        return sum(about in each.path for each in list(self.spoiled)) >= count


def another(between: Between, method: str, about: str, before: int) -> bool:
    """Whether something was asked again."""
    return between.count(method, holding=about, watch=False) > before


def test_a_watch_that_closes_lies_or_is_refused_is_opened_again(world: Cluster) -> None:
    """In each of these ways, again and again; afterwards a change is seen, though no list is due."""
    world.secrets(Role.OBSERVER)
    world.declare()
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), **NO_ROLL_CALL) as replica,
    ):
        world.wait_for("Ready", "True", "InOrder")
        for way, answer in WATCHES.items():
            spoiler = Spoiler(between, lambda asked: asked.watch, answer)
            between.cut()
            wait_until(partial(spoiler.spoiled_of, RECONCILERS, 2), PATIENCE, what=f"another watch after: {way}")
            between.spoil = None
            world.change({"suspend": {"reason": way}})
            wait_until(world.is_seen, PATIENCE, what=f"the change after: {way}")
        assert replica.process.poll() is None
        assert between.count("GET", holding=RECONCILERS, watch=True) >= 2 * len(WATCHES)


@needs("root")
def test_an_account_without_a_name_watches(world: Cluster) -> None:
    """As in a container: what is declared after the start is seen without a roll-call."""
    world.secrets(Role.OBSERVER)
    nameless = ("unshare", "--user", "--map-user=54321", "--")
    with world.replica(by=nameless, **NO_ROLL_CALL) as replica:
        wait_until(lambda: "this replica works from now on" in replica.told(), PATIENCE, what="a leader")
        world.declare()
        world.wait_for("Ready", "True", "InOrder")


def test_a_watch_that_is_silent_is_made_up_for_by_the_roll_call(world: Cluster) -> None:
    """It is open, and nothing comes: a change, a deletion and a new resource are noticed all the same."""
    world.secrets(Role.OBSERVER)
    world.declare()

    def silent(asked: Asked) -> Spoiled | None:
        if asked.watch:
            between.heard.wait()
        return None

    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_ROLL_CALL="1s"),
    ):
        world.wait_for("Ready", "True", "InOrder")
        between.heard.clear()
        between.spoil = silent
        between.cut()
        world.change({"suspend": {"reason": "nobody told"}})
        wait_until(world.is_seen, PATIENCE, what="the change")
        world.declare("second")
        world.wait_for("Ready", "True", "InOrder", name="second")


def test_answers_that_make_no_sense_end_nothing(world: Cluster) -> None:
    """To every question but the watch's: afterwards each thread of the operator still does its work."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_ROLL_CALL="1s") as replica,
    ):
        world.wait_for("Ready", "True", "InOrder")
        spoiler = Spoiler(between, lambda asked: not asked.watch, *(Spoiled(200, each) for each in ANSWERS))
        world.change({"suspend": {"reason": "nonsense"}})
        # a list, the lease, a secret for the new spec and a status: each with every kind of nonsense
        for about in ("leases", "secrets", "status"):
            wait_until(partial(spoiler.spoiled_of, about), PATIENCE, what=f"a spoiled answer about {about}")
        wait_until(lambda: len(spoiler.spoiled) >= 5 * len(ANSWERS), PATIENCE, what="many spoiled answers")
        between.spoil = None
        wait_until(world.is_seen, PATIENCE, what="the status")
        world.change({"suspend": None})
        loop = broken(world, 2)
        wait_until(partial(repaired, loop, 2), PATIENCE, what="the repairs")
        for method, about in (("PUT", "leases"), ("GET", RECONCILERS), ("PATCH", "status")):
            before = between.count(method, holding=about, watch=False)
            broken(world)
            wait_until(
                partial(another, between, method, about, before),
                PATIENCE,
                what=f"another {method} of {about}",
            )
        assert "this replica works from now on" in replica.told()
        assert replica.end() == 0


@pytest.fixture
def swept() -> Iterator[None]:
    """What a test leaves behind is warned of in its own end, and not in another test."""
    yield
    gc.collect()


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_task_of_the_watch_dies_unseen(
    swept: None, kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each task of kopf's is cancelled in turn; afterwards changes are seen as before. Its sockets are left behind."""
    monkeypatch.setattr(edge, "_BACKOFF_MAX", 1.0)
    kubernetes.create(RECONCILERS, reconciler("main", interval="1s")).raise_for_status()
    roster = Roster(lambda *_: None)
    victims: list[str] = []
    alive: set[str] = set()

    def beat() -> None:
        for task in asyncio.all_tasks():
            kind = task.get_name().partition("<")[0]
            alive.add(kind)
            if kind in victims:
                task.cancel()
                victims.remove(kind)

    def seen(generation: int) -> bool:
        return any(wanted.generation == generation for wanted in roster.all())

    stop = threading.Event()
    watching = Edge(kubernetes.access, {Plural.RECONCILERS: roster}, beat=beat)
    thread = threading.Thread(target=watching.run, args=(stop,))
    thread.start()
    try:
        wait_until(partial(seen, 1), PATIENCE, what="the first sight")
        wait_until(lambda: any(name.startswith("watcher for") for name in alive), PATIENCE, what="the watcher's task")
        lasting = sorted(kind for kind in alive if not kind.startswith(("Task-", "worker for", "pause-waiter")))
        for number, name in enumerate(lasting):
            victims.append(name)
            wait_until(lambda: not victims, PATIENCE, what=f"the end of: {name}")
            kubernetes.patch(RECONCILERS, "main", {"spec": {"interval": f"{number + 2}s"}}).raise_for_status()
            wait_until(partial(seen, number + 2), PATIENCE, what=f"a change after the end of: {name}")
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    caplog.clear()  # what was logged holds on to sockets by its exceptions


def test_a_frozen_event_loop_fails_the_liveness_probe(kubernetes: Kubernetes) -> None:
    """The probe is answered all the same, and healthy again once the loop moves."""
    now = [0.0]
    progress = Progress(lambda: now[0])
    progress.declare("edge", silent_after=30.0)
    frozen, moves, stop = threading.Event(), threading.Event(), threading.Event()

    def freeze(*_: object) -> None:
        frozen.set()
        moves.wait(PATIENCE)

    watching = Edge(kubernetes.access, {Plural.RECONCILERS: Roster(freeze)}, beat=partial(progress.beat, "edge"))
    thread = threading.Thread(target=watching.run, args=(stop,))
    thread.start()
    try:
        kubernetes.create(RECONCILERS, reconciler("main")).raise_for_status()
        assert frozen.wait(PATIENCE)
        now[0] = 31.0
        assert not progress.liveness().healthy
        moves.set()
        wait_until(lambda: progress.liveness().healthy, PATIENCE, what="the beat")
    finally:
        moves.set()
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_pass_that_waits_freezes_neither_watch_nor_lease(world: Cluster) -> None:
    """While its statement waits the lease is renewed, and another resource is seen and told what is wrong with it."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), **NO_ROLL_CALL),
    ):
        world.wait_for("Ready", "True", "InOrder")
        with held(world):
            wait_until(partial(waiting, world), PATIENCE, what="a statement that waits")
            renewed = between.count("PUT", holding="leases")
            world.declare("second", database={"secretRef": {"name": "nowhere"}})
            world.wait_for("Stalled", "True", "SecretMissing", name="second")
            wait_until(partial(another, between, "PUT", "leases", renewed), PATIENCE, what="the lease's renewal")


def test_a_replica_ends_within_its_grace_though_nothing_answers(world: Cluster) -> None:
    """Neither the API server nor Postgres: a statement waits, a list, the lease and a status hang."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_ROLL_CALL="1s") as replica,
    ):
        world.wait_for("Ready", "True", "InOrder")
        with held(world):
            wait_until(partial(waiting, world), PATIENCE, what="a statement that waits")
            between.go(Mood.SILENT)
            asked = len(between.asked)
            wait_until(lambda: len(between.asked) >= asked + 3, PATIENCE, what="questions that nobody answers")
            assert replica.end(within=30.0) == 0
