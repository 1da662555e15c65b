"""The resource that an installation asks for is made by the operator, and belongs to people from then on."""

import json

import pytest

from baton.db.access import Role
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.resources import RECONCILERS
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def asked(**spec: object) -> dict[str, str]:
    """The variable that asks for it."""
    wanted: dict[str, object] = {
        "database": {"secretRef": {"name": "database"}},
        "aws": {"region": "us-east-1", "secretRef": {"name": "queues"}},
        "interval": "1s",
    }
    return {"BATON_OPERATOR_DEFAULT_RECONCILER": json.dumps({"name": "default", "spec": {**wanted, **spec}})}


def test_it_is_made_and_brought_to_what_is_asked(world: Cluster) -> None:
    """At the first start it is made, and worked for; at a later one what was asked for otherwise is changed."""
    world.secrets(Role.OBSERVER)
    with world.replica("one", **asked(bucket="one-bucket")) as replica:
        wait_until(lambda: world.kubernetes.read(RECONCILERS, "default"), PATIENCE, what="the resource")
        assert world.kubernetes.read(RECONCILERS, "default")["spec"]["mode"] == "Observe"
        assert replica.end() == 0
    with world.replica("two", **asked(bucket="two-buckets")):
        wait_until(
            lambda: world.kubernetes.read(RECONCILERS, "default")["spec"]["bucket"] == "two-buckets",
            PATIENCE,
            what="the change",
        )


def test_what_somebody_set_in_it_stays(world: Cluster) -> None:
    """A value that a person changed is not taken back by a restart; what nobody touched neither."""
    world.secrets(Role.OBSERVER)
    with world.replica("one", **asked(mode="Observe")) as replica:
        wait_until(lambda: world.kubernetes.read(RECONCILERS, "default"), PATIENCE, what="the resource")
        replica.end()
    world.change({"mode": "Repair", "suspend": {"reason": "a person says so"}}, "default")
    with world.replica("two", **asked(mode="Observe")) as replica:
        wait_until(lambda: "they stay" in replica.told(), PATIENCE, what="the operator to see it")
        spec = world.kubernetes.read(RECONCILERS, "default")["spec"]
        assert (spec["mode"], spec["suspend"]["reason"]) == ("Repair", "a person says so")


def test_a_deleted_one_comes_back_with_the_next_start_alone(world: Cluster) -> None:
    """While the operator runs, who deleted it is right."""
    world.secrets(Role.OBSERVER)
    with world.replica("one", **asked()) as replica:
        wait_until(lambda: world.kubernetes.read(RECONCILERS, "default"), PATIENCE, what="the resource")
        world.kubernetes.http.delete(world.kubernetes.path(RECONCILERS, "default")).raise_for_status()
        world.declare("other")
        world.wait_for("Ready", "True", "InOrder", name="other")
        assert world.kubernetes.read(RECONCILERS, "default") is None
        replica.end()
    with world.replica("two", **asked()):
        wait_until(lambda: world.kubernetes.read(RECONCILERS, "default"), PATIENCE, what="the resource")


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', '{"name": "", "spec": {}}', '{"name": "x", "spec": []}'])
def test_what_cannot_be_one_ends_the_operator_at_its_start(world: Cluster, text: str) -> None:
    """With the variable's name, and the exit code of wrong settings."""
    with world.replica("one", BATON_OPERATOR_DEFAULT_RECONCILER=text) as replica:
        assert replica.process.wait(60) == 2
        assert "BATON_OPERATOR_DEFAULT_RECONCILER" in replica.told()
