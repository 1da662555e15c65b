"""RegistrationRedrives on a real API server: planned, carried out once, within what the reconciler may, and tidied away."""

import signal
from collections import Counter
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from cluster.bed.between import Asked, Spoiled, standing_between
from cluster.bed.harm import broken, fail, held, waiting
from cluster.bed.replicas import PATIENCE, Cluster, Replica
from cluster.resources import RECONCILERS, REDRIVES, redrive
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FAILED = {"registration": ["registration_failed"]}
#: What a redrive of a failed registration writes into, in no order.
WRITTEN = (
    "ops.redrive",
    "ops.document_ingest_outbox",
    "documents",
    "ops.document_status_transition",
    "ops.registration_repair",
)


def ask(world: Cluster, name: str = "once", **spec: Any) -> str:
    """Make a redrive; its uid."""
    body = redrive(name, **{"selector": FAILED, **spec})
    uid: str = world.kubernetes.create(REDRIVES, body).raise_for_status().json()["metadata"]["uid"]
    return uid


def status(world: Cluster, name: str = "once") -> dict[str, Any]:
    """Its status."""
    found: dict[str, Any] = (world.kubernetes.read(REDRIVES, name) or {}).get("status", {})
    return found


def said(world: Cluster, kind: str, name: str = "once") -> tuple[str, str]:
    """Status and reason of one of its conditions."""
    found = [each for each in status(world, name).get("conditions", ()) if each["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def wait_for(world: Cluster, kind: str, wanted: tuple[str, str], name: str = "once") -> None:
    """Wait until a condition is so."""
    world.until(lambda: said(world, kind, name) == wanted, what=f"{kind} of {name}: {wanted}", interval=0.1)


def redriven(world: Cluster) -> list[UUID]:
    """Documents that the ledger says were redriven by a person, and not repaired by the loop beside."""
    rows = Loop(world.matter).ledger()
    return [row.document_id for row in rows if (row.discrepancy, row.result) == ("redrive", "repaired")]


def in_database(world: Cluster) -> list[Any]:
    """The requests that were written down."""
    return list(world.matter.rows("SELECT id, state, requested_by, reason FROM ops.redrive"))


def has_told(replica: Replica, words: str) -> bool:
    """Whether a replica's log says so."""
    return words in replica.told()


def last_pass(world: Cluster) -> object:
    """When the last pass ended, by whichever operator."""
    rows = world.matter.rows("SELECT value ->> 'ended_at' FROM ops.reconcile_state WHERE name = 'pass'")
    return rows[0][0] if rows else None


def passes(world: Cluster, number: int) -> None:
    """Wait for so many passes, of whichever operator."""
    for _ in range(number):
        wait_until(partial(is_later, world, last_pass(world)), PATIENCE, what="another pass")


def is_later(world: Cluster, than: object) -> bool:
    """Whether a pass has ended since."""
    return last_pass(world) != than


def test_what_failed_is_redriven_once_and_the_status_says_how_much(world: Cluster) -> None:
    """Planned before anything is done; the request is the resource's uid; ledger and status agree; nothing left is silent."""
    world.secrets(Role.RECONCILER)
    failed, nowhere = fail(world, 3), uuid7()
    world.matter.registered()
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        uid = ask(world, selector={"documents": [str(each) for each in [*failed, nowhere]]})
        wait_for(world, "Ready", ("True", "Finished"))
        found = status(world)
        assert {name: found[name] for name in ("state", "planned", "redriven", "failed", "planComplete")} == {
            "state": "Finished",
            "planned": 3,
            "redriven": 3,
            "failed": 0,
            "planComplete": True,
        }
        assert found["plan"] == [{"action": "retry", "count": 3}]
        assert found["refused"] == [{"reason": "no such document", "count": 1}]
        assert found["firms"] == [{"firm": str(world.matter.firm), "planned": 3, "redriven": 3}]
        assert (found["requestId"], found["observedGeneration"]) == (uid, 1)
        assert found["startedAt"] <= found["finishedAt"]
        assert sorted(redriven(world)) == sorted(failed)
        by = {row.requested_by for row in Loop(world.matter).ledger() if row.discrepancy == "redrive"}
        assert by == {"night shift"}
        assert [(str(row.id), row.state) for row in in_database(world)] == [(uid, "finished")]
        assert world.kubernetes.kubectl("wait", "--for=condition=Ready", "redrive/once", "--timeout=1s")
        assert replica.end() == 0


def test_a_dry_run_only_plans(world: Cluster) -> None:
    """By a login that may only look, through a reconciler that only observes."""
    world.secrets(Role.OBSERVER)
    fail(world, 2)
    world.declare(mode="Observe")
    with world.replica():
        ask(world, dryRun=True)
        wait_for(world, "Ready", ("True", "Rehearsed"))
        assert (status(world)["planned"], status(world)["state"]) == (2, "Finished")
        assert "redriven" not in status(world)
        assert in_database(world) == []
        assert redriven(world) == []


def test_a_reconciler_that_only_observes_refuses_for_good(world: Cluster) -> None:
    """A redrive of long ago must not begin because somebody turns the mode."""
    world.secrets(Role.RECONCILER)
    fail(world)
    world.declare(mode="Observe")
    with world.replica():
        ask(world)
        wait_for(world, "Stalled", ("True", "ObserveOnly"))
        assert status(world)["state"] == "Refused"
        world.change({"mode": "Repair"})
        world.wait_for("Ready", "True", "InOrder")
        wait_until(lambda: world.matter.count("ops.owner"), PATIENCE, what="a pass that may repair")
        ask(world, "another")
        wait_for(world, "Ready", ("True", "Finished"), "another")
        assert status(world)["state"] == "Refused"
        assert len(in_database(world)) == 1


def test_a_redrive_waits_for_its_reconciler_and_for_the_end_of_a_suspension(world: Cluster) -> None:
    """Whoever suspends holds people's redrives back, too; then it goes on by itself."""
    world.secrets(Role.RECONCILER)
    failed = fail(world, 2)
    with world.replica():
        ask(world)
        wait_for(world, "Stalled", ("True", "ReconcilerMissing"))
        world.declare(mode="Repair", suspend={"reason": "moving house"})
        wait_for(world, "Suspended", ("True", "Suspended"))
        assert said(world, "Stalled")[0] == "False"
        assert redriven(world) == []
        world.change({"suspend": None})
        wait_for(world, "Ready", ("True", "Finished"))
        assert sorted(redriven(world)) == sorted(failed)


def test_a_second_reconciler_s_redrive_is_a_conflict(world: Cluster) -> None:
    """So that suspension and limits cannot be gone around; when it takes over, so does the redrive."""
    world.secrets(Role.RECONCILER)
    fail(world)
    world.declare(mode="Repair")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        world.declare("second", mode="Repair")
        ask(world, reconcilerRef={"name": "second"})
        wait_for(world, "Stalled", ("True", "Conflict"))
        assert redriven(world) == []
        world.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
        wait_for(world, "Ready", ("True", "Finished"))
        assert len(redriven(world)) == 1


def test_a_redrive_goes_on_where_a_killed_leader_left_it(world: Cluster) -> None:
    """Each document once, whoever did it; and when its status is wiped it does not run again."""
    world.secrets(Role.RECONCILER)
    failed = fail(world, 45)
    world.declare(mode="Repair")
    with world.replica("one") as one:
        world.wait_for("Ready", "True", "InOrder")
        ask(world, perMinute=1200)
        wait_until(lambda: redriven(world), PATIENCE, interval=0.02, what="the first batch")
        one.send(signal.SIGKILL)
        one.process.wait(PATIENCE)
    done = len(redriven(world))
    assert 0 < done < 45
    assert in_database(world)[0].state == "running"
    with world.replica("two"):
        wait_for(world, "Ready", ("True", "Finished"))
        assert status(world)["redriven"] == 45
        assert sorted(redriven(world)) == sorted(failed)
        gone = {"state": None, "conditions": None, "finishedAt": None}
        world.kubernetes.patch(REDRIVES, "once", {"status": gone}, part="status").raise_for_status()
        fail(world)
        wait_for(world, "Ready", ("True", "Finished"))
        assert len(redriven(world)) == 45


def test_nothing_is_done_before_the_plan_can_be_read(world: Cluster) -> None:
    """A leader that dies before its plan is written has begun nothing, and no plan is lost with it."""
    world.secrets(Role.RECONCILER)
    fail(world, 3)
    world.declare(mode="Repair")

    def unwritten(asked: Asked) -> Spoiled | None:
        return Spoiled(503, b"{}") if asked.method == "PATCH" and REDRIVES in asked.path else None

    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica("one", KUBECONFIG=str(between.kubeconfig)) as one,
    ):
        world.wait_for("Ready", "True", "InOrder")
        between.spoil = unwritten
        ask(world)
        wait_until(lambda: between.count("PATCH", holding=REDRIVES) >= 3, PATIENCE, what="plans that are not taken")
        assert in_database(world) == []
        one.send(signal.SIGKILL)
    assert redriven(world) == []
    with world.replica("two"):
        wait_for(world, "Ready", ("True", "Finished"))
        found = status(world)
        assert (found["planned"], found["redriven"], found["planComplete"]) == (3, 3, True)
        assert found["plan"] == [{"action": "retry", "count": 3}]


@pytest.mark.chaos
@pytest.mark.slow
def test_a_leader_that_is_killed_at_any_table_of_a_batch_is_followed(world: Cluster) -> None:
    """By kill -9 while its statement waits for the table: nothing of the batch stands, and each document is done once."""
    world.secrets(Role.RECONCILER)
    failed = fail(world, 5)
    world.declare(mode="Repair", interval="1h")
    with world.replica("first"):
        world.wait_for("Ready", "True", "InOrder")
        ask(world, dryRun=True)
        wait_for(world, "Ready", ("True", "Rehearsed"))
    ask(world, "real")
    for number, table in enumerate(WRITTEN):
        with held(world, table, mode="SHARE"), world.replica(f"victim-{number}") as victim:
            wait_until(partial(waiting, world), PATIENCE, interval=0.01, what=f"a write into {table}")
            victim.send(signal.SIGKILL)
            victim.process.wait(PATIENCE)
        assert redriven(world) == []
        assert all(row.state == "running" for row in in_database(world))
    with world.replica("last"):
        wait_for(world, "Ready", ("True", "Finished"), "real")
        found = status(world, "real")
        assert (found["planned"], found["redriven"], found["failed"]) == (5, 5, 0)
        assert sorted(redriven(world)) == sorted(failed)


def test_two_leaders_that_know_nothing_of_each_other_do_each_thing_once(world: Cluster) -> None:
    """Operators with Leases of their own, on the same resources: Postgres keeps them apart, and statuses come to rest."""
    world.secrets(Role.RECONCILER)
    failed = fail(world, 45)
    world.declare(mode="Repair", breaker={"minRuns": 1000, "windowRuns": 1000})  # so many failures would open it
    with (
        world.replica("one", BATON_OPERATOR_LEASE="one") as one,
        world.replica("two", BATON_OPERATOR_LEASE="two") as two,
    ):
        for each in (one, two):
            wait_until(partial(has_told, each, "this replica works from now on"), PATIENCE, what="two leaders")
        world.wait_for("Ready", "True", "InOrder")
        loop = broken(world, 20)
        ask(world)
        wait_for(world, "Ready", ("True", "Finished"))
        wait_until(lambda: world.status().get("found") == 0, PATIENCE, what="the end of all")
        made = Counter((row.document_id, row.aspect, row.discrepancy) for row in loop.ledger())
        assert set(made.values()) == {1}
        assert sum(name == "request_ticket_missing" for _, _, name in made) == 20
        assert sorted(redriven(world)) == sorted(failed)
        assert status(world)["redriven"] == 45
        passes(world, 6)  # what one of them still had to say of before is overtaken
        wait_until(lambda: world.status().get("found") == 0, PATIENCE, what="rest")
        before = [world.kubernetes.read(plural, name) for plural, name in ((RECONCILERS, "main"), (REDRIVES, "once"))]
        passes(world, 5)
        after = [world.kubernetes.read(plural, name) for plural, name in ((RECONCILERS, "main"), (REDRIVES, "once"))]
        assert after == before
        assert one.process.poll() is two.process.poll() is None


def test_a_redrive_that_is_deleted_on_its_way_stops(world: Cluster) -> None:
    """And stands as stopped in the database, from where a person may resume it."""
    world.secrets(Role.RECONCILER)
    fail(world, 25)
    world.declare(mode="Repair")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        ask(world, perMinute=1)
        wait_until(lambda: status(world).get("redriven") == 20, PATIENCE, what="the first batch")
        assert said(world, "Reconciling") == ("True", "Running")
        world.kubernetes.kubectl("delete", "redrive", "once", "--timeout=5s")
        wait_until(lambda: in_database(world)[0].state == "stopped", PATIENCE, what="the stop")
        assert len(redriven(world)) == 20


def test_a_finished_redrive_is_deleted_when_its_time_is_over(world: Cluster) -> None:
    """At the next roll-call; what has not finished, or was kept for less than it asked, stays."""
    world.secrets(Role.OBSERVER)
    world.declare(mode="Observe")
    with world.replica(BATON_OPERATOR_ROLL_CALL="1s") as replica:
        for name in ("old", "fresh"):
            ask(world, name, dryRun=True, ttlAfterFinished="1h")
            wait_for(world, "Ready", ("True", "Rehearsed"), name)
        long_ago = {"status": {"finishedAt": "2001-01-31T12:00:00Z"}}
        world.kubernetes.patch(REDRIVES, "old", long_ago, part="status").raise_for_status()
        wait_until(lambda: world.kubernetes.read(REDRIVES, "old") is None, PATIENCE, what="its end")
        assert world.kubernetes.read(REDRIVES, "fresh") is not None
        assert world.kubernetes.read("registrationreconcilers", "main") is not None
        assert replica.end() == 0


def test_a_slow_redrive_keeps_no_other_waiting(world: Cluster) -> None:
    """Of one reconciler, in one thread: they take turns."""
    world.secrets(Role.RECONCILER)
    failed = fail(world, 25)
    world.declare(mode="Repair")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        ask(world, "slow", perMinute=1)
        wait_until(lambda: status(world, "slow").get("redriven") == 20, PATIENCE, what="the first batch")
        left = next(each for each in failed if each not in redriven(world))
        ask(world, "quick", selector={"documents": [str(left)]})
        wait_for(world, "Ready", ("True", "Finished"), "quick")
        assert status(world, "slow")["state"] == "Running"
        assert len(redriven(world)) == 21
