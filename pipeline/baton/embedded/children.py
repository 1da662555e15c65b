"""Supervised child processes: each with a log of its own, none outliving its parent."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from baton.embedded.accounts import Account
from baton.embedded.errors import EmbeddedError, StartFailed
from baton.embedded.waiting import poll

_LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Program:
    """What a child runs."""

    name: str
    """For people: logs and messages."""
    argv: tuple[str, ...]
    log: Path
    """Where its standard output and error go; appended to."""
    environ: Mapping[str, str] | None = None
    """Its whole environment; None for the parent's."""
    folder: Path | None = None
    """Where it starts; None for the parent's working folder."""
    account: Account | None = None
    """Who runs it; None for the parent's account."""
    death_signal: signal.Signals = signal.SIGKILL
    """What it is sent when the parent dies, however the parent dies."""


class Child:
    """One child process, started and started again from the same program.

    It leads a session and process group of its own, so that an interrupt typed at the terminal
    reaches only the parent, which stops its children in order. Safe to use from several threads.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The program's name."""
        return self.program.name

    @property
    def pid(self) -> int:
        """The process id of the newest start; raises EmbeddedError before the first."""
        if self._process is None:
            raise EmbeddedError(f"{self.name} was never started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs or before the first start."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it; nothing happens when it runs already. Raises StartFailed when it cannot be executed."""
        with self._lock:
            if self.running:
                return
            self.program.log.parent.mkdir(parents=True, exist_ok=True)
            # The kernel ties a child's life to the parent's thread, not to its process.
            if threading.current_thread() is threading.main_thread():
                self._process = _spawn(self.program)
            else:
                self._process = _launcher().submit(_spawn, self.program).result()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens when it has ended."""
        with self._lock:
            if self._process is not None:
                self._process.send_signal(number)

    def wait(self, *, timeout: float) -> int | None:
        """Its exit code, or None when it still runs after `timeout` seconds."""
        process = self._process
        if process is None:
            return None
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, *, how: signal.Signals = signal.SIGTERM, timeout: float = 10.0) -> int | None:
        """Ask it to end and wait; kill it with its whole group after `timeout` seconds.

        Returns its exit code; None when it was never started.
        """
        with self._lock:
            if self._process is None:
                return None
            if self.running:
                self._process.send_signal(how)
                if self.wait(timeout=timeout) is None:
                    self.kill()
                else:
                    self._kill_group()
            return self._process.returncode

    def kill(self) -> None:
        """End it and everything in its process group at once, and wait until it is gone."""
        with self._lock:
            # Once it has been waited for, its number may be another's.
            if self._process is None or not self.running:
                return
            self._kill_group()
            self._process.wait()

    def restart(self, *, how: signal.Signals = signal.SIGTERM, timeout: float = 10.0) -> None:
        """Stop it and start it again."""
        with self._lock:
            self.stop(how=how, timeout=timeout)
            self.start()

    def log_tail(self, *, lines: int = 15) -> str:
        """The last lines of its log; empty when there is none."""
        try:
            with self.program.log.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - 64 * 1024))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def wait_ready(self, ready: Callable[[], bool], *, timeout: float) -> None:
        """Wait until `ready` holds; raises StartFailed when the child ends first or time runs out."""
        if not poll(lambda: not self.running or ready(), timeout=timeout):
            raise StartFailed(f"{self.name} did not answer within {timeout:g} s\n{self.log_tail()}")
        if not self.running:
            raise StartFailed(f"{self.name} ended with {self.returncode} while starting\n{self.log_tail()}")

    def _kill_group(self) -> None:
        # Its members may outlive it: what it started, and did not stop.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class Children:
    """The children of one piece of work, stopped in reverse order when it ends."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __iter__(self) -> Iterator[Child]:
        return iter(tuple(self._children))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, program: Program) -> Child:
        """Start one more."""
        child = Child(program)
        self._children.append(child)
        child.start()
        return child

    def ended(self) -> Sequence[Child]:
        """Those that ended by themselves, or were killed from outside."""
        return [child for child in self if not child.running]

    def stop(self, *, timeout: float = 10.0) -> None:
        """Stop them all, the youngest first; each is killed after `timeout` seconds."""
        for child in reversed(self._children):
            child.stop(timeout=timeout)
        self._children.clear()


def run(program: Program, *, timeout: float) -> None:
    """Run a program to its end; raises StartFailed when it fails or takes longer than `timeout` seconds."""
    child = Child(program)
    try:
        child.start()
        code = child.wait(timeout=timeout)
    finally:
        child.kill()  # whoever goes on, or tidies up, does not find it at work
    if code is None:
        raise StartFailed(f"{program.name} took longer than {timeout:g} s\n{child.log_tail()}")
    if child.returncode != 0:
        raise StartFailed(f"{program.name} ended with {child.returncode}\n{child.log_tail()}")


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    account = program.account
    identity = ("-", "-") if account is None else (str(account.uid), str(account.gid))
    command = (
        *(sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), str(int(program.death_signal))),
        *identity,
        *program.argv,
    )
    try:
        with program.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if program.environ is None else dict(program.environ),
                cwd=program.folder,
                start_new_session=True,
            )
    except OSError as error:
        raise StartFailed(f"{program.name} cannot be started: {error}") from error


@cache
def _launcher() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")
