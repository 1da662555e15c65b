"""The operator at rest: its memory, its CPU, and what it asks of the API server.

Ten resources as they come, nothing wrong with any.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from baton.db.access import Role
from cluster.bed.between import Between, standing_between
from cluster.bed.replicas import Cluster, Replica
from cluster.conftest import api_server, kubernetes, served, world  # noqa: F401 - fixtures
from support.figures import Figure, Figures
from support.waiting import wait_until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

RESOURCES = 10
MEMORY = 150.0
CPU = 1.0
REQUESTS = 3000.0
#: Seconds: each thing that is done now and then is done at least once.
WHILE = 310.0


@contextmanager
def resting(world: Cluster) -> Iterator[tuple[Replica, Between]]:  # noqa: F811
    """A replica with its resources, all in order; nothing hurries, as in a cluster."""
    world.secrets(Role.RECONCILER)
    for number in range(RESOURCES):
        mode = "Observe" if number else "Repair"
        world.declare(f"one-of-{number}", mode=mode, interval="30s")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(
            KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_LEASE_DURATION="30s", BATON_HEALTH_PORT="0"
        ) as replica,
    ):
        for number in range(RESOURCES):
            world.wait_for("Ready", "True", "InOrder", name=f"one-of-{number}")
        yield replica, between


def test_at_rest(world: Cluster, figures: Figures, scale: float) -> None:  # noqa: F811
    """Resident memory in MB, CPU in hundredths of a core, requests in an hour."""
    with resting(world) as (replica, between):
        process = psutil.Process(replica.process.pid)
        span = max(60.0, WHILE * scale)
        before, asked, began = process.cpu_times(), len(between.asked), time.monotonic()
        wait_until(lambda: time.monotonic() - began >= span, span + 60, interval=1.0, what="the end of the rest")
        took, after = time.monotonic() - began, process.cpu_times()
        memory = process.memory_info().rss / 1e6
        cpu = 100.0 * (after.user + after.system - before.user - before.system) / took
        requests = 3600.0 * (len(between.asked) - asked) / took
    for name, value, unit, limit in (
        (f"memory with {RESOURCES} resources", memory, "MB", MEMORY),
        (f"CPU at rest with {RESOURCES} resources", cpu, "% of a core", CPU),
        (f"requests to the API server at rest with {RESOURCES} resources", requests, "an hour", REQUESTS),
    ):
        figures.record(Figure(name, value, unit, f"less than {limit:g}", holds=value < limit))
    print(dict(between.by_kind()))  # noqa: T201
