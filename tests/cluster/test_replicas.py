"""Two replicas, of which one is killed, frozen or woken at any moment: every repair is made once."""

import random
import signal
from contextlib import ExitStack
from functools import partial

import pytest

from baton.db.access import Role
from cluster.bed.harm import broken, repaired
from cluster.bed.replicas import PATIENCE, Cluster, Replica
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LEASE = "1s"
ROUNDS = 50
EACH = 6


def holder(world: Cluster) -> str:
    """The identity that the Lease names."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{world.kubernetes.namespace}/leases/baton-operator"
    answer = world.kubernetes.http.get(path)
    found = answer.json() if answer.status_code == 200 else {}
    return str((found.get("spec") or {}).get("holderIdentity") or "").partition("_")[0]


class Pair:
    """Two replicas; whoever is killed comes back under another name."""

    def __init__(self, world: Cluster, ends: ExitStack) -> None:
        self._world = world
        self._ends = ends
        self.running: dict[str, Replica] = {}
        self.begun = 0
        self.begin()
        self.begin()

    def begin(self) -> None:
        """One more."""
        self.begun += 1
        name = f"replica-{self.begun}"
        self.running[name] = self._ends.enter_context(
            self._world.replica(name, BATON_OPERATOR_LEASE_DURATION=LEASE, BATON_RECONCILE_BATCH_SIZE="1")
        )

    def leader(self) -> str:
        """The one that leads, once one of those that run does."""
        wait_until(lambda: holder(self._world) in self.running, PATIENCE, what="a leader")
        return holder(self._world)


def check(loop: Loop, documents: int) -> None:
    """Every document was repaired once, and asked for once."""
    ledger = loop.ledger()
    assert len(ledger) == len({row.document_id for row in ledger}) == documents
    assert {row.result for row in ledger} == {"repaired"}
    assert (
        loop.matter.count("ops.document_ingest_outbox", "event_type = 'document.registration.requested'") == documents
    )


@pytest.mark.chaos
@pytest.mark.slow
def test_leaders_are_killed_and_frozen_for_fifty_rounds(world: Cluster, request: pytest.FixtureRequest) -> None:
    """At a moment by chance, repairs under way or not: rows of the ledger are documents changed."""
    seed = request.config.getoption("--seed") or random.randrange(2**32)
    print(f"--seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair", limits={"repairsPerMinute": 10_000})
    loop = Loop(world.matter)
    with ExitStack() as ends:
        pair = Pair(world, ends)
        for number in range(1, ROUNDS + 1):
            leader = pair.leader()
            broken(world, EACH)
            done = EACH * (number - 1) + chance.randrange(EACH + 1)
            world.until(partial(repaired, loop, done), interval=0.005, what="some repairs")
            if number % 2:
                pair.running.pop(leader).send(signal.SIGKILL)
                pair.begin()
            else:
                frozen = pair.running.pop(leader)
                frozen.send(signal.SIGSTOP)
                pair.leader()
                world.until(partial(repaired, loop, EACH * number), what=f"the other's repairs in round {number}")
                frozen.send(signal.SIGCONT)
                pair.running[leader] = frozen
            world.until(partial(repaired, loop, EACH * number), what=f"all repairs of round {number}")
            check(loop, EACH * number)
        assert all(replica.process.poll() is None for replica in pair.running.values())


def test_a_leader_that_is_killed_is_followed(world: Cluster) -> None:
    """Once its Lease lapsed; what it had repaired stays so, and the rest is repaired by the other."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with ExitStack() as ends:
        pair = Pair(world, ends)
        leader = pair.leader()
        loop = broken(world, EACH)
        wait_until(loop.ledger, PATIENCE, interval=0.005, what="a repair")
        pair.running.pop(leader).send(signal.SIGKILL)
        assert pair.leader() != leader
        broken(world, EACH)
        wait_until(partial(repaired, loop, 2 * EACH), PATIENCE, what="all repairs")
        check(loop, 2 * EACH)


def test_a_resource_that_is_deleted_while_nobody_runs_is_gone_at_once(world: Cluster) -> None:
    """There is nothing that it would wait for; and it does not come back with the operator."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        replica.send(signal.SIGKILL)
    world.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
    assert world.kubernetes.read("registrationreconcilers", "main") is None
    world.declare("second", mode="Observe")
    with world.replica("two") as replica:
        world.wait_for("Ready", "True", "InOrder", name="second")
        assert world.kubernetes.read("registrationreconcilers", "main") is None
        assert replica.end() == 0
