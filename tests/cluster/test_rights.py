"""What the operator may do is what it needs: with its service account's own token, and with each verb taken away."""

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from baton.db.access import Role
from baton.operator.access import Access
from baton.operator.api import Api, ApiConflict, ApiMissing, ApiRefused
from baton.operator.vocabulary import Plural
from baton.settings.secret import Secret
from cluster.bed.asking import Kubernetes
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.bed.servers import write_kubeconfig
from cluster.resources import REDRIVES, redrive
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

RIGHTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((Path(__file__).parents[2] / "operator" / "rbac.yaml").read_text(encoding="utf-8"))
)
EVERYWHERE: list[dict[str, Any]] = list(
    yaml.safe_load_all((Path(__file__).parents[2] / "operator" / "rbac-cluster.yaml").read_text(encoding="utf-8"))
)
ROLE = next(each for each in RIGHTS if each["kind"] == "Role")
#: All but the watch, which is kopf's: the operator that works with these rights alone shows it.
VERBS = [
    (number, verb, f"{verb} {rule['resources'][0]}")
    for number, rule in enumerate(ROLE["rules"])
    for verb in rule["verbs"]
    if verb != "watch"
]


EVENT: dict[str, Any] = {
    "eventTime": "2030-01-31T12:00:00.000000Z",
    "reportingController": "tests",
    "reportingInstance": "one",
    "action": "Look",
    "reason": "Looked",
    "type": "Normal",
}


def grant(kubernetes: Kubernetes, role: dict[str, Any] = ROLE) -> str:
    """Give the rights to a service account of the namespace; returns its token."""
    for each in RIGHTS:
        body = copy.deepcopy(role if each["kind"] == "Role" else each)
        if each["kind"] == "RoleBinding":
            body["subjects"][0]["namespace"] = kubernetes.namespace
        kubernetes.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", given=body)
    return kubernetes.kubectl("create", "token", "baton-operator").strip()


def grant_everywhere(kubernetes: Kubernetes, cluster_role: dict[str, Any] | None = None) -> str:
    """Give the rights on the whole cluster, under names of the test's own; returns the token."""
    changed = {} if cluster_role is None else {cluster_role["metadata"]["name"]: cluster_role}
    for each in EVERYWHERE:
        body = copy.deepcopy(changed.get(each["metadata"]["name"], each) if each["kind"] == "ClusterRole" else each)
        if each["kind"].startswith("Cluster"):
            body["metadata"]["name"] += f"-{kubernetes.namespace}"
        if each["kind"] == "ClusterRoleBinding":
            body["roleRef"]["name"] += f"-{kubernetes.namespace}"
        for subject in body.get("subjects", ()):
            subject["namespace"] = kubernetes.namespace
        kubernetes.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", given=body)
    return kubernetes.kubectl("create", "token", "baton-operator").strip()


@pytest.fixture
def everywhere(kubernetes: Kubernetes) -> Iterator[Kubernetes]:
    """A cluster whose roles are taken away in the end."""
    yield kubernetes
    for each in EVERYWHERE:
        if each["kind"].startswith("Cluster"):
            name = f"{each['metadata']['name']}-{kubernetes.namespace}"
            kubernetes.kubectl("delete", each["kind"].lower(), name, "--ignore-not-found")


def without(number: int, verb: str, role: dict[str, Any] = ROLE) -> dict[str, Any]:
    """The role without one verb of one rule."""
    role = copy.deepcopy(role)
    verbs = role["rules"][number]["verbs"]
    verbs.remove(verb)
    if not verbs:
        del role["rules"][number]
    return role


def use_everything(api: Api, namespace: str, *, cluster_wide: bool = False) -> None:
    """Every call that the operator makes, but for the watch, which is kopf's."""
    for plural, name, status in (
        (Plural.RECONCILERS, "main", {"found": 1}),
        (Plural.REDRIVES, "once", {"redriven": 1}),
    ):
        listed = api.resources(plural, None if cluster_wide else namespace)
        (found,) = [each for each in listed if each["metadata"]["namespace"] == namespace]
        api.resource(plural, namespace, name)
        version = found["metadata"]["resourceVersion"]
        found = api.write_status(plural, namespace, name, status=status, version=version)
    with suppress(ApiConflict):  # it is meant to stay
        api.delete(Plural.REDRIVES, namespace, "once", uid="another", version="0")
    api.secret(namespace, "database")
    about = {"kind": "Namespace", "name": namespace, "namespace": namespace}
    metadata = {"name": f"once.{uuid4().hex}", "namespace": namespace}
    api.create_event(namespace, EVENT | {"metadata": metadata, "regarding": about})
    try:
        lease = api.lease(namespace, "baton-operator")
    except ApiMissing:
        lease = api.create_lease(namespace, {"metadata": {"name": "baton-operator"}, "spec": {}})
    api.replace_lease(namespace, "baton-operator", lease)


