"""The pipeline's processes as containers start and stop them."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from baton.db.access import Role
from baton.embedded.ports import free_port
from baton.settings.exits import Exit
from support.command_line import CommandLine
from support.waiting import wait_until

AGENT = {"BATON_AGENT_URL": "http://127.0.0.1:9", "BATON_AGENT_TOKEN": "a-token-of-some-length"}
PROCESSES = [
    (["relay", "--lane", "ingest"], Role.RELAY),
    (["relay", "--lane", "registrar"], Role.RELAY),
    (["extractor"], Role.EXTRACTOR),
    (["registrar"], Role.REGISTRAR),
    (["settler"], Role.SETTLER),
    (["agent"], None),
]


def _answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.mark.parametrize(
    ("arguments", "role"), PROCESSES, ids=lambda each: "-".join(each) if isinstance(each, list) else ""
)
def test_a_process_is_ready_and_stops_when_it_is_told(
    desk: CommandLine, arguments: list[str], role: Role | None
) -> None:
    """With its own role: started up and ready by its endpoint; SIGTERM ends it with 0."""
    port = free_port()
    more = {
        **AGENT,
        "BATON_HEALTH_PORT": str(port),
        "BATON_CONSUMER_RECEIVE_WAIT": "1",
        "BATON_REFERENCE_AGENT_PORT": str(free_port()),
    }
    if role is not None:
        more["DATABASE_URL"] = desk.database.url(role)
    child = desk.start(*arguments, **more)
    try:
        wait_until(lambda: _answers(port, "/startupz") or child.poll() is not None, timeout=60, what="start")
        assert child.poll() is None, child.communicate()
        wait_until(lambda: _answers(port, "/readyz"), timeout=30, what="readiness")
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=40)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"), [(["relay", "--lane", "ingest"], "baton_relay"), (["settler"], "baton_settler")]
)
def test_a_process_refuses_another_workloads_role(desk: CommandLine, arguments: list[str], words: str) -> None:
    """As the platform's own role: exit code 77, and which role is needed."""
    child = desk.start(*arguments)
    try:
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 77, err
    assert words in err


def test_a_second_signal_ends_a_process_at_once() -> None:
    """The first asks, the second does not wait for what hangs."""
    script = "from baton.cli.processes import stop_on_signals; stop = stop_on_signals(); print(1, flush=True)\nwhile True: stop.wait(0.1)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        child.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 128 + signal.SIGTERM
    finally:
        child.kill()
        child.communicate()


def test_migrate_tells_what_it_does_and_may_be_repeated(desk: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an administrator; a role that may not change the schema is refused, and nothing has changed."""
    monkeypatch.setenv("DATABASE_URL", desk.database.url("postgres"))
    assert desk.run("migrate").code == 0
    monkeypatch.setenv("DATABASE_URL", desk.database.url(Role.MEMBER_APP))
    assert desk.run("migrate").code in (1, 77)


def test_migrate_tells_a_database_that_does_not_answer_from_one_that_refuses(
    desk: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may be tried again after the one and not after the other."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    ran = desk.run("migrate")
    assert ran.code == Exit.UNAVAILABLE
    assert "cannot migrate: connection failed" in ran.err
