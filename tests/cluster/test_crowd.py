"""Two hundred resources at one operator: nothing grows, nothing floods, and a status is written once for each change."""

from functools import partial

import psutil
import pytest

from baton.db.access import Role
from cluster.bed.between import Between, standing_between
from cluster.bed.replicas import Cluster, Replica
from cluster.resources import RECONCILERS
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

MANY = 200
#: Seconds: hundreds of first passes on a slow machine.
LONG = 400.0
#: MiB that two rounds of passes may add: less than a hundredth of a MiB for each pass.
GROWTH = 4.0


def ask_all(world: Cluster, token: str) -> None:
    """Ask every resource for a pass."""
    mark = f"baton.pramaan.dev/reconcile-at={token}"
    world.kubernetes.kubectl("annotate", "--overwrite", "regrec", "--all", mark)


def answered(world: Cluster, token: str) -> bool:
    """Whether every resource acknowledges the pass."""
    found = world.kubernetes.http.get(world.kubernetes.path(RECONCILERS)).json()["items"]
    return all(each.get("status", {}).get("lastHandledReconcileAt") == token for each in found)


def memory(replica: Replica) -> float:
    """What a replica has for itself, in MiB."""
    return float(psutil.Process(replica.process.pid).memory_full_info().uss) / 2**20


def writes(between: Between) -> int:
    """Statuses that were written, or tried to be."""
    return between.count("PATCH", holding="/status")


def events(between: Between) -> int:
    """Events that were posted or counted up."""
    return sum(each.method != "GET" and "/events" in each.path for each in list(between.asked))


def test_two_hundred_resources(world: Cluster) -> None:
    """Each has its first pass and is written once; asked again, once more; then nothing grows any further."""
    world.secrets(Role.OBSERVER)
    for number in range(MANY):
        world.declare(f"many-{number}", interval="1h")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_LEASE_DURATION="30s") as replica,
    ):
        wait_until(lambda: writes(between) >= MANY, LONG, interval=0.2, what="every first pass")
        sizes = []
        for number in range(1, 5):
            before = writes(between)
            ask_all(world, f"round-{number}")
            wait_until(
                partial(answered, world, f"round-{number}"), LONG, interval=0.5, what="every pass that was asked for"
            )
            assert writes(between) - before == MANY
            sizes.append(memory(replica))
        assert writes(between) == MANY * 5
        assert events(between) <= MANY  # of the first pass, and of no later one
        assert sizes[-1] - sizes[-3] < GROWTH, sizes
        assert replica.process.poll() is None
        assert replica.end() == 0
