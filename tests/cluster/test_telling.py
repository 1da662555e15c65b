"""What the operator tells besides statuses: events, metrics, probes; and never a secret."""

import json
from typing import Any

import httpx
import pytest

from baton.db.access import Role
from baton.embedded.ports import free_port
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.resources import REDRIVES, redrive
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def events(world: Cluster, kind: str = "RegistrationReconciler") -> list[dict[str, Any]]:
    """What was said of one kind of resources."""
    path = f"/apis/events.k8s.io/v1/namespaces/{world.kubernetes.namespace}/events"
    found = world.kubernetes.http.get(path).raise_for_status().json()["items"]
    return [each for each in found if each["regarding"]["kind"] == kind]


def reasons(world: Cluster, kind: str = "RegistrationReconciler") -> list[tuple[str, str]]:
    """Types and reasons, in the order in which they were said."""
    found = sorted(events(world, kind), key=lambda each: each["eventTime"])
    return [(each["type"], each["reason"]) for each in found]


def test_a_transition_is_an_event_and_nothing_else_is(world: Cluster) -> None:
    """Once each, Normal or Warning, as `kubectl describe` shows them; after a restart none is said again."""
    world.kubernetes.secret("database", {"DATABASE_URL": "postgresql://baton:hunter2@127.0.0.1:9/x"})
    world.declare(mode="Repair", aws={})
    with world.replica() as replica:
        wait_until(lambda: ("Warning", "DatabaseUnreachable") in reasons(world), PATIENCE, what="the warning")
        world.secrets(Role.RECONCILER)
        world.change({"aws": {"region": "us-east-1", "secretRef": {"name": "queues"}}})
        wait_until(lambda: ("Normal", "InOrder") in reasons(world), PATIENCE, what="the end of it")
        world.change({"suspend": {"reason": "moving house"}})
        wait_until(lambda: ("Normal", "Suspended") in reasons(world), PATIENCE, what="the suspension")
        uid = world.kubernetes.read("registrationreconcilers", "main")["metadata"]["uid"]
        assert {each["regarding"]["uid"] for each in events(world)} == {uid}
        assert all(each["reportingController"] == "baton.pramaan.dev/operator" for each in events(world))
        seen = reasons(world)
        assert len(seen) == len(set(seen))
        described = world.kubernetes.kubectl("describe", "regrec", "main")
        assert "DatabaseUnreachable" in described.partition("Events:")[2]
        assert replica.end() == 0
    with world.replica("two"):
        world.kubernetes.kubectl("annotate", "regrec", "main", "baton.pramaan.dev/reconcile-at=again")
        wait_until(lambda: world.status().get("lastHandledReconcileAt") == "again", PATIENCE, what="a pass")
        world.change({"suspend": None})
        wait_until(lambda: ("Normal", "NotSuspended") in reasons(world), PATIENCE, what="the next event")
        assert [each for each in reasons(world) if each != ("Normal", "NotSuspended")] == seen
    assert "hunter2" not in json.dumps(events(world))


def test_a_redrive_s_end_is_an_event(world: Cluster) -> None:
    """Beside its conditions."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    with world.replica():
        world.wait_for("Ready", "True", "InOrder")
        selector = {"registration": ["registration_failed"]}
        world.kubernetes.create(REDRIVES, redrive(selector=selector)).raise_for_status()
        said = ("Normal", "Finished")
        wait_until(lambda: said in reasons(world, "RegistrationRedrive"), PATIENCE, what="the event")


def test_each_resource_has_its_metrics_and_takes_them_along(world: Cluster) -> None:
    """And the process is ready once each first pass was made, or its failure said; one that cannot pass is no dead process."""
    world.secrets(Role.RECONCILER)
    Loop(world.matter).erase_request(Loop(world.matter).queued()[0])
    world.declare(mode="Repair")
    world.declare("astray", database={"secretRef": {"name": "nowhere"}})
    port = free_port()
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10)

    def shown() -> list[str]:
        return client.get("/metrics").text.splitlines()

    def value(name: str, resource: str, **labels: str) -> float | None:
        wanted = {"namespace": world.kubernetes.namespace, "name": resource, **labels}
        for line in shown():
            if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in wanted.items()):
                return float(line.rpartition(" ")[2])
        return None

    def ready() -> bool:
        try:
            return client.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    with client, world.replica(BATON_HEALTH_PORT=str(port)):
        wait_until(ready, PATIENCE, what="readiness")
        assert client.get("/livez").status_code == 200
        world.wait_for("Stalled", "True", "SecretMissing", name="astray")
        world.wait_for("Ready", "True", "InOrder")
        details = client.get("/readyz").json()["details"]
        assert details[f"loop {world.kubernetes.namespace}/astray"] == "does not pass: SecretMissing"
        assert details[f"loop {world.kubernetes.namespace}/main"] == "passes"
        assert value("pramaan_operator_resource_ready", "main") == 1
        assert value("pramaan_operator_resource_ready", "astray") == 0
        assert value("pramaan_operator_resource_stalled", "astray") == 1
        assert value("pramaan_documents", "main", status="queued") == 1
        assert value("pramaan_reconcile_discrepancies", "main", discrepancy="request_ticket_missing") == 0
        assert "pramaan_operator_leads 1.0" in shown()
        world.change({"suspend": {"reason": "moving house"}})
        wait_until(lambda: value("pramaan_reconcile_repairs_held", "main") == 1, PATIENCE, what="the level")
        world.kubernetes.kubectl("delete", "regrec", "main", "astray", "--timeout=5s")
        mark = f'namespace="{world.kubernetes.namespace}"'
        wait_until(lambda: not any(mark in line for line in shown()), PATIENCE, what="their end")
        assert client.get("/readyz").status_code == 200


def test_what_a_resource_left_that_was_deleted_meanwhile_is_taken_back(world: Cluster) -> None:
    """While no operator ran: the next one on its database neither waits for its lapse nor stays suspended by it."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair", suspend={"reason": "moving house"})
    with world.replica() as replica:
        world.wait_for("Suspended", "True", "Suspended")
        replica.process.kill()
        replica.process.wait(PATIENCE)
    world.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
    assert world.matter.count("ops.owner") == 1
    # of another installation, on the same database: nobody here knows whether it is still there
    world.matter.prepare(
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES"
        " (gen_random_uuid(), 'suspension', 'theirs', 'far/away 0198c0de-0000-7000-8000-000000000001')"
    )
    world.declare("second", mode="Repair")
    with world.replica("two"):
        world.wait_for("Ready", "True", "InOrder", name="second")
        assert world.condition("Suspended", "second") == ("True", "Suspended")
        left = world.matter.rows("SELECT reason FROM ops.maintenance WHERE lifted_at IS NULL")
        assert [row.reason for row in left] == ["theirs"]
        world.matter.prepare("UPDATE ops.maintenance SET lifted_at = app.clock()")
        world.wait_for("Suspended", "False", "NotSuspended", name="second")
