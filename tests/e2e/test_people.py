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
from e2e.bed.stories import private_paper, stranded, suspend
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Person:
    """Somebody with a kubeconfig of their own, and kubectl with its plugin on the path."""

    file: Path
    namespace: str

    def types(self, *words: str, code: int = 0) -> str:
        """What a command prints, errors included."""
        output, told = self._run(*words, code=code)
        return output + told

    def reads(self, *words: str) -> Any:
        """What `kubectl baton` prints as JSON."""
        return json.loads(self._run("baton", *words, "--output", "json")[0])

    def _run(self, *words: str, code: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            ["kubectl", *words, "--kubeconfig", str(self.file), "--namespace", self.namespace],
            env={"PATH": f"{KUBECTL.parent}{os.pathsep}{os.defpath}", "HOME": str(self.file.parent)},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout, done.stderr


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


def test_a_stuck_document_is_seen_explained_and_let_go(release: Release, firm: Firm, nurse: Person) -> None:
    """`status` says that something is stuck and that repairs are held, `explain` and `plan` why; `resume` heals it."""
    filed = stranded(release, firm)
    try:
        wait_until(lambda: "request_ticket_missing" in nurse.types("baton", "status", "default"), 90, interval=1)
        status = nurse.types("baton", "status", "default")
        assert "a trial" in status
        assert f"Answered by {NAME}-operator-" in status
        columns = nurse.types("get", "regrec").splitlines()
        shown = dict(zip(columns[0].split(), columns[1].split(), strict=False))
        assert (shown["STUCK"], shown["OLDEST"]) == ("1", "24h")
        assert "request_ticket_missing" in nurse.types("baton", "explain", str(filed.id))
        assert "suspended" in nurse.types("baton", "plan")
    finally:
        nurse.types("baton", "resume")
    ends(firm, filed)
    assert look(firm)[filed.id].as_expected(filed.exhibit)


def test_a_document_is_redriven(firm: Firm, nurse: Person, tmp_path: Path) -> None:
    """What waits for a person is rehearsed, and then asked for again in one's own name."""
    (filed,) = firm.upload([private_paper(tmp_path)], batch=1)
    ends(firm, filed)
    before = look(firm)[filed.id].runs
    rehearsed = nurse.reads("redrive", str(filed.id), "--reason", "a rehearsal", "--dry-run", "--wait")
    assert rehearsed["status"]["planned"] == 1
    assert rehearsed["status"].get("redriven", 0) == 0
    done = nurse.reads("redrive", str(filed.id), "--reason", "counsel has changed its mind", "--wait")
    assert done["status"]["redriven"] == 1
    assert done["spec"]["requestedBy"].endswith(":nurse")
    wait_until(lambda: look(firm)[filed.id].runs > before, 120, interval=0.5, what="another run")
    ends(firm, filed)


def test_a_redrive_is_declared(release: Release, firm: Firm, nurse: Person, tmp_path: Path) -> None:
    """As an object in a file, by kubectl alone. While repairs are suspended it waits; its spec stays as it is."""
    (filed,) = firm.upload([private_paper(tmp_path)], batch=1)
    ends(firm, filed)
    suspend(release, "a trial")
    try:
        body = redrive(
            "once",
            reconcilerRef={"name": "default"},
            selector={"documents": [str(filed.id)]},
            reason="counsel has changed its mind",
            requestedBy="night shift",
        )
        release.kubernetes.kubectl("create", "--filename=-", given=body)
        reason = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].reason}"
        wait_until(
            lambda: "Suspended" in release.kubernetes.kubectl("get", "redrive", "once", reason), 60, interval=0.5
        )
    finally:
        nurse.types("baton", "resume")
    release.kubernetes.kubectl("wait", "redrive/once", "--for=jsonpath={.status.state}=Finished", "--timeout=55s")
    done = json.loads(nurse.types("get", "redrive", "once", "--output=json"))["status"]
    assert (done["state"], done["redriven"], done["failed"]) == ("Finished", 1, 0)
    assert "Finished" in nurse.types("get", "redrive", "once")
    change = json.dumps({"spec": {"reason": "another"}})
    refused = release.kubernetes.kubectl("patch", "redrive", "once", "--type=merge", f"--patch={change}", code=1)
    assert "spec" in refused
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
    """It comes to rest."""
    wait_until(lambda: filed.id in look(firm) and look(firm)[filed.id].at_rest, 180, interval=0.5, what="its end")
