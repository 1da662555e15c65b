"""The API server as an administrator asks it: over HTTP where answers are looked into, by kubectl where people look."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

from baton.operator import access
from baton.operator.access import Access

CRDS = Path(__file__).parents[3] / "crds"
KUBECTL = Path(sys.executable).with_name("kubectl")
_GROUP = "/apis/baton.pramaan.dev/v1alpha1"


@dataclass(frozen=True)
class Kubernetes:
    """A cluster, as its administrator reaches it, and one namespace of it."""

    kubeconfig: Path
    access: Access
    http: httpx.Client
    namespace: str = "default"

    @classmethod
    @contextmanager
    def reached(cls, kubeconfig: Path) -> Iterator[Self]:
        """The cluster of a kubeconfig."""
        found = access.from_kubeconfig(kubeconfig)
        token = found.token()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=found.server, verify=found.tls(), headers=headers, timeout=30) as http:
            yield cls(kubeconfig, found, http)

    def inside(self, namespace: str) -> Self:
        """The same, in another namespace."""
        return replace(self, namespace=namespace, access=replace(self.access, namespace=namespace))

    def kubectl(self, *arguments: object, given: object = None, code: int | None = 0) -> str:
        """What kubectl prints, errors included.

        :param given: an object for its standard input.
        :param code: the exit code that is wanted; ``None``: any.
        """
        command = [str(KUBECTL), "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace]
        done = subprocess.run(
            [*command, *(str(each) for each in arguments)],
            input=None if given is None else yaml.safe_dump(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        output = done.stdout + done.stderr
        assert code is None or done.returncode == code, output
        return output

    def path(self, plural: str, name: str = "") -> str:
        """Where resources of a kind are."""
        return f"{_GROUP}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def create(self, plural: str, body: Mapping[str, Any], *, dry_run: bool = False) -> httpx.Response:
        """Create one; fields that nobody knows are refused."""
        more = {"dryRun": "All"} if dry_run else {}
        return self.http.post(self.path(plural), json=body, params={"fieldValidation": "Strict", **more})

    def read(self, plural: str, name: str) -> Any:
        """One as it stands, or None."""
        answer = self.http.get(self.path(plural, name))
        return None if answer.status_code == 404 else answer.raise_for_status().json()

    def patch(self, plural: str, name: str, change: Mapping[str, Any], *, part: str = "") -> httpx.Response:
        """Merge a change into one."""
        path = self.path(plural, name) + (f"/{part}" if part else "")
        kind = {"Content-Type": "application/merge-patch+json"}
        return self.http.patch(path, content=json.dumps(change), headers=kind)

    def secret(self, name: str, values: Mapping[str, str], *, labels: Mapping[str, str] | None = None) -> None:
        """Write a secret; by default one that may be used."""
        marks = {"baton.pramaan.dev/use": "true"} if labels is None else dict(labels)
        body = {"metadata": {"name": name, "labels": marks}, "stringData": dict(values)}
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        if self.http.get(f"{path}/{name}").status_code == 200:
            self.http.put(f"{path}/{name}", json=body).raise_for_status()
        else:
            self.http.post(path, json=body).raise_for_status()
