"""A place for a node that is gone with everything in it when its first process ends, however that came.

Network, mounts and processes are namespaces of the kernel's own. Whoever dies without a word, the test or the machine's
patience, takes the first process along, and with it go all processes, mounts, interfaces and rules of the place.
"""

import contextlib
import fcntl
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from baton.embedded.children import Child, Program
from support.waiting import wait_until

HOST = "10.90.0.1"
"""This machine as the node sees it; servers that listen here are reached from pods."""
NODE = "10.90.0.2"
"""The node as this machine sees it."""
PODS = "10.91.0.0/24"
"""Addresses of pods, which this machine reaches by way of the node."""
_OUTSIDE, _INSIDE = "baton-host", "baton-node"
#: Folders that programs of a node write to whatever they are told.
_OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
_CGROUPS = Path("/sys/fs/cgroup")


class Sandbox:
    """The place. There is one on a machine at a time: its addresses are fixed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # the kernel sends the signal to the first process when the one that made it is gone
        namespaces = ("--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
        self._child = Child(
            Program("sandbox", ("unshare", *namespaces, "--", "catatonit", "-P"), log=folder / "sandbox.log")
        )

    def __enter__(self) -> Self:
        # another's tests may be under way
        self._alone = Path("/run/lock/baton-e2e.lock").open("w")
        fcntl.flock(self._alone, fcntl.LOCK_EX)
        remove_groups()
        self._before = traces(self._folder)
        self._child.start()
        try:
            self._begin()
        except BaseException:
            self._child.kill()
            self._alone.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()
        left: set[str] = set()

        def gone() -> bool:
            remove_groups()
            left.clear()
            left.update(traces(self._folder, self.namespace) - self._before)
            return not left

        try:
            wait_until(gone, 30, interval=0.1, what="the end of the sandbox")
        except AssertionError:
            raise AssertionError(f"it left behind: {sorted(left)}") from None
        finally:
            self._alone.close()

    def _begin(self) -> None:
        self._first = wait_until(self._find_first, 10, what="the first process")
        self._namespace = Path(f"/proc/{self._first}/ns/pid").stat().st_ino
        for folder in _OWN_FOLDERS:
            self.run("mount", "-t", "tmpfs", "tmpfs", folder)
        self.run("mount", "--make-rshared", "/")
        self._connect()

    def inside(self, *command: str) -> tuple[str, ...]:
        """The command that runs another one in the place."""
        return ("nsenter", "--target", str(self._first), "--net", "--mount", "--pid", "--", *command)

    def run(self, *command: str) -> str:
        """What a command prints in the place.

        :raises RuntimeError: it ended otherwise than with 0.
        """
        return _run(*self.inside(*command))

    @property
    def namespace(self) -> int:
        """The kernel's number for the namespace of its processes."""
        return self._namespace

    def _find_first(self) -> int | None:
        children = Path(f"/proc/{self._child.pid}/task/{self._child.pid}/children").read_text().split()
        # until then it is unshare still, on its way into the namespaces
        ready = children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "catatonit"
        return int(children[0]) if ready else None

    def _connect(self) -> None:
        _run("ip", "link", "add", _OUTSIDE, "type", "veth", "peer", "name", _INSIDE, "netns", str(self._first))
        _run("ip", "address", "add", f"{HOST}/24", "dev", _OUTSIDE)
        _run("ip", "link", "set", _OUTSIDE, "up")
        self.run("ip", "address", "add", f"{NODE}/24", "dev", _INSIDE)
        self.run("ip", "link", "set", _INSIDE, "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1")
        _run("ip", "route", "add", PODS, "via", NODE, "dev", _OUTSIDE)


def traces(folder: Path, namespace: int | None = None) -> set[str]:
    """What of this machine a node might change: interfaces, rules, routes, control groups, mounts, processes.

    :param folder: whose mounts are looked for, and the processes that name it.
    :param namespace: of processes; those that are in it are looked for, too.
    """
    found = {f"interface {line.split()[1]}" for line in _run("ip", "-o", "link", "show").splitlines()}
    found |= {f"route {line}" for line in _run("ip", "route").splitlines()}
    rules = _run("iptables-save") + _run("ip6tables-save")
    found |= {f"rule {line}" for line in rules.splitlines() if line.startswith("-A")}
    found |= {f"group {each}" for each in _groups()}
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found |= {f"mount {line.split()[1]}" for line in mounts if line.split()[1].startswith(f"{folder}/")}
    return found | {f"process {name}" for name in _members(folder, namespace)}


def remove_groups() -> None:
    """Remove the control groups that pods had, and that nobody is in."""
    for top in _groups():
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def _groups() -> list[Path]:
    return sorted(_CGROUPS.glob("*/kubepods*"))


def _members(folder: Path, namespace: int | None) -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            named = f"{folder}/".encode() in process.joinpath("cmdline").read_bytes()
            if named or process.joinpath("ns/pid").stat().st_ino == namespace:
                found.add(process.joinpath("comm").read_text().strip())
    return found


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout
