"""The operator on a real API server, against a real database: what it heals, what it says, and when it gives up."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from baton.db.access import Role
from cluster.bed.asking import Kubernetes
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.bed.servers import ApiServer
from cluster.resources import RECONCILERS
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def broken(world: Cluster, count: int = 1) -> Loop:
    """Documents that were queued, and whose request nobody has."""
    loop = Loop(world.matter)
    for _ in range(count):
        loop.erase_request(loop.queued()[0])
    return loop


def differs(look: Callable[[], object], seen: object) -> bool:
    """Whether a look shows something else by now."""
    return look() != seen


def ask_for_a_pass(world: Cluster, token: str) -> None:
    """As a person does, and wait until it was made."""
    world.kubernetes.kubectl("annotate", "--overwrite", "regrec", "main", f"baton.pramaan.dev/reconcile-at={token}")
    wait_until(lambda: world.status().get("lastHandledReconcileAt") == token, PATIENCE, what="the pass")


def test_what_is_broken_is_healed_through_the_resource(world: Cluster) -> None:
    """Repair ends it: each document is asked for again, once, and the status says so."""
    world.secrets(Role.RECONCILER)
    loop = broken(world, 3)
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        assert [row.discrepancy for row in loop.ledger()] == ["request_ticket_missing"] * 3
        assert world.status()["found"] == 0
        assert world.status()["observedGeneration"] == 1
        assert world.kubernetes.kubectl("wait", "--for=condition=Ready", "regrec/main", "--timeout=1s")
        assert replica.end() == 0


def test_what_is_only_observed_is_only_reported(world: Cluster) -> None:
    """By a login that could write nothing; counts stand in the columns."""
    world.secrets(Role.OBSERVER)
    loop = broken(world, 2)
    world.declare(mode="Observe")
    with world.replica():
        world.wait_for("Drifted", "True", "DiscrepanciesFound")
        assert world.status()["discrepancies"][0]["name"] == "request_ticket_missing"
        assert world.status()["discrepancies"][0]["count"] == 2
        assert loop.ledger() == []


def test_a_suspension_holds_repairs_back_and_its_end_lets_them_go(world: Cluster) -> None:
    """Without a restart; whoever else repairs this database is held back, too."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair", suspend={"reason": "moving house"})
    with world.replica():
        world.wait_for("Suspended", "True", "Suspended")
        loop = broken(world)
        world.wait_for("Drifted", "True", "DiscrepanciesFound")
        assert loop.ledger() == []
        assert loop.repair().repaired == 0  # a loop without Kubernetes, on the same database
        world.change({"suspend": None})
        world.wait_for("Suspended", "False", "NotSuspended")
        world.wait_for("Drifted", "False", "InOrder")
        assert len(loop.ledger()) == 1


def test_a_pass_on_demand_is_made_and_acknowledged(world: Cluster) -> None:
    """However long the interval is."""
    world.secrets(Role.OBSERVER)
    world.declare(interval="1h")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        broken(world)
        ask_for_a_pass(world, "now-1")
        assert world.status()["found"] == 1


@pytest.mark.parametrize(
    ("values", "labels", "reason"),
    [
        (None, None, "SecretMissing"),
        ({"DATABASE_URL": "postgresql://x@127.0.0.1/x"}, {}, "SecretNotAllowed"),
        ({"OTHER": "x"}, None, "SecretKeyMissing"),
        ({"DATABASE_URL": "mysql://root:hunter2@db/x"}, None, "SecretInvalid"),
        ({"DATABASE_URL": "postgresql://baton:hunter2@127.0.0.1:9/x"}, None, "DatabaseUnreachable"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_secret_that_cannot_be_used_is_a_condition(
    world: Cluster, values: dict[str, str] | None, labels: dict[str, str] | None, reason: str
) -> None:
    """Never a crash, and never a secret in log or status; once it is right, work begins by itself."""
    if values is not None:
        world.kubernetes.secret("database", values, labels=labels)
    world.declare(aws={})
    with world.replica() as replica:
        world.wait_for("Ready", "False", reason)
        stalled = world.condition("Stalled")[0]
        assert stalled == ("False" if reason == "DatabaseUnreachable" else "True")
        world.secrets(Role.OBSERVER)
        world.wait_for("Ready", "True", "InOrder")
        assert world.condition("Stalled")[0] == "False"
        assert "hunter2" not in replica.told() + str(world.kubernetes.read(RECONCILERS, "main"))
        assert replica.process.poll() is None


def test_a_login_without_the_rights_is_a_condition(world: Cluster) -> None:
    """The relay's may not repair, and neither may the superuser."""
    world.kubernetes.secret("database", {"DATABASE_URL": world.database.url(Role.RELAY)})
    world.declare(mode="Repair", aws={})
    with world.replica():
        world.wait_for("Stalled", "True", "DatabaseUnfit")
        world.kubernetes.secret("database", {"DATABASE_URL": world.database.url("nobody_we_know")})
        world.wait_for("Stalled", "True", "LoginRefused")


def test_a_second_resource_on_a_database_is_a_conflict(world: Cluster) -> None:
    """It repairs nothing; when the first is deleted it takes over."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        world.declare("second", mode="Repair")
        world.wait_for("Stalled", "True", "Conflict", name="second")
        world.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
        world.wait_for("Ready", "True", "InOrder", name="second")


def test_an_idle_resource_is_not_written(world: Cluster) -> None:
    """Pass after pass: nothing that ages by itself is a reason to write; and nothing of kopf's stands in the resource."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")

    def last_pass() -> object:
        rows = world.matter.rows("SELECT value ->> 'ended_at' FROM ops.reconcile_state WHERE name = 'pass'")
        return rows[0][0] if rows else None

    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        before = world.kubernetes.read(RECONCILERS, "main")
        for _ in range(5):
            wait_until(partial(differs, last_pass, last_pass()), PATIENCE, what="another pass")
        assert world.kubernetes.read(RECONCILERS, "main") == before
        assert "finalizers" not in before["metadata"]
        assert "annotations" not in before["metadata"]
        assert replica.end() == 0


def test_one_of_two_replicas_works_and_the_other_takes_over(world: Cluster) -> None:
    """At once when the leader stops, after the Lease's length when it is frozen; what wakes up writes nothing wrong."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")

    def holder() -> str:
        lease = world.kubernetes.kubectl(
            "get", "lease", "baton-operator", "-o", "jsonpath={.spec.holderIdentity}", code=None
        )
        return lease.partition("_")[0]

    with world.replica("one") as one:
        wait_until(lambda: holder() == "one", PATIENCE, what="the first replica's lease")
        world.wait_for("Ready", "True", "InOrder")
        with world.replica("two") as two:
            wait_until(lambda: "started" in two.told(), PATIENCE, what="the second replica")
            one.send(signal.SIGSTOP)
            wait_until(lambda: holder() == "two", PATIENCE, what="the second replica's lease")
            loop = broken(world, 5)
            wait_until(lambda: len(loop.ledger()) == 5, PATIENCE, what="the repairs")
            one.send(signal.SIGCONT)
            wait_until(lambda: "no longer leads" in one.told(), PATIENCE, what="the first replica's end as a leader")
            assert holder() == "two"
            assert two.end() == 0
            wait_until(lambda: holder() == "one", PATIENCE, what="the first replica's second lease")
            broken(world, 5)
            wait_until(lambda: len(loop.ledger()) == 10, PATIENCE, what="the repairs")
            assert len({row.document_id for row in loop.ledger()}) == 10


def test_repairs_go_on_while_the_api_server_is_away(
    world: Cluster, api_server: ApiServer | None, kubernetes: Kubernetes
) -> None:
    """And the status catches up, and a change that was made meanwhile is seen."""
    if api_server is None:
        pytest.skip("somebody else's API server is not to be stopped")
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        api_server.away()
        loop = broken(world, 3)
        wait_until(lambda: len(loop.ledger()) == 3, PATIENCE, what="the repairs")
        api_server.back()
        until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        world.change({"suspend": {"reason": "after it", "until": until}})
        world.wait_for("Suspended", "True", "Suspended")
        assert replica.process.poll() is None
