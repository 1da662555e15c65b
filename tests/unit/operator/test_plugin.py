"""`kubectl baton` without a cluster: tokens, the forwarded port, what is typed. A stand-in takes kubectl's place."""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest
import yaml

from baton.operator.plugin.asking import Way, ask
from baton.operator.plugin.drawing import plain
from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl
from baton.operator.plugin.main import main
from baton.operator.plugin.redriving import REGISTRATION
from baton.operator.plugin.tokens import token
from baton.operator.plugin.tunnels import tunnel
from baton.reconcilers.choosing import Choice
from baton.settings.exits import Exit
from support.waiting import wait_until

CRDS = Path(__file__).parents[3] / "crds"
RESOURCE = {"metadata": {"name": "main", "namespace": "law"}, "spec": {"mode": "Observe"}}
Standin = Callable[[str], Path]


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standin:
    """Makes a kubectl of a few lines of Python, and puts it before any other."""

    def make(code: str) -> Path:
        program = tmp_path / "kubectl"
        start = f"#!{sys.executable}\nimport json, os, signal, sys\narguments = sys.argv[1:]\n"
        program.write_text(start + code, encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        return tmp_path

    return make


def config(**user: Any) -> str:
    """A kubectl that knows a kubeconfig."""
    shown = {"users": [{"name": "me", "user": user}], "clusters": [{"name": "c", "cluster": {"server": "https://c"}}]}
    return f"print({json.dumps(json.dumps(shown))})"


def found(**options: Any) -> str:
    """The token that is found."""
    return token(Kubectl(), namespace="law", **{"file": None, "service_account": None, **options}).reveal()


def test_the_kubeconfigs_own_token_is_shown(standin: Standin, tmp_path: Path) -> None:
    """As it stands, in a file, or made by a program with what the kubeconfig gives it."""
    standin(config(token="abc.def"))
    assert found() == "abc.def"
    (tmp_path / "token").write_text("from.file\n")
    standin(config(tokenFile=str(tmp_path / "token")))
    assert found() == "from.file"
    program = (
        "import json, os; asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'status': {'token': os.environ['WHO'] + '.' + asked['kind']}}))"
    )
    told = {"command": sys.executable, "args": ["-c", program], "env": [{"name": "WHO", "value": "me"}]}
    standin(config(exec={**told, "apiVersion": "client.authentication.k8s.io/v1"}))
    assert found() == "me.ExecCredential"


def test_who_logs_in_by_a_certificate_is_told_what_to_do(standin: Standin) -> None:
    """For a certificate is shown to the API server alone."""
    standin(config(**{"client-certificate-data": "x", "client-key-data": "hunter2"}))
    with pytest.raises(Failed, match="--service-account") as failed:
        found()
    assert failed.value.code is Exit.SETTINGS
    assert "hunter2" not in str(failed.value)


def test_a_service_accounts_token_is_for_the_operator_alone(standin: Standin) -> None:
    """And for ten minutes."""
    standin("print('.'.join(each.strip('-').replace('=', '~') for each in arguments if '=' in each))")
    made = found(service_account="looker")
    assert "audience~baton.pramaan.dev" in made
    assert "duration~10m" in made


@pytest.mark.parametrize("text", ["", "two words", "a\nb", "hunter2\r\nX-Other: 1", "\u20ac"])
def test_what_is_no_token_goes_into_no_header(tmp_path: Path, text: str) -> None:
    """And is not repeated."""
    (tmp_path / "token").write_text(text)
    with pytest.raises(Failed) as failed:
        found(file=tmp_path / "token")
    assert "hunter2" not in str(failed.value)


@pytest.fixture
def explained(standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., str]]:
    """What explain prints of an explanation, which a server on this machine gives."""
    given: dict[str, Any] = {}

    class Operator(BaseHTTPRequestHandler):
        """Answers every question with it."""

        def do_GET(self) -> None:
            """Answer."""
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"explanation": given}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    def explain(*options: str, **more: Any) -> str:
        given.update(EXPLAINED, **more)
        standin(f"print({json.dumps(json.dumps({'items': [RESOURCE]}))})")
        token_file = tmp_path / "token"
        token_file.write_text("abc.def")
        way = ("--server", f"http://127.0.0.1:{server.server_port}", "--token-file", str(token_file))
        assert main(["explain", DOCUMENT, *way, *options]) == Exit.OK
        return capsys.readouterr().out

    server = HTTPServer(("127.0.0.1", 0), Operator)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield explain
    server.shutdown()
    thread.join()
    server.server_close()


