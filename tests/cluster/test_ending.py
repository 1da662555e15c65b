"""Ends: of a replica in the middle of a statement, and of the test bed itself."""

from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from baton.db.access import Role
from cluster.bed.building import find_or_build
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.bed.servers import ApiServer
from support.parts import without
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'baton-operator%' AND wait_event_type = 'Lock'"
)


def test_a_replica_ends_within_its_grace_though_a_statement_waits(world: Cluster) -> None:
    """And leaves its lease to the next one at once."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        with world.database.preparer.begin() as connection:
            connection.execute(text("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE"))
            wait_until(lambda: world.matter.rows(WAITING)[0][0], PATIENCE, what="a statement that waits")
            assert replica.end(within=30.0) == 0
    lease = world.kubernetes.kubectl("get", "lease", "baton-operator", "-o", "jsonpath={.spec.holderIdentity}")
    assert lease == ""


def test_the_bed_leaves_nothing_behind(state_folder: Path) -> None:
    """No process, and every file in the one folder."""
    binaries = find_or_build()
    if binaries is None:
        without("needs Go")
    with ApiServer(state_folder, binaries=binaries):
        assert {name for name, _ in running(state_folder)} == {"etcd", "kube-apiserver"}
    assert running(state_folder) == []


def running(folder: Path) -> list[tuple[str, int]]:
    """Processes that were started for a folder."""
    return [
        (process.info["name"], process.info["pid"])
        for process in psutil.process_iter(["name", "cmdline", "pid"])
        if any(str(folder) in argument for argument in process.info["cmdline"] or ())
    ]
