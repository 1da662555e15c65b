"""Running the demo as a person does: the program in a process of its own, in a folder of the test's own."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.waiting import wait_until

_OWN = ("AWS_", "BATON_", "OTEL_", "PG", "DATABASE_URL")


class Demo:
    """One run; its folder is below `folder`."""

    def __init__(self, folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.said: list[str] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "baton.cli", "demo", *arguments],
            env={**kept, "TMPDIR": str(folder), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.printed = ""
        """What it has written to standard output."""
        self._readers = [
            threading.Thread(target=self._read_out, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_err, args=(self.process.stderr,), daemon=True),
        ]
        for each in self._readers:
            each.start()

    @property
    def lines(self) -> str:
        """What it has said to people so far."""
        return "".join(self.said)

    def wait_for(self, words: str, *, timeout: float = 90.0) -> None:
        """Wait until it has said the words."""
        wait_until(
            lambda: words in self.lines or self.process.poll() is not None,
            timeout=timeout,
            what=f"the demo's {words!r}",
        )
        assert words in self.lines, self.lines

    def end(self, *, timeout: float) -> int:
        """Its exit code."""
        code = self.process.wait(timeout)
        for each in self._readers:
            each.join(10)
        return code

    def summary(self) -> dict[str, Any]:
        """What it printed for machines; all of it must be one JSON object."""
        found: dict[str, Any] = json.loads(self.printed)
        return found

    def members(self) -> dict[str, int]:
        """The processes of the cast that run just now: what each was asked to be, and its process id."""
        found = {}
        for pid in _processes():
            words = _read(pid, "cmdline").split("\0")
            if "baton.cli" in words and _parent(pid) == self.process.pid:
                found[" ".join(words[words.index("baton.cli") + 1 :]).strip()] = pid
        return found

    def left(self) -> list[str]:
        """Processes that know of the folder, and what lies in it."""
        told = [
            f"process {pid}: {_read(pid, 'cmdline')}"
            for pid in _processes()
            if pid != os.getpid() and str(self.folder) in _read(pid, "environ") + _read(pid, "cmdline")
        ]
        return told + [str(each) for each in self.folder.iterdir()]

    def _read_out(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self.printed += line

    def _read_err(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self.said.append(line)


@contextmanager
def running_demo(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Demo]:
    """A demo for the length of a block; killed at its end where it still runs."""
    demo = Demo(folder, *arguments, environ=environ)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.send_signal(signal.SIGKILL)
        demo.end(timeout=20)


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    status = _read(pid, "stat").rpartition(")")[2].split()
    return int(status[1]) if len(status) > 1 else 0
