"""`kubectl baton` and a RegistrationRedrive as an operator uses them: by their own rights, through a forwarded port."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.demo.arrivals import Filed, Firm
from baton.demo.sights import look
from cluster.bed.asking import KUBECTL
from cluster.bed.people import account, bind, token
from cluster.bed.servers import write_kubeconfig
from cluster.resources import redrive
from e2e.bed.releases import NAME, Release
from e2e.bed.stories import stranded
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Person:
    """Somebody with a kubeconfig of their own, and kubectl with its plugin on the path."""

    file: Path
    namespace: str

    def types(self, *words: str, code: int = 0) -> str:
        """What a command prints, errors included."""
        done = subprocess.run(
            ["kubectl", *words, "--kubeconfig", str(self.file), "--namespace", self.namespace],
            env={"PATH": f"{KUBECTL.parent}{os.pathsep}{os.defpath}", "HOME": str(self.file.parent)},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output

    def reads(self, *words: str) -> Any:
        """The same as JSON."""
        return json.loads(self.types("baton", *words, "--output", "json"))


@pytest.fixture
def nurse(release: Release, tmp_path: Path) -> Person:
    """One who may look and care, by the Roles that the chart makes for people."""
    kubernetes, name = release.kubernetes, "nurse"
    account(kubernetes, name)
    for each in ("viewer", "carer"):
        if kubernetes.http.get(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{release.namespace}/rolebindings/{NAME}-{each}-{name}"
        ).is_error:
            bind(kubernetes, f"{NAME}-{each}", to=name)
    file = tmp_path / "nurse.kubeconfig"
    server = release.node.server
    write_kubeconfig(file, url=server.url, authority=server.authority, token=token(kubernetes, name))
    return Person(file, release.namespace)


def test_a_stuck_document_is_seen_explained_and_redriven(release: Release, firm: Firm, nurse: Person) -> None:
    """From `status` to `redrive --wait`; then it ends where it must."""
    filed = stranded(release, firm)
    try:
        wait_until(lambda: "request_ticket_missing" in nurse.types("baton", "status", "default"), 90, interval=1)
        status = nurse.types("baton", "status", "default")
        assert "Suspended" in status
        assert "Answered by baton-operator-" in status
        shown = nurse.types("get", "regrec")
        assert "STUCK" in shown
        explained = nurse.types("baton", "explain", str(filed.id))
        assert "request_ticket_missing" in explained
        assert "suspended" in nurse.types("baton", "plan")
        rehearsed = nurse.reads("redrive", str(filed.id), "--reason", "a rehearsal", "--dry-run", "--wait")
        assert rehearsed["status"]["planned"] == 1
        assert rehearsed["status"].get("redriven", 0) == 0
        done = nurse.reads("redrive", str(filed.id), "--reason", "its request was lost", "--wait")
        assert done["status"]["redriven"] == 1
        assert done["spec"]["requestedBy"] == f"system:serviceaccount:{release.namespace}:nurse"
    finally:
        nurse.types("baton", "resume")
    ends(firm, filed)


def test_a_redrive_is_declared(release: Release, firm: Firm, nurse: Person) -> None:
    """As an object in a file, by kubectl alone; its columns say what became of it, and its spec stays as it is."""
    filed = stranded(release, firm)
    try:
        body = redrive(
            "once",
            reconcilerRef={"name": "default"},
            selector={"documents": [str(filed.id)]},
            reason="its request was lost",
            requestedBy="night shift",
        )
        release.kubernetes.kubectl("create", "--filename=-", given=body)
        nurse.types("wait", "redrive/once", "--for=jsonpath={.status.state}=Finished", "--timeout=100s")
        shown = nurse.types("get", "redrive", "once").splitlines()
        assert dict(zip(shown[0].split(), shown[1].split(), strict=False))["STATE"] == "Finished"
        change = json.dumps({"spec": {"reason": "another"}})
        refused = release.kubernetes.kubectl("patch", "redrive", "once", "--type=merge", f"--patch={change}", code=1)
        assert "spec" in refused
    finally:
        nurse.types("baton", "resume")
    ends(firm, filed)


def test_who_may_not_is_turned_away(release: Release, firm: Firm, tmp_path: Path) -> None:
    """With the reason and the exit code that says so; nothing of a document is told."""
    kubernetes = release.kubernetes
    account(kubernetes, "passer-by")
    file = tmp_path / "passer-by.kubeconfig"
    server = release.node.server
    write_kubeconfig(file, url=server.url, authority=server.authority, token=token(kubernetes, "passer-by"))
    person = Person(file, release.namespace)
    told = person.types("baton", "explain", str(UUID(int=7)), code=77)
    assert "cannot" in told or "may not" in told


def ends(firm: Firm, filed: Filed) -> None:
    """It ends registered."""

    def done() -> bool:
        return look(firm)[filed.id].at_rest

    wait_until(done, 180, interval=0.5, what="its end")
    assert look(firm)[filed.id].as_expected(filed.exhibit)
