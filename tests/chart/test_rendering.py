"""What Helm makes of the chart."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import utils as schemas

from baton.operator.vocabulary import OPERATOR_LABELS
from baton.settings.loading import load
from support.charts.generate import alert_names
from support.charts.places import ALERTS, CHART, REPOSITORY, ci_files
from support.charts.rendering import NAMESPACE, Helm, Object, Refused, named, of_kind, pods, variables

pytestmark = pytest.mark.chart

SMALL = CHART / "ci" / "small.yaml"
WORKLOADS = {"operator", "ingest-relay", "registrar-relay", "extractor", "registrar", "settler", "agent"}
CLUSTERWIDE = {
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
#: The versions of Kubernetes that the chart is made for.
VERSIONS = [f"1.{minor}.0" for minor in range(29, 38)]
#: Kinds of others, whose schemas only an API server with their definitions knows.
FOREIGN = ("monitoring.coreos.com/", "keda.sh/", "baton.pramaan.dev/")


@pytest.mark.parametrize("file", ci_files(), ids=lambda file: file.stem)
def test_every_file_of_values_renders_without_a_lint(charts: Helm, file: Path) -> None:
    """Each object once, in the release's namespace or in none."""
    charts("lint", "--strict", "--quiet", str(CHART), f"--values={file}", "--kube-version=1.37.0")
    objects = charts.render(file)
    seen = Counter((each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects)
    assert [each for each, count in seen.items() if count > 1] == []
    for each in objects:
        inside = each["metadata"].get("namespace") is not None
        assert inside != (each["kind"] in CLUSTERWIDE), each["metadata"]["name"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_in_every_version(charts: Helm, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the schemas that Kubernetes publishes, which take no unknown field."""
    # it reads megabytes anew for each object
    monkeypatch.setattr(schemas, "schema_contents", cache(schemas.schema_contents))
    monkeypatch.setattr(schemas, "all_versions", cache(schemas.all_versions))
    minor = version.rpartition(".")[0]
    for file in ci_files():
        values = {"admissionPolicy": {"enabled": False}} if minor == "1.29" else {}
        for each in charts.render(file, values=values, version=version):
            if not each["apiVersion"].startswith(FOREIGN):
                schemas.validate(each, minor, strict=True)


def test_each_workload_has_its_own_account_and_secret(small: list[Object]) -> None:
    """Nothing that one knows is known to another, but for the agent's token, which two share."""
    accounts = {name: pod["serviceAccountName"] for name, pod in pods(small).items() if name != "baton-test"}
    assert len(set(accounts.values())) == len(accounts) == len(WORKLOADS) + 1
    made = {each["metadata"]["name"] for each in of_kind(small, "ServiceAccount")}
    assert made == set(accounts.values())
    for name, pod in pods(small).items():
        asked = (
            {each["secretKeyRef"]["name"] for each in variables(pod).values() if isinstance(each, dict)}
            if name != "baton-test"
            else set()
        )
        assert asked <= {name}, name


def test_no_credential_stands_in_a_pod(everything: list[Object]) -> None:
    """Every secret value reaches its process by a reference to a secret."""
    text = json.dumps([pods(everything)])
    assert "postgresql://" not in text
    assert "a-token-of-a-trial" not in text
    assert "000000000001" not in text


@pytest.mark.parametrize("file", ci_files(), ids=lambda file: file.stem)
def test_every_pod_keeps_the_restricted_standard(charts: Helm, file: Path) -> None:
    """And a root that cannot be written, a limit of memory, and a token of the API server only where it is needed."""
    for name, pod in pods(charts.render(file)).items():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["enableServiceLinks"] is False
        assert pod.get("automountServiceAccountToken") is name.endswith("-operator"), name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        allowed = {"emptyDir", "configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim"}
        assert all(volume.keys() - {"name"} <= allowed for volume in pod.get("volumes", ()))
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("file", ci_files(), ids=lambda file: file.stem)
def test_every_process_can_read_the_settings_that_it_is_given(charts: Helm, file: Path) -> None:
    """The programs' own reader takes each pod's variables without a fault, and each name stands once."""
    for name, pod in pods(charts.render(file)).items():
        if name.endswith("-test"):
            continue
        (container,) = pod["containers"]
        names = [each["name"] for each in container["env"]]
        assert len(names) == len(set(names)), name
        given = {each: value if isinstance(value, str) else _secret_of(each) for each, value in variables(pod).items()}
        load(given)


def _secret_of(name: str) -> str:
    return "postgresql://role:secret@db/baton" if name.endswith("_URL") else "word"


def test_a_setting_of_a_workload_goes_before_that_of_all(charts: Helm) -> None:
    """And before what the chart says by itself; a name never stands twice."""
    found = charts.render(
        SMALL,
        values={
            "settings": {"BATON_LOG_LEVEL": "debug", "BATON_RELAY_BATCH_SIZE": 7},
            "extractor": {
                "settings": {"BATON_LOG_LEVEL": "error"},
                "extraEnv": [{"name": "BATON_LOG_FORMAT", "value": "text"}],
            },
        },
    )
    extractor, settler = (variables(pods(found)[f"baton-{name}"]) for name in ("extractor", "settler"))
    assert (extractor["BATON_LOG_LEVEL"], settler["BATON_LOG_LEVEL"]) == ("error", "debug")
    assert (extractor["BATON_LOG_FORMAT"], settler["BATON_LOG_FORMAT"]) == ("text", "json")
    assert settler["BATON_RELAY_BATCH_SIZE"] == "7"


def test_what_a_workload_says_goes_before_the_defaults_when_it_says_no(charts: Helm) -> None:
    """An own `false`, `0` or empty text is a word, too."""
    found = charts.render(
        SMALL,
        values={
            "defaults": {"priorityClassName": "high", "autoscaling": {"hpa": {"enabled": True}}},
            "extractor": {
                "priorityClassName": "",
                "replicas": 0,
                "autoscaling": {"hpa": {"enabled": False}},
                "podDisruptionBudget": {"enabled": False},
            },
        },
    )
    deployment = named(found, "Deployment", "baton-extractor")
    assert deployment["spec"]["replicas"] == 0
    assert "priorityClassName" not in deployment["spec"]["template"]["spec"]
    assert pods(found)["baton-settler"]["priorityClassName"] == "high"
    budgets = {each["metadata"]["name"] for each in of_kind(found, "PodDisruptionBudget")}
    assert "baton-extractor" not in budgets
    assert "baton-settler" in budgets
    scaled = {each["metadata"]["name"] for each in of_kind(found, "HorizontalPodAutoscaler")}
    assert "baton-extractor" not in scaled
    assert "baton-settler" in scaled
    assert "baton-operator" not in scaled


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("rbac.yaml", {}),
        ("rbac-reading.yaml", {}),
        ("rbac-cluster.yaml", {"operator": {"clusterWide": True}}),
        ("rbac-people.yaml", {"rbac": {"people": True}}),
    ],
)
def test_the_operators_rights_are_those_of_its_own_files(charts: Helm, file: str, values: dict[str, Any]) -> None:
    """Rule by rule; what belongs to the whole cluster has the namespace in its name, and bindings lead to the account."""
    objects = charts.render(SMALL, values=values)
    for each in yaml.safe_load_all((REPOSITORY / "operator" / file).read_text(encoding="utf-8")):
        if each["kind"] == "ServiceAccount":
            continue
        wide = each["kind"].startswith("Cluster")
        found = named(
            objects, each["kind"], f"{NAMESPACE}-{each['metadata']['name']}" if wide else each["metadata"]["name"]
        )
        assert found.get("rules") == each.get("rules")
        if "roleRef" in each:
            assert found["roleRef"]["name"].endswith(each["roleRef"]["name"])
            assert found["roleRef"]["kind"] == each["roleRef"]["kind"]
            assert found["subjects"] == [{"kind": "ServiceAccount", "name": "baton-operator", "namespace": NAMESPACE}]


@pytest.mark.parametrize("file", ci_files(), ids=lambda file: file.stem)
def test_kubectl_baton_finds_the_operator(charts: Helm, file: Path) -> None:
    """By the labels that it looks for, whatever the release is called; they are the operator's alone."""
    looked_for = dict(each.split("=") for each in OPERATOR_LABELS.split(","))
    found = [
        each["metadata"]["name"]
        for each in of_kind(charts.render(file), "Deployment")
        if looked_for.items() <= each["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert len(found) == 1
    assert found[0].endswith("-operator")


def test_what_is_not_asked_for_is_no_right(charts: Helm) -> None:
    """The operator's own namespace alone, unless the values say otherwise; no reading, no review of tokens."""
    objects = charts.render(SMALL, values={"operator": {"reading": {"enabled": False}}})
    assert [each["metadata"]["name"] for each in of_kind(objects, "ClusterRoleBinding")] == []
    names = {each["metadata"]["name"] for each in of_kind(objects, "Role", "ClusterRole")}
    assert names == {
        "baton-operator",
        "baton-reconciler",
        *(f"{NAMESPACE}-baton-{role}" for role in ("view", "edit", "admin")),
    }


def test_under_another_name_the_operator_has_its_own_lease(charts: Helm) -> None:
    """Two releases of one namespace do not wait for each other."""
    found = charts.render(SMALL, release="other")
    lease = variables(pods(found)["other-baton-operator"])["BATON_OPERATOR_LEASE"]
    role = named(found, "Role", "other-baton-operator")
    assert [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule] == [[lease]]
    assert lease == "other-baton-operator"
    # of the release, so that it ends with it; what stands in it is the operator's alone
    assert "spec" not in named(found, "Lease", lease)


def test_whoever_may_install_into_a_namespace_alone_can(charts: Helm) -> None:
    """Not one object of the whole cluster, and no right beyond the namespace."""
    found = charts.render(CHART / "ci" / "namespaced.yaml")
    assert {each["kind"] for each in found} & CLUSTERWIDE == set()


def test_the_definitions_are_the_repositorys_and_are_kept(charts: Helm) -> None:
    """With the annotation that lets them outlive the release, or without, or not at all."""
    originals = {
        found["metadata"]["name"]: found["spec"]
        for found in (yaml.safe_load(each.read_text(encoding="utf-8")) for each in (REPOSITORY / "crds").glob("*.yaml"))
    }
    kept = of_kind(charts.render(SMALL), "CustomResourceDefinition")
    assert {each["metadata"]["name"]: each["spec"] for each in kept} == originals
    assert all(each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for each in kept)
    let_go = of_kind(charts.render(SMALL, values={"crds": {"keep": False}}), "CustomResourceDefinition")
    assert all("helm.sh/resource-policy" not in each["metadata"].get("annotations", {}) for each in let_go)
    assert of_kind(charts.render(SMALL, values={"crds": {"install": False}}), "CustomResourceDefinition") == []


def test_the_migration_finds_all_that_it_needs(charts: Helm) -> None:
    """It is a hook before everything else, and so its account, secret and policy are hooks of an earlier weight."""
    found = charts.render(SMALL, values={"networkPolicy": {"enabled": True}})
    job = named(found, "Job", "baton-migration")
    marks = job["metadata"]["annotations"]
    assert marks["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert marks["helm.sh/hook-output-log-policy"] == "hook-failed"
    assert job["spec"]["ttlSecondsAfterFinished"] == 24 * 3600
    needed = [
        named(found, "ServiceAccount", job["spec"]["template"]["spec"]["serviceAccountName"]),
        named(found, "Secret", variables(job["spec"]["template"]["spec"])["DATABASE_URL"]["secretKeyRef"]["name"]),
        named(found, "NetworkPolicy", "baton-migration"),
    ]
    for each in needed:
        hook = each["metadata"]["annotations"]
        assert hook["helm.sh/hook"] == marks["helm.sh/hook"]
        assert int(hook["helm.sh/hook-weight"]) < int(marks["helm.sh/hook-weight"])
        # Helm takes no hook away with the release
        assert "hook-succeeded" in hook["helm.sh/hook-delete-policy"]
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["baton", "migrate"]


def test_a_changed_secret_replaces_the_pods(charts: Helm) -> None:
    """Those that know it, and no others."""

    def marks(**values: Any) -> dict[str, Any]:
        found = charts.render(SMALL, values=values)
        return {
            each["metadata"]["name"]: each["spec"]["template"]["metadata"].get("annotations", {}).get("checksum/secret")
            for each in of_kind(found, "Deployment")
        }

    before = marks()
    after = marks(settler={"database": {"url": "postgresql://baton_settler:new@postgres.example/baton"}})
    assert {name for name in before if before[name] != after[name]} == {"baton-settler"}


def test_probes_ask_for_progress(small: list[Object]) -> None:
    """Each by its own question; a start may take as long as a database is away."""
    for each in of_kind(small, "Deployment"):
        (container,) = each["spec"]["template"]["spec"]["containers"]
        paths = {
            probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert list(paths.values()) == ["/startupz", "/livez", "/readyz"]
        assert container["startupProbe"]["failureThreshold"] * container["startupProbe"]["periodSeconds"] >= 3600


def test_the_alerts_are_those_of_the_file(charts: Helm) -> None:
    """For the release's namespace, with the runbooks' address and one's own labels, without those that are disabled."""
    (rule,) = of_kind(
        charts.render(
            SMALL,
            values={
                "metrics": {
                    "rules": {
                        "enabled": True,
                        "labels": {"team": "records"},
                        "disabled": ["BatonRepairsHeld"],
                        "runbooks": "https://docs.example/",
                    }
                }
            },
        ),
        "PrometheusRule",
    )
    source = (
        ALERTS.read_text(encoding="utf-8")
        .replace("NAMESPACE", "baton-system")
        .replace("RUNBOOKS/", "https://docs.example/")
    )
    wanted = yaml.safe_load(source)["groups"]
    for group in wanted:
        group["rules"] = [each for each in group["rules"] if each["alert"] != "BatonRepairsHeld"]
        for each in group["rules"]:
            each["labels"]["team"] = "records"
    assert rule["spec"]["groups"] == wanted
    without_operator = charts.render(
        SMALL, values={"operator": {"enabled": False}, "metrics": {"rules": {"enabled": True}}}
    )
    (rule,) = of_kind(without_operator, "PrometheusRule")
    names = [each["alert"] for group in rule["spec"]["groups"] for each in group["rules"]]
    assert set(alert_names()) - set(names) == {"BatonOperatorAbsent"}


def test_consumers_are_scaled_by_their_queue_and_relays_by_their_lag(everything: list[Object]) -> None:
    """Each by what it works off."""
    triggers = {
        each["metadata"]["name"]: [(trigger["type"], trigger["metadata"]) for trigger in each["spec"]["triggers"]]
        for each in of_kind(everything, "ScaledObject")
    }
    assert {name: found[0][0] for name, found in triggers.items()} == {
        "baton-documents-ingest-relay": "prometheus",
        "baton-documents-registrar-relay": "prometheus",
        "baton-documents-extractor": "aws-sqs-queue",
        "baton-documents-registrar": "aws-sqs-queue",
    }
    assert triggers["baton-documents-extractor"][0][1]["queueURL"] == "baton-ingest.fifo"
    for name in triggers:
        assert "replicas" not in named(everything, "Deployment", name)["spec"]


def test_cut_off_pods_reach_what_they_need_and_nothing_else(charts: Helm) -> None:
    """As a table: by workload, the ports that it may reach."""
    found = charts.render(SMALL, values={"networkPolicy": {"enabled": True}})
    everything = named(found, "NetworkPolicy", "baton")
    assert everything["spec"].keys() == {"podSelector", "policyTypes"}
    ports = {
        each["metadata"]["name"].removeprefix("baton-"): {
            port["port"] for rule in each["spec"].get("egress", ()) for port in rule["ports"]
        }
        for each in of_kind(found, "NetworkPolicy")
        if each is not everything
    }
    dns, database, aws = {53}, {5432}, {443}
    assert ports == {
        "operator": dns | database | aws | {6443},
        "ingest-relay": dns | database | aws,
        "registrar-relay": dns | database | aws,
        "extractor": dns | database | aws,
        "registrar": dns | database | aws | {8085},
        "settler": dns | database | aws,
        "agent": dns | aws,
        "migration": dns | database,
        "test": dns | {8080},
    }


def test_the_operator_is_told_the_resource_that_it_makes(small: list[Object]) -> None:
    """With the release's own queues, bucket and secrets; the secrets carry the label that allows their use."""
    told = json.loads(variables(pods(small)["baton-operator"])["BATON_OPERATOR_DEFAULT_RECONCILER"])
    assert told["name"] == "default"
    assert told["spec"]["mode"] == "Repair"
    for reference in (told["spec"]["database"]["secretRef"], told["spec"]["aws"]["secretRef"]):
        secret = named(small, "Secret", reference["name"])
        assert secret["metadata"]["labels"]["baton.pramaan.dev/use"] == "true"
    assert told["spec"]["queues"] == {
        "ingest": "baton-ingest.fifo",
        "registrar": "baton-registrar.fifo",
        "results": "baton-results",
        "create": True,
    }


def test_the_notes_say_what_to_do_next(charts: Helm, tmp_path: Path) -> None:
    """Test it, and look whether anything is stuck; or declare what is to be looked after."""
    notes = charts(
        "install", "baton", str(CHART), "--namespace=ns", "--dry-run=client", f"--values={SMALL}", "--hide-secret"
    )
    told = notes.partition("NOTES:")[2]
    assert "helm test baton --namespace ns" in told
    assert "kubectl get regrec --namespace ns" in told


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"replicaCount": 3}, "replicaCount"),
    ({"image": {"tagg": "1"}}, "tagg"),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
    ({"image": {"digest": "sha256:abc"}}, "/image/digest"),
    ({"image": {"repository": "Bad Name"}}, "/image/repository"),
    ({"crds": {"install": "yes"}}, "/crds/install"),
    ({"bucket": "No"}, "/bucket"),
    ({"queues": {"results": "results.fifo"}}, "/queues/results"),
    ({"queues": {"ingress": "x"}}, "ingress"),
    ({"aws": {"endpoints": {"sqs": "localhost:4566"}}}, "/aws/endpoints/sqs"),
    ({"agent": {"url": "agent"}}, "/agent/url"),
    ({"settings": {"BATON_RELAY_BATCHSIZE": 10}}, "BATON_RELAY_BATCHSIZE"),
    ({"settings": {"BATON_AGENT_TOKEN": "secret"}}, "BATON_AGENT_TOKEN"),
    ({"extractor": {"settings": {"BATON_BUCKET": "other"}}}, "BATON_BUCKET"),
    ({"extractor": {"replicas": -1}}, "/extractor/replicas"),
    ({"extractor": {"replica": 1}}, "replica"),
    ({"extractor": {"scratch": "large"}}, "/extractor/scratch"),
    ({"extractor": {"database": {"url": "mysql://db"}}}, "/extractor/database/url"),
    ({"extractor": {"database": {"existingSecret": "Not A Name"}}}, "/extractor/database/existingSecret"),
    ({"extractor": {"resources": {"limit": {"memory": "1Gi"}}}}, "limit"),
    ({"extractor": {"resources": {"limits": {"memory": "lots"}}}}, "/extractor/resources/limits/memory"),
    (
        {"extractor": {"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True}}}},
        "/extractor/autoscaling/keda/enabled",
    ),
    ({"extractor": {"autoscaling": {"maxReplicas": 0}}}, "/extractor/autoscaling/maxReplicas"),
    ({"operator": {"database": {"url": "postgresql://x"}}}, "database"),
    ({"operator": {"autoscaling": {"hpa": {"enabled": True}}}}, "autoscaling"),
    ({"defaults": {"podSecurityContext": {"runAsUser": 0}}}, "/defaults/podSecurityContext/runAsUser"),
    ({"defaults": {"podSecurityContext": {"runAsNonRoot": False}}}, "runAsNonRoot"),
    ({"defaults": {"securityContext": {"privileged": True}}}, "securityContext"),
    ({"defaults": {"extraEnv": [{"nam": "X", "value": "1"}]}}, "nam"),
    ({"migration": {"activeDeadlineSeconds": 0}}, "/migration/activeDeadlineSeconds"),
    ({"migration": {"databaseUrl": "x"}}, "databaseUrl"),
    ({"reconciler": {"mode": "repair"}}, "/reconciler/mode"),
    ({"reconciler": {"name": "Default"}}, "/reconciler/name"),
    ({"reconciler": {"spec": {"intervall": "1m"}}}, "intervall"),
    ({"networkPolicy": {"database": {"ports": [0]}}}, "/networkPolicy/database/ports/0"),
    ({"networkPolicy": {"database": {"to": [{"cidr": "10.0.0.0/8"}]}}}, "cidr"),
    ({"metrics": {"port": 80}}, "/metrics/port"),
    (
        {"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}},
        "/metrics/serviceMonitor/enabled",
    ),
    ({"metrics": {"podMonitor": {"interval": "30"}}}, "/metrics/podMonitor/interval"),
    ({"metrics": {"rules": {"disabled": ["BatonRelayStaled"]}}}, "/metrics/rules/disabled/0"),
    ({"metrics": {"rules": {"runbooks": "https://docs.example"}}}, "/metrics/rules/runbooks"),
    ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0"),
    ({"commonLabels": {"team": 7}}, "/commonLabels/team"),
    ({"tests": {"timeoutSeconds": "long"}}, "/tests/timeoutSeconds"),
]


@pytest.mark.parametrize(("values", "named_in"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_a_wrong_value_is_refused_by_name(charts: Helm, values: dict[str, Any], named_in: str) -> None:
    """Before anything is made; the message says which it is."""
    with pytest.raises(Refused) as refused:
        charts.render(SMALL, values=values)
    message = str(refused.value)
    assert "values don't meet the specifications of the schema" in message
    assert named_in in message.replace("'", "").replace("].", "/").replace(".", "/") or named_in in message


MISSING: list[tuple[dict[str, Any], str]] = [
    ({"extractor": {"database": {"url": ""}}}, "extractor.database"),
    ({"migration": {"database": {"url": ""}}}, "migration.database"),
    ({"reconciler": {"database": {"url": ""}}}, "reconciler.database"),
    ({"agent": {"token": ""}}, "agent"),
    ({"referenceAgent": {"enabled": False}}, "agent.url"),
    ({"aws": {"region": ""}, "settler": {"autoscaling": {"keda": {"enabled": True}}}}, "aws.region"),
]


@pytest.mark.parametrize(("values", "named_in"), MISSING, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_missing_is_said(charts: Helm, values: dict[str, Any], named_in: str) -> None:
    """A workload that could not start is not installed."""
    with pytest.raises(Refused, match=rf"{named_in}: needs|{named_in}: KEDA"):
        charts.render(SMALL, values=values)


def test_a_policy_that_the_server_does_not_know_is_said(charts: Helm) -> None:
    """Kubernetes 1.29 has no ValidatingAdmissionPolicy that could be relied on."""
    with pytest.raises(Refused, match=r"needs Kubernetes 1\.30 or newer"):
        charts.render(SMALL, values={"admissionPolicy": {"enabled": True}}, version="1.29.0")
    with pytest.raises(Refused, match="incompatible with Kubernetes"):
        charts.render(SMALL, version="1.28.0")
