"""A Prometheus on this machine that follows what the chart tells the Prometheus operator: its PodMonitor and its rules.

Only times are others: it looks every second, and an alert that would wait for minutes waits for two seconds.
"""

import json
import math
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

from baton.embedded.children import Child, Program
from baton.embedded.ports import LOOPBACK, free_port
from e2e.bed.releases import NAME, Release
from support.waiting import wait_until

_HOLDS = "2s"


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def asked(self, query: str) -> list[dict[str, Any]]:
        """What a query finds just now."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=30).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def firing(self, alert: str) -> list[dict[str, str]]:
        """The labels of an alert that fires."""
        return [each["metric"] for each in self.asked(f'ALERTS{{alertname="{alert}",alertstate="firing"}}')]

    def fired(self, *, since: float) -> set[str]:
        """The alerts that fired at any time since a moment of this machine's clock."""
        span = max(1, math.ceil(time.time() - since))
        query = f'count by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{span}s]))'
        return {each["metric"]["alertname"] for each in self.asked(query)}

    def newest(self) -> float:
        """When a workload answered it for the last time, by this machine's clock."""
        (found,) = self.asked("max(max_over_time(timestamp(up)[2h:1s]))")
        return float(found["value"][1])

    def active(self) -> list[dict[str, Any]]:
        """Alerts that fire, with what they say to people."""
        found = httpx.get(f"{self.url}/api/v1/alerts", timeout=30).raise_for_status().json()["data"]["alerts"]
        return [each for each in found if each["state"] == "firing"]

    def targets(self) -> dict[str, str]:
        """Whether each workload answers it, by component."""
        found = httpx.get(f"{self.url}/api/v1/targets", timeout=30).raise_for_status().json()["data"]["activeTargets"]
        return {each["labels"]["app_kubernetes_io_component"]: each["health"] for each in found}


@contextmanager
def watching(release: Release, folder: Path) -> Iterator[Prometheus]:
    """One that watches a release for the length of a block."""
    folder.mkdir(parents=True, exist_ok=True)
    monitor = _object(release, "podmonitor")
    rules = _object(release, "prometheusrule")["spec"]
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["for"] = _HOLDS
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    program = shutil.which("prometheus")
    assert program is not None
    port = free_port()
    flags = (
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    )
    child = Child(Program("prometheus", (program, *flags), log=folder / "prometheus.log", folder=folder))
    with _pods_listed(release) as pods:
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(_settings(release, monitor, pods)), encoding="utf-8")
        yield from _run(child, port)


def _run(child: Child, port: int) -> Iterator[Prometheus]:
    child.start()
    try:
        url = f"http://{LOOPBACK}:{port}"
        child.wait_ready(lambda: _ready(url), timeout=60)
        prometheus = Prometheus(url)
        wait_until(lambda: set(prometheus.targets().values()) == {"up"}, 60, interval=0.5, what="every target")
        # before it had looked for the first time there was nothing
        wait_until(lambda: not prometheus.active(), 60, interval=0.5, what="a quiet beginning")
        yield prometheus
    finally:
        child.stop(timeout=10)


def _object(release: Release, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(release.kubernetes.kubectl("get", kind, NAME, "--output=json"))
    return found


@contextmanager
def _pods_listed(release: Release) -> Iterator[str]:
    """Where Prometheus hears of the release's pods: Debian's own cannot ask an API server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps([_target(pod, port) for pod in release.pods() for port in _ports(pod)]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is written to the terminal."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="pods", daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def _ports(pod: dict[str, Any]) -> list[dict[str, Any]]:
    running = "podIP" in pod["status"]
    return [port for container in pod["spec"]["containers"] for port in container.get("ports", ())] if running else []


def _target(pod: dict[str, Any], port: dict[str, Any]) -> dict[str, Any]:
    """A port of a pod, as an API server's own discovery tells it."""
    metadata = pod["metadata"]
    labels = {
        "namespace": metadata["namespace"],
        "pod_name": metadata["name"],
        "pod_container_name": pod["spec"]["containers"][0]["name"],
        "pod_container_port_name": port["name"],
        **{f"pod_label_{_flat(name)}": value for name, value in metadata["labels"].items()},
    }
    return {
        "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
        "labels": {f"__meta_kubernetes_{name}": value for name, value in labels.items()},
    }


def _settings(release: Release, monitor: dict[str, Any], pods: str) -> dict[str, Any]:
    """What the Prometheus operator would make of a PodMonitor.

    :param pods: where they are listed.
    """
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    kept = [
        {"source_labels": [f"__meta_kubernetes_pod_label_{_flat(name)}"], "regex": value, "action": "keep"}
        for name, value in spec["selector"]["matchLabels"].items()
    ]
    kept.append(
        {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": endpoint["port"], "action": "keep"}
    )
    named = {
        "namespace": "namespace",
        "pod": "pod_name",
        "container": "pod_container_name",
        **{_flat(label): f"pod_label_{_flat(label)}" for label in spec["podTargetLabels"]},
    }
    kept += [
        {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": label} for label, source in named.items()
    ]
    job = {
        "job_name": f"{release.namespace}/{NAME}",
        "metrics_path": endpoint["path"],
        "http_sd_configs": [{"url": pods, "refresh_interval": "2s"}],
        "relabel_configs": kept,
    }
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [job],
    }


def _flat(label: str) -> str:
    return re.sub(r"\W", "_", label)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
