"""What the operator may do is what it needs: with its service account's own token, and with each verb taken away."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from baton.db.access import Role
from baton.operator.api import Api, ApiConflict, ApiRefused
from baton.operator.vocabulary import GROUP, VERSION, Plural
from baton.settings.secret import Secret
from cluster.bed.asking import Kubernetes
from cluster.bed.people import rights
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.bed.servers import write_kubeconfig
from cluster.resources import REDRIVES, redrive
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

#: By file: what the operator may do in its namespace; in every namespace; and what its read-only API needs besides.
RIGHTS, EVERYWHERE, READING = (rights(name) for name in ("rbac.yaml", "rbac-cluster.yaml", "rbac-reading.yaml"))

EVENT: dict[str, Any] = {
    "eventTime": "2030-01-31T12:00:00.000000Z",
    "reportingController": "tests",
    "reportingInstance": "one",
    "action": "Look",
    "reason": "Looked",
    "type": "Normal",
}

LEASE = "baton-operator"

Call = Callable[[], object]


def grant(kubernetes: Kubernetes, objects: list[dict[str, Any]]) -> None:
    """Give rights to the operator's service account of the namespace; what reaches the whole cluster carries its name."""
    for each in objects:
        body = copy.deepcopy(each)
        if each["kind"].startswith("Cluster"):
            body["metadata"]["name"] += f"-{kubernetes.namespace}"
        if each["kind"] == "ClusterRoleBinding":
            body["roleRef"]["name"] += f"-{kubernetes.namespace}"
        for subject in body.get("subjects", ()):
            subject["namespace"] = kubernetes.namespace
        kubernetes.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", given=body)


def granted(kubernetes: Kubernetes, objects: list[dict[str, Any]]) -> str:
    """The same; returns the account's token."""
    grant(kubernetes, objects)
    return kubernetes.kubectl("create", "token", "baton-operator").strip()


@pytest.fixture
def everywhere(kubernetes: Kubernetes) -> Iterator[Kubernetes]:
    """A cluster whose roles are taken away in the end."""
    yield kubernetes
    for each in (*EVERYWHERE, *READING):
        if each["kind"].startswith("Cluster"):
            name = f"{each['metadata']['name']}-{kubernetes.namespace}"
            kubernetes.kubectl("delete", each["kind"].lower(), name, "--ignore-not-found")