def test_the_operator_works_with_these_rights_alone(world: Cluster) -> None:
    """Watch included: a change is seen though no list is due; and nothing is refused on the way."""
    world.secrets(Role.RECONCILER)
    file = world.folder / "operator.kubeconfig"
    access = world.kubernetes.access
    assert access.authority_file is not None
    write_kubeconfig(file, url=access.server, authority=Path(access.authority_file), token=grant(world.kubernetes))
    with world.replica(KUBECONFIG=str(file), BATON_OPERATOR_ROLL_CALL="1h") as replica:
        wait_until(lambda: "leads" in replica.told(), PATIENCE, what="the lease")
        world.declare(mode="Repair")
        world.wait_for("Ready", "True", "InOrder")
        world.change({"suspend": {"reason": "moving house"}})
        world.wait_for("Suspended", "True", "Suspended")
        world.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
        wait_until(lambda: not world.matter.count("ops.owner"), PATIENCE, what="the database, let go")
        assert replica.end() == 0
        assert "403" not in replica.told()
        assert "orbidden" not in replica.told()


@pytest.mark.parametrize(("number", "verb"), [each[:2] for each in VERBS], ids=[each[2] for each in VERBS])
def test_each_right_is_needed(world: Cluster, number: int, verb: str) -> None:
    """With one verb less something is refused."""
    kubernetes = world.kubernetes
    world.secrets(Role.OBSERVER)
    world.declare()
    kubernetes.create(REDRIVES, redrive()).raise_for_status()
    account = Access(
        server=kubernetes.access.server,
        namespace=kubernetes.namespace,
        authority_file=kubernetes.access.authority_file,
        fixed_token=Secret(grant(kubernetes, without(number, verb))),
    )
    api = Api(account)
    try:
        with pytest.raises(ApiRefused, match="403"):
            use_everything(api, kubernetes.namespace)
        grant(kubernetes)
        wait_until(lambda: not refused(api, kubernetes.namespace), PATIENCE, what="the rights")
    finally:
        api.close()


def refused(api: Api, namespace: str, *, cluster_wide: bool = False) -> bool:
    """Whether one of the calls is refused."""
    try:
        use_everything(api, namespace, cluster_wide=cluster_wide)
    except ApiRefused as error:
        if "403" not in str(error):
            raise
        return True
    return False


def test_one_operator_works_for_every_namespace(world: Cluster, everywhere: Kubernetes) -> None:
    """With its own token and those rights alone: a resource of another namespace, watched, healed, written, let go."""
    mine, beside = world.kubernetes, f"{world.kubernetes.namespace}-b"
    mine.http.post("/api/v1/namespaces", json={"metadata": {"name": beside}}).raise_for_status()
    there = replace(world, kubernetes=mine.inside(beside))
    there.secrets(Role.RECONCILER)
    file = world.folder / "operator.kubeconfig"
    assert mine.access.authority_file is not None
    authority = Path(mine.access.authority_file)
    write_kubeconfig(file, url=mine.access.server, authority=authority, token=grant_everywhere(everywhere))
    more = {"KUBECONFIG": str(file), "BATON_OPERATOR_ROLL_CALL": "1h", "BATON_OPERATOR_CLUSTER_WIDE": "true"}
    try:
        with world.replica(**more) as replica:
            wait_until(lambda: "leads" in replica.told(), PATIENCE, what="the lease")
            there.declare(mode="Repair")
            there.wait_for("Ready", "True", "InOrder")
            there.change({"suspend": {"reason": "moving house"}})
            there.wait_for("Suspended", "True", "Suspended")
            there.kubernetes.create(REDRIVES, redrive(dryRun=True)).raise_for_status()
            there.kubernetes.kubectl("wait", "--for=condition=Ready", "redrive/once", f"--timeout={PATIENCE}s")
            assert mine.kubectl("get", "lease", "baton-operator", "--output", "name").strip()
            there.kubernetes.kubectl("delete", "regrec", "main", "--timeout=5s")
            wait_until(lambda: not world.matter.count("ops.owner"), PATIENCE, what="the database, let go")
            assert replica.end() == 0
            assert "403" not in replica.told()
            assert "orbidden" not in replica.told()
    finally:
        for plural in Plural:
            there.kubernetes.http.delete(there.kubernetes.path(plural)).raise_for_status()
        mine.http.delete(f"/api/v1/namespaces/{beside}").raise_for_status()


def test_each_right_on_the_whole_cluster_is_needed(world: Cluster, everywhere: Kubernetes) -> None:
    """With one verb less something is refused; the Lease's are those of one namespace, tried above."""
    kubernetes = world.kubernetes
    world.secrets(Role.OBSERVER)
    world.declare()
    kubernetes.create(REDRIVES, redrive()).raise_for_status()
    access = replace(kubernetes.access, fixed_token=Secret(grant_everywhere(everywhere)))
    api = Api(access)
    try:
        for role in (each for each in EVERYWHERE if each["kind"] == "ClusterRole"):
            for number, rule in enumerate(role["rules"]):
                for verb in rule["verbs"]:
                    if verb == "watch":
                        continue
                    grant_everywhere(everywhere, without(number, verb, role))
                    what = f"a refusal without {verb} of {rule['resources'][0]}"
                    wait_until(lambda: refused(api, kubernetes.namespace, cluster_wide=True), PATIENCE, what=what)
                    grant_everywhere(everywhere)
                    wait_until(lambda: not refused(api, kubernetes.namespace, cluster_wide=True), PATIENCE, what="all")
    finally:
        api.close()