DOCUMENT = "0198c0de-0000-7000-8000-000000000001"
EXPLAINED: dict[str, Any] = {
    "document": {
        **dict.fromkeys(("id", "firm_id", "matter_id"), DOCUMENT),
        **{f"{axis}_status": "queued" for axis in ("processing", "registration")},
        **{f"{axis}_status_since": "2030-01-31T12:00:00Z" for axis in ("processing", "registration")},
        "deleted_at": None,
    },
    "aspects": [],
    "timeline": [],
    "timeline_cut": False,
}
WAITING: dict[str, Any] = {
    **dict.fromkeys(("disagrees", "action", "held_back_by"), None),
    "aspect": "registration",
    "verdict": "waiting",
    "owner": "queue",
    "due": "2030-02-14T12:00:00Z",
    "healthy": True,
    "meaning": "its ticket is on the queue",
    "rows": [],
}


def test_what_waits_on_a_queue_says_what_makes_it_count_sooner(explained: Callable[..., str]) -> None:
    """Beside the end of the retention, and how not to wait; an operator of an earlier version says nothing of it."""
    output = explained(aspects=[{**WAITING, "lost_if_empty_for_seconds": 450.0}])
    assert "2030-02-14 12:00:00" in output
    assert (
        "registration: it counts as lost sooner if its queue is seen empty for 7.5 minutes after it was sent" in output
    )
    assert f"kubectl baton redrive {DOCUMENT} --under-way --reason" in output
    for aspect in (WAITING, {**WAITING, "lost_if_empty_for_seconds": None}):
        assert "sooner" not in explained(aspects=[aspect])


