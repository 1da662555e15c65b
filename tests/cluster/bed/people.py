"""People and service accounts of a test's namespace, their rights and tokens."""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from cluster.bed.asking import Kubernetes

OPERATOR = Path(__file__).parents[3] / "operator"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PLURALS = {
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}


def rights(name: str) -> list[dict[str, Any]]:
    """The objects of a file beside the operator."""
    return list(yaml.safe_load_all((OPERATOR / name).read_text(encoding="utf-8")))


def role(name: str, file: str = "rbac-people.yaml") -> list[dict[str, Any]]:
    """The rules of one role."""
    found: list[dict[str, Any]] = next(each["rules"] for each in rights(file) if each["metadata"]["name"] == name)
    return found


def account(kubernetes: Kubernetes, name: str, rules: list[dict[str, Any]] | None = None) -> None:
    """Make a service account, and give it rights in its namespace."""
    http, space = kubernetes.http, kubernetes.namespace
    made = http.post(f"/api/v1/namespaces/{space}/serviceaccounts", json={"metadata": {"name": name}})
    assert made.status_code in (201, 409), made.text
    if rules is None:
        return
    body = {"metadata": {"name": name}, "rules": rules}
    http.post(f"{_RBAC}/namespaces/{space}/roles", json=body).raise_for_status()
    bind(kubernetes, name, to=name)


def bind(kubernetes: Kubernetes, name: str, *, to: str) -> None:
    """Bind a role to an account of the same namespace."""
    subject = {"kind": "ServiceAccount", "name": to, "namespace": kubernetes.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    body = {"metadata": {"name": f"{name}-{to}"}, "roleRef": reference, "subjects": [subject]}
    kubernetes.http.post(f"{_RBAC}/namespaces/{kubernetes.namespace}/rolebindings", json=body).raise_for_status()


def token(kubernetes: Kubernetes, name: str, *audiences: str) -> str:
    """A token of an account."""
    path = f"/api/v1/namespaces/{kubernetes.namespace}/serviceaccounts/{name}/token"
    answer = kubernetes.http.post(path, json={"spec": {"audiences": list(audiences), "expirationSeconds": 600}})
    made: str = answer.raise_for_status().json()["status"]["token"]
    return made


@contextmanager
def operator(kubernetes: Kubernetes, *files: str) -> Iterator[str]:
    """The operator's own account with the rights of these files; gives its token.

    What reaches the whole cluster carries the namespace's name, and is taken away in the end.
    """
    account(kubernetes, "baton-operator")
    space = kubernetes.namespace
    everywhere: list[str] = []
    for body in (each for file in files for each in rights(file) if each["kind"] in _PLURALS):
        for subject in body.get("subjects", ()):
            subject["namespace"] = space
        wide = body["kind"].startswith("Cluster")
        if wide:
            body["metadata"]["name"] += f"-{space}"
            if "roleRef" in body:
                body["roleRef"]["name"] += f"-{space}"
        place = f"{_RBAC}/{_PLURALS[body['kind']]}" if wide else f"{_RBAC}/namespaces/{space}/{_PLURALS[body['kind']]}"
        if wide:
            everywhere.append(f"{place}/{quote(body['metadata']['name'])}")
        kubernetes.http.post(place, json=body).raise_for_status()
    try:
        yield token(kubernetes, "baton-operator")
    finally:
        for path in everywhere:
            kubernetes.http.delete(path).raise_for_status()


def signed(original: str, key: Path, **changes: Any) -> str:
    """A token with other claims, signed as the API server signs."""
    header, claims, _ = original.split(".")
    content = json.loads(_decoded(claims)) | changes
    told = f"{header}.{_encoded(json.dumps(content).encode())}"
    command = ("openssl", "dgst", "-sha256", "-sign", str(key))
    signature = subprocess.run(command, input=told.encode(), capture_output=True, check=True).stdout
    return f"{told}.{_encoded(signature)}"


def claims_of(original: str) -> Mapping[str, Any]:
    """What a token says."""
    found: Mapping[str, Any] = json.loads(_decoded(original.split(".")[1]))
    return found


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
