"""`kubectl baton` on a real API server: what it prints, by which rights, and what it changes.

The bed has no kubelet to forward a port. Here a kubectl that answers `port-forward` with the port of the API in this
process, and hands everything else on, takes its place; or the port is given (`--server`).
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from baton.db.access import Role
from baton.embedded.ports import free_port
from baton.operator.vocabulary import OPERATOR_LABELS
from cluster.bed.asking import KUBECTL
from cluster.bed.doors import Door, door
from cluster.bed.harm import busy, fail
from cluster.bed.people import account, bind, operator, role, token
from cluster.bed.replicas import PATIENCE, Cluster, Replica
from cluster.bed.servers import write_kubeconfig
from cluster.resources import RECONCILERS, REDRIVES
from cluster.test_kubectl import STUCK, assert_golden
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DOCUMENT = "0198c0de-0000-7000-8000-000000000001"
STAND_IN = f"""#!{sys.executable}
import os, signal, sys
if "port-forward" in sys.argv:
    print("Forwarding from 127.0.0.1:PORT -> 8642", flush=True)
    signal.pause()
os.execv("{KUBECTL}", ["kubectl", *sys.argv[1:]])
"""


@dataclass
class Person:
    """Somebody with a kubeconfig of their own."""

    file: Path
    namespace: str
    server: str | None
    path: str

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command."""
        more = (
            ["--server", self.server] if self.server and arguments[0] in {"status", "explain", "plan", "report"} else []
        )
        command = ["kubectl", "baton", *arguments, *more, "--kubeconfig", str(self.file), "-n", self.namespace]
        environ = {"PATH": self.path, "HOME": str(self.file.parent)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environ, stdout=pipe, stderr=pipe, text=True, cwd=self.file.parent)

    def types(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """What a command prints, and what it says beside it."""
        return self.ended(self.started(*arguments), code=code)

    def may(self, *arguments: str) -> bool:
        """Whether a command ends well."""
        process = self.started(*arguments)
        process.communicate(timeout=PATIENCE)
        return process.returncode == 0

    def ended(self, process: subprocess.Popen[str], *, code: int = 0) -> tuple[str, str]:
        """The same of one that was begun."""
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, f"{process.returncode}\n{output}\n{errors}"
        return output, errors


@pytest.fixture
def opened(world: Cluster) -> Iterator[Door]:
    """The API with the operator's rights; a resource that observes."""
    world.secrets(Role.OBSERVER)
    world.declare()
    with operator(world.kubernetes, "rbac.yaml", "rbac-reading.yaml") as own, door(world.kubernetes, own) as found:
        yield found


def person(world: Cluster, name: str, *roles: str, server: str | None = None) -> Person:
    """Somebody with these roles."""
    account(world.kubernetes, name)
    for each in roles:
        account(world.kubernetes, each, role(each))
        bind(world.kubernetes, each, to=name)
    file = world.folder / f"{name}.kubeconfig"
    authority = world.kubernetes.access.authority_file
    write_kubeconfig(
        file,
        url=world.kubernetes.access.server,
        authority=None if authority is None else Path(authority),
        token=token(world.kubernetes, name),
    )
    return Person(file, world.kubernetes.namespace, server, f"{KUBECTL.parent}{os.pathsep}{os.defpath}")


@pytest.fixture
def carer(opened: Door, world: Cluster) -> Person:
    """One who may look and care."""
    found = person(world, "carer", "baton-viewer", "baton-carer", server=f"http://127.0.0.1:{opened.port}")
    mine = found.file.read_text().split("token: ")[1].split()[0]
    wait_until(lambda: opened.ask("status", mine)[0] == 200, PATIENCE, what="the rights")
    return found


def shown(output: str) -> str:
    """What is printed, without what differs each time."""
    output = re.sub(r"(2001)-(\d\d)-(\d\d) 12:00:00", "LONG-AGO AT NOON...", output)
    output = re.sub(r"(20[2-8]\d)-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "SOME-DAY AT NOON...", output)
    output = re.sub(r"\bmain-[a-z0-9]{5}\b", "main-xxxxx", output)
    return re.sub(r"baton-(operator|reading|demo|cli)\S*/\S+", "baton-PROGRAM", output)


def broken(world: Cluster) -> str:
    """A queued document whose request is gone."""
    loop = Loop(world.matter)
    document, _ = loop.queued()
    loop.erase_request(document)
    return str(document)


def test_status_says_whether_anything_is_stuck(carer: Person, world: Cluster) -> None:
    """Of all in a line each, of one with why; and who answers."""
    world.kubernetes.patch(RECONCILERS, "main", {"status": STUCK}, part="status").raise_for_status()
    assert_golden("baton-status", shown(carer.types("status")[0]))
    assert_golden("baton-status-main", shown(carer.types("status", "main")[0]))
    told = json.loads(carer.types("status", "-o", "json")[0])
    assert told["resources"][0]["status"] == STUCK
    assert told["operator"]["leads"] is False
    assert carer.types("-n", "nowhere", "status", code=69)[0].startswith("NAME")  # behind the command is the right one


def test_status_is_shown_though_the_operator_is_away(carer: Person) -> None:
    """With an exit code and a line that say so."""
    carer.server = f"http://127.0.0.1:{free_port()}"
    output, errors = carer.types("status", code=69)
    assert output.startswith("NAME")
    assert "the operator does not answer" in errors


def test_explain_and_plan_say_what_is_wrong(carer: Person, world: Cluster) -> None:
    """By ids and states, for people and for programs."""
    document = broken(world)
    assert_golden("baton-explain", shown(carer.types("explain", document)[0]))
    assert_golden("baton-plan", shown(carer.types("plan")[0]))
    assert json.loads(carer.types("explain", document, "-o", "json")[0])["explanation"]["document"]["id"] == document
    assert json.loads(carer.types("plan", "-o", "json")[0])["plan"]["found"] == {"request_ticket_missing": 1}
    loop = Loop(world.matter)
    queued, ticket = loop.queued()
    loop.send(ticket)
    assert "lost sooner if its queue is seen empty for 5 minutes" in carer.types("explain", str(queued))[0]
    assert "no such document" in carer.types("explain", DOCUMENT, code=1)[1]
    assert "DOCUMENT" in carer.types("explain", "letter.pdf", code=2)[1]


def test_a_suspension_stands_in_the_resource_until_it_is_resumed(carer: Person, world: Cluster) -> None:
    """With its reason and end; a later one leaves nothing of the former."""
    assert_golden("baton-suspend", shown(carer.types("suspend", "--reason", "moving house", "--until", "2h30m")[0]))
    said = world.kubernetes.read(RECONCILERS, "main")["spec"]["suspend"]
    assert said["reason"] == "moving house"
    assert said["until"].endswith("Z")
    carer.types("suspend", "--reason", "longer")
    assert world.kubernetes.read(RECONCILERS, "main")["spec"]["suspend"] == {"reason": "longer"}
    assert_golden("baton-resume", shown(carer.types("resume")[0]))
    assert "suspend" not in world.kubernetes.read(RECONCILERS, "main")["spec"]


def test_a_pass_is_asked_for_and_waited_for(carer: Person, world: Cluster) -> None:
    """Until the resource says that it was made; where it does not come, what the resource says of itself."""
    assert_golden("baton-reconcile", shown(carer.types("reconcile")[0]))
    world.kubernetes.patch(RECONCILERS, "main", {"status": STUCK}, part="status").raise_for_status()
    errors = carer.types("reconcile", "--wait", "--timeout", "1", code=75)[1]
    assert "Ready is True, DiscrepanciesFound: 14 found" in errors
    with_token = world.kubernetes.read(RECONCILERS, "main")["metadata"]["annotations"]["baton.pramaan.dev/reconcile-at"]
    process = carer.started("reconcile", "--wait")

    def asked() -> str | None:
        """The next value of the annotation."""
        found = world.kubernetes.read(RECONCILERS, "main")["metadata"]["annotations"]["baton.pramaan.dev/reconcile-at"]
        return None if found == with_token else str(found)

    handled = {"lastHandledReconcileAt": wait_until(asked, PATIENCE, what="the annotation")}
    world.kubernetes.patch(RECONCILERS, "main", {"status": handled}, part="status").raise_for_status()
    assert_golden("baton-reconcile-wait", shown(carer.ended(process)[0]))


def redrives(world: Cluster) -> list[Any]:
    """Those that there are."""
    found: list[Any] = world.kubernetes.http.get(world.kubernetes.path(REDRIVES)).raise_for_status().json()["items"]
    return found


def test_a_redrive_is_a_resource(carer: Person, world: Cluster) -> None:
    """With all that was said, and by whom; what would choose everything is refused by the API server."""
    said = ("--status", "registration_failed", "--status", "failed", "--error", "agent_refused", "--older-than", "30m")
    output, _ = carer.types("redrive", DOCUMENT, *said, "--reason", "mended", "--dry-run", "--per-minute", "60")
    assert_golden("baton-redrive", shown(output))
    (made,) = redrives(world)
    assert made["spec"]["selector"] == {
        "documents": [DOCUMENT],
        "processing": ["failed"],
        "registration": ["registration_failed"],
        "errors": ["agent_refused"],
        "olderThan": "30m",
        "underWay": False,
    }
    assert made["spec"]["requestedBy"] == f"system:serviceaccount:{world.kubernetes.namespace}:carer"
    assert (made["spec"]["dryRun"], made["spec"]["perMinute"], made["spec"]["reason"]) == (True, 60, "mended")
    errors = carer.types("redrive", "--reason", "all of them", code=1)[1]
    assert "name documents, a firm, discrepancies, a status or errors" in errors
    assert len(redrives(world)) == 1


@pytest.mark.parametrize(
    ("state", "failed", "code"),
    [("Finished", 0, 0), ("Finished", 2, 1), ("Refused", 0, 1)],
    ids=["done", "busy", "refused"],
)
def test_a_redrive_is_waited_for(carer: Person, world: Cluster, state: str, failed: int, code: int) -> None:
    """To its end, whichever it is; the exit code says which."""
    process = carer.started("redrive", DOCUMENT, "--reason", "mended", "--wait")
    wait_until(lambda: redrives(world), PATIENCE, what="the redrive")
    ready = {**STUCK["conditions"][0], "reason": "Finished", "message": f"It is {state.lower()}."}
    ended = {
        "state": state,
        "examined": 3,
        "redriven": 1,
        "failed": failed,
        "conditions": [ready],
        "plan": [{"action": "write the request's ticket", "count": 1}],
        "refused": [{"reason": "healthy", "count": 2}],
    }
    name = redrives(world)[0]["metadata"]["name"]
    world.kubernetes.patch(REDRIVES, name, {"status": ended}, part="status").raise_for_status()
    output, _ = carer.ended(process, code=code)
    assert_golden(f"baton-redrive-wait-{state.lower()}-{failed}", shown(output))


def test_a_report_holds_what_helps_and_no_secret(carer: Person, world: Cluster) -> None:
    """Resource, redrives, events, pods, examination and plan; and where something may not be read it says so."""
    broken(world)
    carer.types("redrive", DOCUMENT, "--reason", "mended")
    output, _ = carer.types("report", "--file", "report.json")
    assert "read it before you send it" in output
    made = json.loads((carer.file.parent / "report.json").read_text())
    assert made["operator"]["plan"]["found"] == {"request_ticket_missing": 1}
    assert made["operator"]["findings"]
    assert made["redrives"][0]["spec"]["reason"] == "mended"
    assert made["pods"] == []
    assert made["events"] == []
    outline = {name: sorted(part) if isinstance(part, dict) else type(part).__name__ for name, part in made.items()}
    assert_golden("baton-report-outline", json.dumps(outline, indent=2))
    everything = json.dumps(made) + output
    for secret in (
        world.database.url(Role.OBSERVER),
        world.account.environ["AWS_SECRET_ACCESS_KEY"],
        carer.file.read_text().split("token: ")[1].split()[0],
    ):
        assert secret not in everything


def test_who_may_not_is_told_so(opened: Door, carer: Person, world: Cluster) -> None:
    """By kubectl or by the operator; one who may look changes nothing."""
    server = f"http://127.0.0.1:{opened.port}"
    stranger = person(world, "stranger", server=server)
    for command in (("status",), ("plan",), ("explain", DOCUMENT), ("report",), ("resume",), ("reconcile",)):
        output, errors = stranger.types(*command, code=77)
        assert output == ""
        assert "forbidden" in errors.lower()
    viewer = person(world, "viewer", server=server)
    bind(world.kubernetes, "baton-viewer", to="viewer")
    wait_until(lambda: viewer.may("plan"), PATIENCE, what="the rights")
    for changing in (("suspend", "--reason", "x"), ("resume",), ("reconcile",), ("redrive", DOCUMENT, "--reason", "x")):
        assert "cannot" in viewer.types(*changing, code=77)[1]
    assert "suspend" not in world.kubernetes.read(RECONCILERS, "main")["spec"]
    assert redrives(world) == []


def test_one_right_less_is_told_by_the_operator(opened: Door, world: Cluster) -> None:
    """One who may read the resource, and may not have documents explained."""
    server = f"http://127.0.0.1:{opened.port}"
    group = {"apiGroups": ["baton.pramaan.dev"], "verbs": ["get", "list"]}
    account(world.kubernetes, "half", [{**group, "resources": [RECONCILERS, f"{RECONCILERS}/plan"]}])
    half = person(world, "half", server=server)
    wait_until(lambda: half.may("plan"), PATIENCE, what="the rights")
    errors = half.types("explain", DOCUMENT, code=77)[1]
    assert "needs the right to get registrationreconcilers/explain here" in errors


def ready_pod(world: Cluster) -> None:
    """A pod as the operator's would be."""
    labels = dict(each.split("=") for each in OPERATOR_LABELS.split(","))
    body = {
        "metadata": {"name": "operator-1", "labels": labels},
        "spec": {"containers": [{"name": "operator", "image": "baton"}]},
    }
    path = f"/api/v1/namespaces/{world.kubernetes.namespace}/pods"
    world.kubernetes.http.post(path, json=body).raise_for_status()
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    change = {"Content-Type": "application/merge-patch+json"}
    world.kubernetes.http.patch(
        f"{path}/operator-1/status", content=json.dumps(status), headers=change
    ).raise_for_status()


@pytest.fixture
def forwarded(world: Cluster) -> Iterator[tuple[Replica, Person]]:
    """A real replica that repairs, and one who may look and care and reaches it by a forwarded port."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair", interval="1h")
    ready_pod(world)
    port = free_port()
    (world.folder / "bin").mkdir()
    program = world.folder / "bin" / "kubectl"
    program.write_text(STAND_IN.replace("PORT", str(port)), encoding="utf-8")
    program.chmod(0o755)
    carer = person(world, "carer", "baton-viewer", "baton-carer")
    carer.path = f"{program.parent}{os.pathsep}{carer.path}"
    with (
        operator(world.kubernetes, "rbac-reading.yaml"),
        world.replica(BATON_OPERATOR_READING_PORT=str(port)) as replica,
    ):
        world.wait_for("Ready", "True", "InOrder")
        yield replica, carer
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(program.parent) not in running, "a kubectl was left behind"


def test_the_operator_does_what_is_asked_through_a_forwarded_port(
    forwarded: tuple[Replica, Person], world: Cluster
) -> None:
    """Looked at, reconciled, suspended, resumed; and no kubectl is left behind."""
    _, carer = forwarded
    assert "Answered by one" in carer.types("status")[0]
    document = broken(world)
    assert "request_ticket_missing" in carer.types("plan")[0]
    assert "request_ticket_missing" in carer.types("explain", document)[0]
    carer.types("suspend", "--reason", "moving house")
    world.wait_for("Suspended", "True", "Suspended")
    assert "suspended" in carer.types("plan")[0]
    carer.types("resume")
    world.wait_for("Suspended", "False", "NotSuspended")
    carer.types("reconcile", "--wait")
    assert world.status()["found"] == 0
    waiting = carer.started("reconcile", "--wait", "--timeout", "60")
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=PATIENCE)


def test_a_redrive_is_carried_out_while_it_is_waited_for(forwarded: tuple[Replica, Person], world: Cluster) -> None:
    """Rehearsed, done, done in part, and refused: each with what was done, its exit code, and whose it was."""
    _, carer = forwarded
    failed = fail(world, 3)
    chosen = ("--status", "registration_failed", "--reason", "mended", "--wait")
    output, _ = carer.types("redrive", *chosen, "--dry-run")
    assert "3 would be redriven; nothing was done." in output
    assert {row.result for row in Loop(world.matter).ledger()} == set()
    with busy(world, failed[0]):
        output, errors = carer.types("redrive", *chosen, code=1)
    assert "finished. 2 redriven; busy or failed: 1." in output
    assert "it goes on if this command is stopped" in errors
    output, _ = carer.types("redrive", *chosen)
    assert "finished. 1 redriven." in output
    rows = [row for row in Loop(world.matter).ledger() if row.discrepancy == "redrive"]
    assert sorted((row.document_id, row.result) for row in rows) == sorted(
        [*((each, "repaired") for each in failed), (failed[0], "left")]
    )
    assert {row.requested_by for row in rows} == {f"system:serviceaccount:{world.kubernetes.namespace}:carer"}
    queued, _ = Loop(world.matter).queued()
    output, _ = carer.types("redrive", str(queued), "--reason", "mended", "--wait", "-o", "json")
    assert json.loads(output)["status"]["refused"] == [{"reason": "left: before the relay", "count": 1}]
    world.change({"mode": "Observe"})
    wait_until(world.is_seen, PATIENCE, what="the mode")
    output, _ = carer.types("redrive", *chosen, code=1)
    assert "refused." in output
    assert "only observes" in output


def test_who_has_no_token_of_their_own_asks_by_a_service_account(
    forwarded: tuple[Replica, Person], world: Cluster
) -> None:
    """One who reaches the operator and has none of its questions' rights, and may create tokens for one who has."""
    _, carer = forwarded
    assert "cannot create resource" in carer.types("plan", "--service-account", "carer", code=77)[1]
    group = {"apiGroups": ["baton.pramaan.dev"], "resources": [RECONCILERS], "verbs": ["get", "list"]}
    way = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "resourceNames": ["carer"],
            "verbs": ["create"],
        },
    ]
    account(world.kubernetes, "porter", [group, *way])
    porter = person(world, "porter")
    porter.path = carer.path
    wait_until(lambda: porter.may("plan", "--service-account", "carer"), PATIENCE, what="the rights")
    document = broken(world)
    assert "needs the right to get registrationreconcilers/plan here" in porter.types("plan", code=77)[1]
    by = ("--service-account", "carer")
    assert "Answered by one" in porter.types("status", *by)[0]
    assert "request_ticket_missing" in porter.types("plan", *by)[0]
    assert "request_ticket_missing" in porter.types("explain", document, *by)[0]
    assert "porter" in porter.types("plan", "--service-account", "porter", code=77)[1]