def each_less(objects: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The right that is missing, and its role without it; of every role in turn."""
    for body in objects:
        for number, rule in enumerate(body.get("rules", ())):
            for verb in rule["verbs"]:
                less = copy.deepcopy(body)
                less["rules"][number]["verbs"].remove(verb)
                less["rules"] = [each for each in less["rules"] if each["verbs"]]
                yield f"{verb} {rule['resources'][0]}", [less]


def calls(api: Api, world: Cluster, *, cluster_wide: bool = False) -> dict[str, Call]:
    """Every call that the operator makes, by the right that it needs."""
    kubernetes, namespace = world.kubernetes, world.kubernetes.namespace
    listed = None if cluster_wide else namespace
    about = {"kind": "Namespace", "name": namespace, "namespace": namespace}
    found: dict[str, Call] = {
        "get secrets": lambda: api.secret(namespace, "database"),
        "create events": lambda: api.create_event(
            namespace,
            EVENT | {"metadata": {"name": f"once.{uuid4().hex}", "namespace": namespace}, "regarding": about},
        ),
        "create leases": lambda: api.create_lease(namespace, {"metadata": {"name": LEASE}, "spec": {}}),
        "get leases": lambda: api.lease(namespace, LEASE),
        "update leases": lambda: api.replace_lease(namespace, LEASE, lease(kubernetes)),
        "delete registrationredrives": lambda: api.delete(
            Plural.REDRIVES, namespace, "once", uid="another", version="0"
        ),
    }
    for plural, name, status in (
        (Plural.RECONCILERS, "main", {"found": 1}),
        (Plural.REDRIVES, "once", {"redriven": 1}),
    ):
        found |= {
            f"list {plural}": partial(api.resources, plural, listed),
            f"watch {plural}": partial(watch, api, plural, listed),
            f"get {plural}": partial(api.resource, plural, namespace, name),
            f"patch {plural}/status": partial(write, api, kubernetes, plural, name, status),
        }
    return found


def watch(api: Api, plural: Plural, namespace: str | None) -> None:
    """Open a watch as kopf does, and close it."""
    place = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/{GROUP}/{VERSION}{place}/{plural}?watch=true&timeoutSeconds=60"
    access = api._access
    headers = {"Authorization": f"Bearer {access.token()}"}
    with httpx.stream("GET", access.server + path, headers=headers, verify=access.tls(), timeout=30) as answer:
        if answer.status_code == 403:
            raise ApiRefused("403")
        assert answer.status_code == 200


def lease(kubernetes: Kubernetes) -> dict[str, Any]:
    """The Lease as it stands."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{kubernetes.namespace}/leases/{LEASE}"
    found: dict[str, Any] = kubernetes.http.get(path).raise_for_status().json()
    return found


def write(api: Api, kubernetes: Kubernetes, plural: Plural, name: str, status: dict[str, Any]) -> None:
    """Write a status onto the resource as it stands."""
    version = kubernetes.read(plural, name)["metadata"]["resourceVersion"]
    api.write_status(plural, kubernetes.namespace, name, status=status, version=version)


def refused(made: dict[str, Call]) -> set[str]:
    """The rights that are missing, by the calls that are refused."""
    missing = set()
    for name, call in made.items():
        try:
            with suppress(ApiConflict):  # it is there already, or another one
                call()
        except ApiRefused as error:
            if "403" not in str(error):
                raise
            missing.add(name)
    return missing


def only(made: dict[str, Call], missing: str) -> bool:
    """Whether that right is missing, and no other."""
    return refused(made) == {missing}


def see_each_refused(kubernetes: Kubernetes, objects: list[dict[str, Any]], made: dict[str, Call]) -> set[str]:
    """Take each right away in turn: its call alone is refused. Returns the rights that were tried."""
    wait_until(lambda: not refused(made), PATIENCE, what="all rights")
    tried = set()
    for missing, less in each_less(objects):
        if missing not in made:
            continue
        grant(kubernetes, less)
        wait_until(partial(only, made, missing), PATIENCE, what=f"a refusal without {missing}")
        grant(kubernetes, [each for each in objects if each["metadata"] == less[0]["metadata"]])
        wait_until(lambda: not refused(made), PATIENCE, what=f"all rights after {missing}")
        tried.add(missing)
    return tried


def test_the_operator_works_with_these_rights_alone(world: Cluster) -> None:
    """Watch included: a change is seen though no list is due; and nothing is refused on the way."""
    world.secrets(Role.RECONCILER)
    file = world.folder / "operator.kubeconfig"
    access = world.kubernetes.access
    assert access.authority_file is not None
    write_kubeconfig(
        file, url=access.server, authority=Path(access.authority_file), token=granted(world.kubernetes, RIGHTS)
    )
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


@pytest.fixture
def declared(world: Cluster) -> Cluster:
    """With a resource of each kind, and the Lease."""
    world.secrets(Role.OBSERVER)
    world.declare()
    world.kubernetes.create(REDRIVES, redrive()).raise_for_status()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{world.kubernetes.namespace}/leases"
    world.kubernetes.http.post(path, json={"metadata": {"name": LEASE}}).raise_for_status()
    return world


@contextmanager
def asking(world: Cluster, objects: list[dict[str, Any]]) -> Iterator[Api]:
    """By the operator's own token, with these rights."""
    api = Api(replace(world.kubernetes.access, fixed_token=Secret(granted(world.kubernetes, objects))))
    try:
        yield api
    finally:
        api.close()


def test_each_right_is_needed(declared: Cluster) -> None:
    """With one verb less one call is refused, and no other."""
    with asking(declared, RIGHTS) as api:
        made = calls(api, declared)
        assert see_each_refused(declared.kubernetes, RIGHTS, made) == set(made)


def test_one_operator_works_for_every_namespace(world: Cluster, everywhere: Kubernetes) -> None:
    """With its own token and those rights alone: a resource of another namespace, watched, healed, written, let go."""
    mine, file = world.kubernetes, world.folder / "operator.kubeconfig"
    assert mine.access.authority_file is not None
    authority = Path(mine.access.authority_file)
    write_kubeconfig(file, url=mine.access.server, authority=authority, token=granted(everywhere, EVERYWHERE))
    more = {"KUBECONFIG": str(file), "BATON_OPERATOR_ROLL_CALL": "1h", "BATON_OPERATOR_CLUSTER_WIDE": "true"}
    with world.beside() as there, world.replica(**more) as replica:
        wait_until(lambda: "leads" in replica.told(), PATIENCE, what="the lease")
        there.secrets(Role.RECONCILER)
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


def test_each_right_on_the_whole_cluster_is_needed(declared: Cluster, everywhere: Kubernetes) -> None:
    """The same of the rights that reach every namespace; the Lease's are those of one."""
    with asking(declared, EVERYWHERE) as api:
        made = calls(api, declared, cluster_wide=True)
        assert see_each_refused(everywhere, EVERYWHERE, made) == set(made)


def test_each_right_of_the_read_only_api_is_needed(declared: Cluster, everywhere: Kubernetes) -> None:
    """The two reviews: of who asks, and of what they may."""
    namespace = declared.kubernetes.namespace
    with asking(declared, [*RIGHTS, *READING]) as api:
        made: dict[str, Call] = {
            "create tokenreviews": lambda: api.review_token(Secret("nobody-s")),
            "create localsubjectaccessreviews": lambda: api.review_access(
                namespace, name="main", subresource="plan", user={"user": "nobody"}
            ),
        }
        assert see_each_refused(everywhere, READING, made) == set(made)
