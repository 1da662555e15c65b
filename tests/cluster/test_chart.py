"""The chart on a real API server: every object is accepted, with the definitions of the Prometheus operator and KEDA there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.bed.asking import CRDS, Kubernetes
from cluster.bed.neighbours import definitions
from cluster.resources import RECONCILERS, REDRIVES
from support.charts.places import CHART, ci_files
from support.charts.rendering import NAMESPACE, Helm, Object, helm, of_kind, pods, variables
from support.charts.runbooks import commands, pages
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SMALL = CHART / "ci" / "small.yaml"


@pytest.fixture(scope="module")
def charts() -> Helm:
    """Helm."""
    return helm()


@pytest.fixture(scope="module")
def neighbours(served: Kubernetes) -> Iterator[Kubernetes]:
    """A cluster that knows its neighbours' kinds, with a namespace that enforces the restricted standard."""
    given = [argument for file in definitions() for argument in ("--filename", file)]
    served.kubectl("apply", "--server-side", *given)
    served.kubectl("wait", "--for=condition=Established", "--timeout=60s", *given)
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    body = {"metadata": {"name": NAMESPACE, "labels": levels}}
    served.http.post("/api/v1/namespaces", json=body).raise_for_status()
    inside = served.inside(NAMESPACE)
    # without a controller-manager nobody makes the account of a namespace, and the server checks none in a dry run
    inside.kubectl("create", "serviceaccount", "default")
    yield inside
    served.http.delete(f"/api/v1/namespaces/{NAMESPACE}").raise_for_status()
    served.kubectl("delete", "--ignore-not-found", *given)


def accepted(kubernetes: Kubernetes, objects: list[Object]) -> str:
    """What the API server says to objects that it would take, each field known."""
    body = {"apiVersion": "v1", "kind": "List", "items": objects}
    arguments = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename=-")
    return kubernetes.kubectl("apply", *arguments, given=body)


@pytest.mark.parametrize("file", ci_files(), ids=lambda file: file.stem)
def test_every_object_is_accepted(charts: Helm, neighbours: Kubernetes, file: Path) -> None:
    """Without a warning of the restricted pod security standard, and so is the resource that the operator would make."""
    objects = charts.render(file, version="1.36.3")
    # the account of a pod is looked for, and a dry run makes none
    without_account = [each for each in objects if each["kind"] != "Pod"]
    told = accepted(neighbours, without_account)
    assert told.count("serverside-applied") == len(without_account)
    assert "Warning" not in told
    (test,) = of_kind(objects, "Pod")
    assert "pod/" in accepted(neighbours, [test])
    for pod in pods(objects).values():
        wanted = variables(pod).get("BATON_OPERATOR_DEFAULT_RECONCILER") if "env" in pod["containers"][0] else None
        if wanted is not None:
            name, spec = json.loads(wanted)["name"], json.loads(wanted)["spec"]
            body = {
                "apiVersion": "baton.pramaan.dev/v1alpha1",
                "kind": "RegistrationReconciler",
                "metadata": {"name": name},
                "spec": spec,
            }
            answer = neighbours.create(RECONCILERS, body, dry_run=True)
            assert answer.status_code == 201, answer.text


def test_a_release_is_installed_upgraded_and_taken_away(charts: Helm, neighbours: Kubernetes) -> None:
    """By Helm itself. The definitions stay, and nothing else; no controller runs here, so that hooks are left out."""
    place = (f"--kubeconfig={neighbours.kubeconfig}", f"--namespace={NAMESPACE}")
    values = (f"--values={SMALL}", "--set=migration.enabled=false")
    charts("install", "baton", str(CHART), *place, *values, "--take-ownership")
    selector = "--selector=app.kubernetes.io/instance=baton"
    kinds = "deployments,services,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets"
    assert "deployment.apps/baton-settler" in neighbours.kubectl("get", kinds, selector, "--output=name")
    charts("upgrade", "baton", str(CHART), *place, *values, "--set=extractor.replicas=3")
    found = neighbours.kubectl("get", "deployment", "baton-extractor", "--output=jsonpath={.spec.replicas}")
    assert found == "3"
    charts("rollback", "baton", "1", *place)
    found = neighbours.kubectl("get", "deployment", "baton-extractor", "--output=jsonpath={.spec.replicas}")
    assert found == "1"
    charts("uninstall", "baton", *place)
    assert neighbours.kubectl("get", kinds, selector, "--output=name").strip() in ("", "No resources found")
    for file in sorted(CRDS.glob("*.yaml")):
        neighbours.kubectl("get", "crd", yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"])


def test_a_redrive_is_asked_for_in_ones_own_name(charts: Helm, neighbours: Kubernetes) -> None:
    """The policy refuses another's with a sentence that names both, and lets one's own through."""
    policy = of_kind(
        charts.render(CHART / "ci" / "production.yaml"),
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
    neighbours.kubectl("apply", "--filename=-", given={"apiVersion": "v1", "kind": "List", "items": policy})
    who = json.loads(neighbours.kubectl("auth", "whoami", "--output=json"))["status"]["userInfo"]["username"]

    def ask(name: str) -> tuple[int, str]:
        spec = {
            "reconcilerRef": {"name": "default"},
            "selector": {"registration": ["registration_failed"]},
            "reason": "a trial",
            "requestedBy": name,
        }
        body = {
            "apiVersion": "baton.pramaan.dev/v1alpha1",
            "kind": "RegistrationRedrive",
            "metadata": {"name": "trial"},
            "spec": spec,
        }
        answer = neighbours.create(REDRIVES, body, dry_run=True)
        return answer.status_code, answer.text

    try:
        # a policy takes effect a moment after it was made
        wait_until(lambda: ask("somebody-else")[0] == 403, 60, interval=0.2, what="the policy")
        refused = ask("somebody-else")[1]
        assert "somebody-else" in refused
        assert who in refused
        assert ask(who)[0] == 201
    finally:
        neighbours.kubectl("delete", "--filename=-", given={"apiVersion": "v1", "kind": "List", "items": policy})


def test_the_runbooks_commands_are_understood(charts: Helm, neighbours: Kubernetes) -> None:
    """Every one of kubectl's that looks or changes something, against a release and its resource; logs need pods."""
    objects = [each for each in charts.render(SMALL, version="1.36.3") if each["kind"] in ("Deployment", "Job")]
    body = {"apiVersion": "v1", "kind": "List", "items": objects}
    neighbours.kubectl("apply", "--server-side", "--filename=-", given=body)
    resource = {
        "apiVersion": "baton.pramaan.dev/v1alpha1",
        "kind": "RegistrationReconciler",
        "metadata": {"name": "default"},
        "spec": {"database": {"secretRef": {"name": "db"}}},
    }
    neighbours.create(RECONCILERS, resource).raise_for_status()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "baton-operator"}}
    neighbours.kubectl("apply", "--filename=-", given=lease)
    # each of them once: a deployment is not restarted twice within a second
    named = dict.fromkeys(tuple(words) for page in pages() for words in commands(page))
    ours = [words for words in named if words[0] == "kubectl" and words[1] != "baton"]
    assert len(ours) > 20
    for words in ours:
        # the namespace is the test's own
        neighbours.kubectl(*words[3:])
    neighbours.http.delete(neighbours.path(RECONCILERS, "default")).raise_for_status()
    neighbours.kubectl("delete", "--filename=-", "--ignore-not-found", given=body)
