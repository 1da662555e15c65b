"""Child processes: started, stopped, never left behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from baton.embedded.accounts import unprivileged
from baton.embedded.children import Child, Children, Program, run
from baton.embedded.errors import StartFailed
from support.parts import needs
from support.waiting import wait_until

FOREVER = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
WITH_CHILD = (
    "import subprocess, sys, signal; c = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']); "
    "print(c.pid, flush=True); signal.pause()"
)


def python(code: str, logs: Path, **options: object) -> Program:
    """A program that runs a little Python."""
    return Program(name="sample", argv=(sys.executable, "-c", code), log=logs / "sample.log", **options)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Whether no such process runs; one that waits to be collected has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def said(child: Child) -> str:
    """What the child has said, once it has said something."""
    return wait_until(child.log_tail, what="the child's first words")


def test_a_child_starts_stops_and_starts_again(tmp_path: Path) -> None:
    """A restart is a new process of the same program, its words in the same log."""
    child = Child(python(FOREVER, tmp_path))
    child.start()
    said(child)
    first = child.pid
    child.start()
    assert child.pid == first
    child.restart()
    wait_until(lambda: child.log_tail() == "up\nup", what="the second start's words")
    assert child.pid != first
    assert gone(first)
    assert child.stop() == -signal.SIGTERM
    assert not child.running
    assert child.stop() == -signal.SIGTERM


def test_a_child_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """One that ignores the request is killed when its time is over."""
    child = Child(python(STUBBORN, tmp_path))
    child.start()
    said(child)
    assert child.stop(timeout=0.2) == -signal.SIGKILL


@pytest.mark.parametrize("end", [Child.kill, Child.stop])
def test_what_a_child_started_ends_with_it(tmp_path: Path, end: object) -> None:
    """Grandchildren in its group are gone after a stop and after a kill."""
    child = Child(python(WITH_CHILD, tmp_path))
    child.start()
    grandchild = int(said(child))
    assert not gone(grandchild)
    end(child)  # type: ignore[operator]
    wait_until(lambda: gone(grandchild), what="the grandchild's end")


def test_children_stop_youngest_first(tmp_path: Path) -> None:
    """A group stops in the reverse order of starting, also when its work fails."""
    code = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(print(sys.argv[1], flush=True))); print('up', flush=True)\nwhile True: signal.pause()"
    order = tmp_path / "order.log"

    def work() -> None:
        with Children() as children:
            for started, name in enumerate(("first", "second"), start=1):
                children.start(Program(name=name, argv=(sys.executable, "-c", code, name), log=order))
                wait_until(lambda: order.read_text().count("up") == started, what="its start")  # noqa: B023
            raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError, match="the work failed"):
        work()
    assert order.read_text().split() == ["up", "up", "second", "first"]


def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    """The parent is killed, and has no chance to clean up: the child is gone all the same."""
    code = (
        "import sys, signal; from pathlib import Path; from baton.embedded.children import Child, Program\n"
        f"c = Child(Program(name='c', argv=(sys.executable, '-c', {FOREVER!r}), log=Path({str(tmp_path)!r}) / 'c.log'))\n"
        "c.start(); print(c.pid, flush=True); signal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    wait_until((tmp_path / "c.log").read_text, what="the child's first words")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: gone(child), what="the child's end")


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel ties a child to its parent's thread: one started from a passing thread lives on."""
    child = Child(python(FOREVER, tmp_path))

    def start_and_see() -> None:
        child.start()
        # Not before the child has tied its life to somebody's.
        said(child)

    thread = threading.Thread(target=start_and_see)
    thread.start()
    thread.join()
    try:
        # A dead thread's signal would have come before the thread was joined, or with it.
        assert child.wait(timeout=0.3) is None
    finally:
        child.kill()


def test_a_child_leads_its_own_session(tmp_path: Path) -> None:
    """An interrupt typed at the terminal does not reach it."""
    with Children() as children:
        child = children.start(python(FOREVER, tmp_path))
        said(child)
        assert os.getsid(child.pid) == child.pid != os.getsid(0)


@needs("root")
def test_a_child_gives_up_roots_rights(tmp_path: Path) -> None:
    """One with an account runs as that account, with no group of root's, and still ends with its parent."""
    account = unprivileged()
    assert account is not None
    # The shell is there for everybody; this Python may lie in a private home.
    program = Program(
        name="sample",
        argv=("/bin/sh", "-c", "echo $(id -u) $(id -g) $(id -G) $MARK"),
        log=tmp_path / "sample.log",
        account=account,
        environ={"MARK": "set"},
        folder=Path("/"),
    )
    groups = os.getgroups()
    os.setgroups([*groups, 54321])
    try:
        run(program, timeout=20)
    finally:
        os.setgroups(groups)
    assert program.log.read_text().strip() == f"{account.uid} {account.gid} {account.gid} set"


def test_a_failed_run_shows_its_last_words(tmp_path: Path) -> None:
    """A program that fails, or is not there, raises an error with the end of its log."""
    with pytest.raises(StartFailed, match=r"ended with 3\nno luck"):
        run(python("import sys; print('no luck'); sys.exit(3)", tmp_path), timeout=20)
    with pytest.raises(StartFailed, match="cannot run /no/such/program"):
        run(Program(name="absent", argv=("/no/such/program",), log=tmp_path / "absent.log"), timeout=20)


def test_readiness_does_not_wait_for_the_dead(tmp_path: Path) -> None:
    """Waiting for a child that ended stops at once; for one that never answers, in time."""
    child = Child(python("print('bye')", tmp_path))
    child.start()
    with pytest.raises(StartFailed, match="ended with 0 while starting\nbye"):
        child.wait_ready(lambda: False, timeout=60)
    silent = Child(python(FOREVER, tmp_path))
    silent.start()
    with pytest.raises(StartFailed, match=r"did not answer within 0\.1 s"):
        silent.wait_ready(lambda: False, timeout=0.1)
    silent.kill()
