"""A release of the chart on the node, as Helm installs it with the smallest of the chart's own values."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton.db.access import Role
from cluster.bed.asking import Kubernetes
from e2e.bed.grounds import KEEPER, Grounds
from e2e.bed.images import IMAGE
from e2e.bed.nodes import Node, is_up
from e2e.bed.sandboxes import HOST, NODE
from support.charts.places import CHART
from support.charts.rendering import Helm
from support.waiting import wait_until

NAME = "baton"
SMALL = CHART / "ci" / "small.yaml"
COMPONENTS = ("operator", "ingest-relay", "registrar-relay", "extractor", "registrar", "settler", "agent")
"""The workloads of that release, as their Deployments end."""
_SELECTOR = f"app.kubernetes.io/instance={NAME}"
_SECRET = "embedded"
#: So that what a loss costs is seconds, and not minutes.
_HURRIED = {
    "BATON_QUEUE_VISIBILITY": "10s",
    "BATON_CONSUMER_HEARTBEAT": "3s",
    "BATON_CONSUMER_RECEIVE_WAIT": "2s",
    "BATON_CONSUMER_SHUTDOWN_GRACE": "5s",
    "BATON_CONSUMER_MAX_ATTEMPTS": 20,
    "BATON_SWEEPER_INTERVAL": "2s",
    "BATON_SWEEPER_EARLY_LOOK": "6s",
    "BATON_RUN_DEADLINE": "60s",
    "BATON_RUN_UPLOAD_SLACK": "5s",
    "BATON_RUN_RETRY_INITIAL": "1s",
    "BATON_RUN_RETRY_MAX": "5s",
}
_GRACES = ("ingest_stalled", "request_stalled", "apply_stalled", "understanding_stalled", "fan_out_missing")


@dataclass(frozen=True)
class Release:
    """One release in one namespace."""

    node: Node
    grounds: Grounds
    helm: Helm
    kubernetes: Kubernetes
    values: Mapping[str, Any]

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.kubernetes.namespace

    def install(self, *options: str) -> str:
        """Install it, and wait until every workload is ready."""
        return self._installed("install", *options)

    def upgrade(self, *options: str, **values: Any) -> str:
        """Upgrade it, with other values on top."""
        return self._installed("upgrade", *options, **values)

    def asked(self, *arguments: str) -> str:
        """What Helm says to a command about it."""
        return self.helm(*arguments, *self._place, within=600)

    def pods(self, component: str | None = None) -> list[dict[str, Any]]:
        """Its pods that were not told to go: of one workload, or of all."""
        selector = _SELECTOR if component is None else f"{_SELECTOR},app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        answer = self.kubernetes.http.get(path, params={"labelSelector": selector}).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def wait(self, *components: str, within: float = 240.0) -> None:
        """Wait until the pods of these workloads, or of all, are ready."""
        chosen = components or COMPONENTS

        def ready() -> bool:
            return all(is_ready(self.pods(each)) for each in chosen)

        wait_until(ready, within, interval=0.5, what=f"pods of {', '.join(chosen)}")

    def scale(self, component: str, replicas: int) -> None:
        """Give a workload so many pods, and wait until it has them."""
        self.kubernetes.kubectl("scale", f"deployment/{NAME}-{component}", f"--replicas={replicas}")
        wait_until(
            lambda: len([each for each in self.pods(component) if is_up(each)]) == replicas,
            240,
            interval=0.5,
            what=f"{replicas} of {component}",
        )

    def inside(self, component: str, *command: str, code: int | None = 0) -> str:
        """What a command prints inside a pod of a workload."""
        name = self.pods(component)[0]["metadata"]["name"]
        return self.kubernetes.kubectl("exec", name, "--", *command, code=code)

    def said(self, component: str) -> str:
        """What a workload's pods have said of late, and before they were restarted."""
        told = []
        for pod in self.pods(component):
            name = pod["metadata"]["name"]
            told += [self.kubernetes.kubectl("logs", name, "--tail=200", *more, code=None) for more in ((), ("-p",))]
        return "\n".join(told)

    @property
    def _place(self) -> tuple[str, str]:
        return (f"--kubeconfig={self.kubernetes.kubeconfig}", f"--namespace={self.namespace}")

    def _installed(self, verb: str, *options: str, **values: Any) -> str:
        given = json.dumps(merged(self.values, values))
        files = (f"--values={SMALL}", "--values=-")
        return self.helm(verb, NAME, str(CHART), *self._place, *files, *options, given=given, within=900)


def chosen(node: Node, grounds: Grounds) -> dict[str, Any]:
    """The values that lead a release to its ground, with policies that let it go nowhere else."""
    role_of = {
        "ingestRelay": Role.RELAY,
        "registrarRelay": Role.RELAY,
        "extractor": Role.EXTRACTOR,
        "registrar": Role.REGISTRAR,
        "settler": Role.SETTLER,
    }
    repository, _, tag = IMAGE.rpartition(":")
    host, own = ([{"ipBlock": {"cidr": f"{address}/32"}}] for address in (HOST, NODE))
    account = grounds.account
    keys = {"accessKeyId": account.account, "secretAccessKey": _SECRET}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "aws": {"endpoints": {"sqs": account.endpoint, "s3": account.endpoint}},
        "bucket": grounds.bucket,
        "settings": dict(_HURRIED),
        "defaults": {"aws": keys},
        **{workload: {"database": {"url": grounds.url(role)}} for workload, role in role_of.items()},
        "migration": {"database": {"url": grounds.url(KEEPER)}},
        "reconciler": {
            "database": {"url": grounds.url(Role.RECONCILER)},
            "aws": keys,
            "spec": {
                "interval": "2s",
                "queues": {"visibility": "10s"},
                "graces": [{"discrepancy": name, "grace": "1s"} for name in _GRACES],
            },
        },
        "networkPolicy": {
            "enabled": True,
            "dns": {"to": own},
            "database": {"to": host, "ports": [grounds.server.port]},
            "aws": {"to": host, "ports": [grounds.aws_port]},
            "apiServer": {"to": host, "ports": [node.server.port]},
            "metricsFrom": host,
        },
        "rbac": {"people": True},
        "metrics": {"podMonitor": {"enabled": True}, "rules": {"enabled": True}, "dashboard": {"enabled": True}},
    }


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values on top of values, as Helm lays them."""
    found = copy.deepcopy(dict(below))
    for name, value in above.items():
        inner = found.get(name)
        found[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


def is_ready(pods: list[dict[str, Any]]) -> bool:
    """Whether there are pods, and all of them are ready."""
    return bool(pods) and all(is_up(each) for each in pods)


def seen(release: Release) -> str:
    """What a release looks like, for whoever reads of a failure."""
    told = [release.kubernetes.kubectl("get", "pods,jobs,regrec", "--output=wide", code=None)]
    told += [release.kubernetes.kubectl("get", "events", "--sort-by=.lastTimestamp", code=None)[-3000:]]
    told += [f"--- {each}\n{release.said(each)[-3000:]}" for each in COMPONENTS]
    return "\n".join(told)