PODS = {
    "items": [
        {
            "metadata": {"name": "leaving", "deletionTimestamp": "x"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        {"metadata": {"name": "starting"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"metadata": {"name": "good"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    ]
}
FORWARDS = f"""
if "get" in arguments:
    print({json.dumps(json.dumps(PODS))})
else:
    assert "pod/good" in arguments and "--address=127.0.0.1" in arguments, arguments
    print("Forwarding from 127.0.0.1:4711 -> 8642", flush=True)
    signal.pause()
"""


def children() -> list[psutil.Process]:
    """Those of this process that are kubectl's."""
    return [each for each in psutil.Process().children() if "kubectl" in " ".join(each.cmdline())]


def test_a_ready_pods_port_is_forwarded_and_let_go(standin: Standin) -> None:
    """However the question ends, its kubectl ends with it; even one that does not listen to signals."""
    standin(FORWARDS)
    with tunnel(Kubectl(), namespace="law", pod=None, port=8642) as port:
        assert port == 4711
        assert len(children()) == 1
    assert children() == []
    standin(
        FORWARDS.replace(
            "signal.pause()", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: signal.pause()"
        )
    )
    with pytest.raises(KeyError), tunnel(Kubectl(), namespace="law", pod=None, port=8642):
        raise KeyError
    wait_until(lambda: not children(), what="kubectl's end")


@pytest.mark.parametrize(
    ("code", "words", "exit_code"),
    [
        ("print(json.dumps({'items': []}))", "no pod of the operator", Exit.UNAVAILABLE),
        (
            FORWARDS.replace('"status": "True"', '"status": "False"').replace('\\"True\\"', '\\"False\\"'),
            "none is ready",
            Exit.UNAVAILABLE,
        ),
        (
            "sys.exit('Error from server (Forbidden): pods is forbidden')",
            "pods is forbidden",
            Exit.REFUSED,
        ),
        (
            FORWARDS.replace(
                '    print("Forwarding', "    sys.exit('error: unable to forward port')\n    print(\"Forwarding"
            ),
            "unable to forward port",
            Exit.UNAVAILABLE,
        ),
    ],
    ids=["none", "not-ready", "forbidden", "refused"],
)
def test_where_there_is_no_way_it_is_said(standin: Standin, code: str, words: str, exit_code: Exit) -> None:
    """In kubectl's words where they are its."""
    standin(code)
    with pytest.raises(Failed, match=words) as failed, tunnel(Kubectl(), namespace="law", pod=None, port=8642):
        pass
    assert failed.value.code is exit_code


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:1", "http://example.org:80", "http://127.0.0.1", "x", "http://127.0.0.1@evil:80"]
)
def test_a_token_leaves_this_machine_for_nobody(tmp_path: Path, server: str) -> None:
    """In clear text it goes to the loopback address alone."""
    (tmp_path / "token").write_text("hunter2")
    way = Way(8642, token_file=tmp_path / "token", server=server)
    with pytest.raises(Failed, match="--server"):
        ask(Kubectl(), way, RESOURCE, "status")


def test_a_name_that_is_left_out_must_be_clear(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is suspended by guessing."""
    two = {"items": [RESOURCE, {"metadata": {"name": "other", "namespace": "law"}}]}
    standin(f"assert 'patch' not in arguments\nprint({json.dumps(json.dumps(two))})")
    assert main(["suspend", "--reason", "moving house"]) == Exit.SETTINGS
    assert "main, other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("-n", "law", "status"), ["--namespace=law"]),
        (("status", "-n", "law"), ["--namespace=law"]),
        (("--namespace", "law", "status", "-n", "court"), ["--namespace=court"]),
        (("-n", "law", "status", "--context", "here"), ["--context=here", "--namespace=law"]),
        (
            ("--kubeconfig", "mine", "--context", "there", "status", "--context", "here"),
            ["--kubeconfig=mine", "--context=here"],
        ),
    ],
)
def test_kubectls_own_options_stand_on_either_side(
    standin: Standin, capsys: pytest.CaptureFixture[str], typed: tuple[str, ...], meant: list[str]
) -> None:
    """Before the command and behind it; in both places, the one behind it wins."""
    folder = standin("open(__file__ + '.asked', 'w').write(json.dumps(arguments))\nprint(json.dumps({'items': []}))")
    assert main([*typed]) == Exit.OK
    asked = json.loads((folder / "kubectl.asked").read_text())
    assert asked[: asked.index("--request-timeout=30s")] == meant
    assert "no RegistrationReconciler" in capsys.readouterr().out
    assert main(["-o", "json", *typed]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["resources"] == []


def test_a_namespace_before_the_command_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that are none are refused there, too; and the help says where it may stand."""
    assert main(["-n", "\udcff", "status"]) == Exit.SETTINGS
    assert "no text" in capsys.readouterr().err
    assert main(["--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "-n, --namespace" in output
    assert "before a command or behind it" in output


@pytest.mark.parametrize(
    ("events", "cut", "said"),
    [
        (20, False, None),
        (21, False, "--all shows all of it"),
        (21, True, "--all shows more of it"),
        (20, True, "older."),
    ],
)
def test_a_timeline_that_is_cut_names_the_option_that_shows_it(
    explained: Callable[..., str], events: int, cut: bool, said: str | None
) -> None:
    """With that option, only what the operator itself left out is told."""
    event = {"at": "2030-01-31T12:00:00Z", "what": "written", "by": None}
    more: dict[str, Any] = {"timeline": [event] * events, "timeline_cut": cut}
    short = explained(**more)
    assert short.count("written") == 20
    assert ("There is more" in short, "--all" in short) == (said is not None, events > 20)
    assert said is None or said in short
    whole = explained("--all", **more)
    assert whole.count("written") == events
    assert ("There is more" in whole, "--all" in whole) == (cut, False)


@pytest.fixture
def redriven(standin: Standin, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What is printed of a redrive that ended so."""

    def draw(*options: str, spec: dict[str, Any] | None = None, **status: Any) -> str:
        made = {
            "metadata": {"name": "main-x"},
            "spec": {"selector": {"documents": [DOCUMENT]}, "dryRun": False, **(spec or {})},
            "status": {"state": "Finished", "examined": 1, "redriven": 0, "failed": 0, "conditions": [], **status},
        }
        answers = [json.dumps(made), json.dumps({"items": [RESOURCE]})]
        standin(f"print({answers!r}['get' in arguments])")
        assert main(["redrive", DOCUMENT, "--reason", "mended", "--requested-by", "ada", "--wait", *options]) == Exit.OK
        return capsys.readouterr().out

    return draw


def test_what_was_left_under_way_names_the_option_that_takes_it(redriven: Callable[..., str]) -> None:
    """Where it was not said already, by the reason that the operator writes."""
    left = {"refused": [{"reason": Choice.LEFT_UNDER_WAY.value, "count": 1}]}
    assert "with --under-way" in redriven(**left)
    assert "with --under-way" not in redriven(spec={"selector": {"underWay": True}}, **left)
    assert "with --under-way" not in redriven(refused=[{"reason": Choice.LEFT_TO_RELAY.value, "count": 1}])


@pytest.mark.parametrize(
    ("dry", "done", "head"), [(True, 0, "WOULD BE DONE"), (False, 3, "DONE"), (False, 2, "WAS TO BE DONE")]
)
def test_a_plan_is_told_as_what_became_of_it(redriven: Callable[..., str], dry: bool, done: int, head: str) -> None:
    """A rehearsal's would be done; a redrive's was, or was to be where less was done than was counted before."""
    plan = [{"action": "retry", "count": 1}, {"action": "repair", "count": 2}]
    output = redriven(spec={"dryRun": dry}, plan=plan, redriven=done)
    assert [line.split("   ")[0] for line in output.splitlines() if line.endswith("COUNT")] == [head]


def test_a_report_is_its_owners_and_goes_over_nothing(
    standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not be read is said in its place, and by the exit code."""
    standin(
        f"known = {json.dumps(json.dumps(RESOURCE))}\n"
        "print(known) if 'main' in arguments else sys.exit('Error from server (Forbidden): no')"
    )
    file = tmp_path / "report.json"
    assert main(["report", "-r", "main", "--file", str(file)]) == Exit.FAILED
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made = json.loads(file.read_text())
    assert made["resource"]["spec"] == {"mode": "Observe"}
    assert made["events"] == {"missing": "Error from server (Forbidden): no"}
    assert main(["report", "-r", "main", "--file", str(file)]) == Exit.FAILED
    assert "File exists" in capsys.readouterr().err


def test_every_status_is_of_one_axis() -> None:
    """As the resource's schema has them."""
    (crd,) = yaml.safe_load_all((CRDS / "registrationredrives.yaml").read_text(encoding="utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    selector = spec["properties"]["selector"]["properties"]
    registration = set(selector["registration"]["items"]["enum"])
    assert {each for each in registration if not each.startswith("registration_")} == REGISTRATION
    assert not any(
        each.startswith("registration_") or each in REGISTRATION for each in selector["processing"]["items"]["enum"]
    )


def test_a_terminal_obeys_nobodys_words() -> None:
    """Colours, bells, turned writing and line breaks are spaces."""
    assert plain("a\x1b[31mb\u202ec\nd\x07") == "a [31mb c d "


@pytest.mark.parametrize(
    "command", ["status", "explain", "plan", "reconcile", "redrive", "suspend", "resume", "report"]
)
def test_every_command_says_how_it_is_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With an example that begins as it is typed."""
    assert main([command, "--help"]) == 0
    output = capsys.readouterr().out
    assert f"    kubectl baton {command}" in output
    assert "\\b" not in output
