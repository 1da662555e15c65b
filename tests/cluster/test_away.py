"""What the operator needs goes away and comes back: the conditions say so, the process lives, and work goes on by itself."""

import json
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from baton.db.access import Role
from baton.embedded.ports import LOOPBACK, free_port
from cluster.bed.between import Asked, Mood, Spoiled, standing_between
from cluster.bed.harm import broken, by_password, held, repaired, waiting
from cluster.bed.replicas import PATIENCE, Cluster, Replica
from cluster.resources import REDRIVES
from support.databases import Database
from support.gates import gate
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

QUEUES = {"ingest": "one.fifo", "registrar": "two.fifo", "results": "three", "create": False}


def tomorrow() -> str:
    """A moment as a spec has it."""
    return (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def past(moment: float) -> bool:
    """Whether a moment of this process's clock has come."""
    return time.monotonic() >= moment


def test_an_api_server_that_answers_nothing_stops_no_repair(world: Cluster) -> None:
    """Connections stay open and silent; what was declared meanwhile takes effect afterwards, and the status catches up."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with (
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig)) as replica,
    ):
        world.wait_for("Ready", "True", "InOrder")
        between.go(Mood.SILENT)
        loop = broken(world, 3)
        wait_until(partial(repaired, loop, 3), PATIENCE, what="the repairs")
        world.change({"suspend": {"reason": "after it", "until": tomorrow()}})
        between.go(Mood.OPEN)
        world.wait_for("Suspended", "True", "Suspended")
        assert replica.process.poll() is None


def test_kinds_that_are_not_served_yet_keep_nobody_waiting(world: Cluster) -> None:
    """A roll-call that is turned away is made again soon, and the replica is ready then: not minutes later."""
    turned_away: list[Asked] = []

    def spoil(asked: Asked) -> Spoiled | None:
        if asked.watch or not asked.path.endswith(REDRIVES) or len(turned_away) == 5:
            return None
        turned_away.append(asked)
        return Spoiled(429, b"{}")

    port = free_port()
    with standing_between(world.kubernetes, world.folder) as between:
        between.spoil = spoil
        with world.replica(KUBECONFIG=str(between.kubeconfig), BATON_HEALTH_PORT=str(port)):
            wait_until(partial(is_ready, port), 60, interval=0.2, what="the replica's readiness")
    assert len(turned_away) == 5


def is_ready(port: int) -> bool:
    """Whether the process behind a port says that it is ready."""
    try:
        return httpx.get(f"http://{LOOPBACK}:{port}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.chaos
@pytest.mark.slow
def test_two_minutes_without_an_api_server_and_two_without_a_database(world: Cluster) -> None:
    """All of it at its real length, at once, of two operators: one has no API server, repairs on, and forgets nothing that
    it has to say; of the other's resources one had no database at its start, and one lost it in mid-pass.
    """
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    port = world.database.cluster.server.port
    with (
        world.beside() as there,
        standing_between(world.kubernetes, world.folder) as between,
        world.replica(KUBECONFIG=str(between.kubeconfig), BATON_OPERATOR_LEASE_DURATION="30s") as replica,
        there.replica("two") as other,
        gate(port, open_=False) as early,
        gate(port) as late,
    ):
        there.secrets(Role.OBSERVER)
        for name, way in (("early", early), ("late", late)):
            there.kubernetes.secret(name, {"DATABASE_URL": way.url(world.database.url(Role.OBSERVER))})
            there.declare(name, database={"secretRef": {"name": name}})
        world.wait_for("Ready", "True", "InOrder")
        there.wait_for("Ready", "True", "InOrder", name="late")
        with held(world):
            wait_until(partial(waiting, world, 2), PATIENCE, what="passes that wait in the middle")
            late.shut()
            between.go(Mood.AWAY)
        began, asked = time.monotonic(), len(between.asked)
        loop = broken(world, 0)
        for turn in range(1, 5):
            broken(world, 3)
            wait_until(partial(repaired, loop, 3 * turn), PATIENCE, what="the repairs")
            for name in ("early", "late"):
                there.wait_for("Ready", "False", "DatabaseUnreachable", name=name)
                assert there.condition("Stalled", name) == ("False", "Progressing")
            wait_until(partial(past, began + 30 * turn), 31, interval=0.2, what="the next half minute")
        world.change({"suspend": {"reason": "after it", "until": tomorrow()}})
        # a third of a lease, waits of 20 s at most for the watch and of 15 s for the status, a secret a minute
        assert len(between.asked) - asked <= 120
        # waits grow to five seconds, the least that they may grow to: with as many it is back within an interval
        assert max(early.turned_away, late.turned_away) <= 60
        assert all(each["seconds"] <= 5 for each in logged(other, "a pass was not made"))
        between.go(Mood.OPEN)
        for way in (early, late):
            way.open()
        world.wait_for("Suspended", "True", "Suspended")
        assert world.status()["observedGeneration"] == 2
        assert world.status()["found"] == 0
        assert replica.told().count("this replica works from now on") == 1
        assert "no longer leads" not in replica.told()
        assert len({row.document_id for row in loop.ledger()}) == len(loop.ledger()) == 12
        for name in ("early", "late"):
            there.wait_for("Ready", "True", "InOrder", name=name)
        assert replica.end() == other.end() == 0


def logged(replica: Replica, message: str) -> list[dict[str, Any]]:
    """Its log's lines with these words."""
    lines = (json.loads(line) for line in replica.told().splitlines() if line.startswith("{"))
    return [line for line in lines if line["message"] == message]


def test_a_database_that_is_away_at_the_start_is_met_when_it_comes(world: Cluster) -> None:
    """Nobody has to do anything, so nothing is stalled."""
    world.secrets(Role.RECONCILER)
    loop = broken(world, 2)
    with gate(world.database.cluster.server.port, open_=False) as way:
        world.kubernetes.secret("database", {"DATABASE_URL": way.url(world.database.url(Role.RECONCILER))})
        world.declare(mode="Repair")
        with world.replica() as replica:
            world.wait_for("Ready", "False", "DatabaseUnreachable")
            assert world.condition("Stalled") == ("False", "Progressing")
            assert world.condition("Reconciling") == ("True", "DatabaseUnreachable")
            way.open()
            world.wait_for("Ready", "True", "InOrder")
            assert len(loop.ledger()) == 2
            assert replica.end() == 0


def test_a_database_that_goes_away_in_the_middle_of_a_pass_is_a_condition(world: Cluster) -> None:
    """In the middle of a statement; what broke meanwhile is repaired afterwards, once."""
    world.secrets(Role.RECONCILER)
    with gate(world.database.cluster.server.port) as way:
        world.kubernetes.secret("database", {"DATABASE_URL": way.url(world.database.url(Role.RECONCILER))})
        world.declare(mode="Repair")
        with world.replica() as replica:
            world.wait_for("Ready", "True", "InOrder")
            with held(world):
                wait_until(partial(waiting, world), PATIENCE, what="a statement that waits")
                way.shut()
                world.wait_for("Ready", "False", "DatabaseUnreachable")
            assert world.condition("Stalled") == ("False", "Progressing")
            loop = broken(world, 3)
            way.open()
            wait_until(partial(repaired, loop, 3), PATIENCE, what="the repairs")
            world.wait_for("Ready", "True", "InOrder")
            assert world.condition("Reconciling") == ("False", "Settled")
            assert len({row.document_id for row in loop.ledger()}) == 3
            assert replica.process.poll() is None


def test_a_wrong_password_waits_for_somebody_and_a_right_one_is_enough(world: Cluster, database: Database) -> None:
    """No restart, and neither password in a log or a status."""
    host = database.url(Role.RECONCILER).partition("@")[2]
    with by_password(database, Role.RECONCILER, "right-0815"):
        world.secrets(Role.RECONCILER)
        world.kubernetes.secret("database", {"DATABASE_URL": f"postgresql://baton_reconciler:wrong-4711@{host}"})
        world.declare(mode="Repair")
        with world.replica() as replica:
            world.wait_for("Stalled", "True", "LoginRefused")
            assert world.condition("Ready") == ("False", "LoginRefused")
            world.kubernetes.secret("database", {"DATABASE_URL": f"postgresql://baton_reconciler:right-0815@{host}"})
            world.wait_for("Ready", "True", "InOrder")
            assert world.condition("Stalled") == ("False", "Progressing")
            said = replica.told() + str(world.kubernetes.read("registrationreconcilers", "main"))
            assert "wrong-4711" not in said
            assert "right-0815" not in said
            assert replica.process.poll() is None


def test_a_secret_that_is_deleted_and_comes_back(world: Cluster) -> None:
    """It is noticed at the latest when somebody asks for a pass; and its return by itself."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        world.kubernetes.kubectl("delete", "secret", "database")
        world.kubernetes.kubectl("annotate", "regrec", "main", "baton.pramaan.dev/reconcile-at=now")
        world.wait_for("Stalled", "True", "SecretMissing")
        loop = broken(world, 2)
        world.secrets(Role.RECONCILER)
        world.wait_for("Ready", "True", "InOrder")
        wait_until(partial(repaired, loop, 2), PATIENCE, what="the repairs")
        assert world.status()["lastHandledReconcileAt"] == "now"
        assert replica.process.poll() is None


def test_a_queue_that_is_gone_is_a_condition_until_it_is_back(world: Cluster) -> None:
    """Where queues may not be made: before the first pass and after many."""
    world.secrets(Role.RECONCILER)
    sqs = world.account.client("sqs")
    world.declare(mode="Repair", queues=QUEUES)
    with world.replica() as replica:
        world.wait_for("Ready", "False", "ServicesUnreachable")
        assert world.condition("Stalled") == ("False", "Progressing")
        for name in ("one.fifo", "two.fifo", "three"):
            fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
            sqs.create_queue(QueueName=name, Attributes=fifo)
        world.account.client("s3").create_bucket(Bucket=world.bucket)
        world.wait_for("Ready", "True", "InOrder")
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="two.fifo")["QueueUrl"])
        world.wait_for("Ready", "False", "ServicesUnreachable")
        sqs.create_queue(QueueName="two.fifo", Attributes={"FifoQueue": "true"})
        world.wait_for("Ready", "True", "InOrder")
        assert replica.process.poll() is None


def test_a_queue_that_is_gone_is_made_again(world: Cluster) -> None:
    """Where queues may be made nobody has to notice; and queues and bucket that do not answer are a condition."""
    sqs = world.account.client("sqs")
    with gate(int(world.account.endpoint.rpartition(":")[2])) as way:
        world.secrets(Role.RECONCILER)
        there = f"http://127.0.0.1:{way.port}"
        keys = {"AWS_ACCESS_KEY_ID": world.account.account, "AWS_SECRET_ACCESS_KEY": "embedded"}
        world.kubernetes.secret("queues", {**keys, "AWS_ENDPOINT_URL_SQS": there, "AWS_ENDPOINT_URL_S3": there})
        world.declare(mode="Repair")
        with world.replica() as replica:
            world.wait_for("Ready", "True", "InOrder")
            (url,) = sqs.list_queues(QueueNamePrefix="baton-registrar.fifo")["QueueUrls"]
            sqs.delete_queue(QueueUrl=url)
            wait_until(
                lambda: sqs.list_queues(QueueNamePrefix="baton-registrar.fifo").get("QueueUrls"),
                PATIENCE,
                what="the queue",
            )
            way.shut()
            world.wait_for("Ready", "False", "ServicesUnreachable")
            loop = broken(world, 2)
            wait_until(partial(repaired, loop, 2), PATIENCE, what="the repairs, which need the database alone")
            way.open()
            world.wait_for("Ready", "True", "InOrder")
            assert replica.process.poll() is None
