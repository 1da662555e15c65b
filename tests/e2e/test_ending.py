"""The node leaves nothing behind, however it ends. These come first: there is one sandbox on a machine at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.bed.programs import find_or_build_all
from e2e.bed.sandboxes import remove_groups, traces
from support.parts import needs, without
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, needs("root", "buildah", "runc", "containerd", "iptables"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_node_leaves_nothing_behind(state_folder: Path, how: str) -> None:
    """No process, mount, interface, route, rule or control group; with a pod on it, and without a word before."""
    if find_or_build_all() is None:
        without("needs Go, to build a node once")
    before = traces(state_folder)
    tests = Path(__file__).parents[1]
    process = subprocess.Popen(
        (sys.executable, "-m", "e2e.bed.nodes", str(state_folder)),
        env={**os.environ, "PYTHONPATH": str(tests)},  # noqa: TID251
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        told = process.stdout.readline().split()
        assert told, "it did not start"
        namespace = int(told[0])
        made = {each.split()[0] for each in traces(state_folder, namespace) - before}
        assert {"process", "interface", "route", "group"} <= made
        if how == "killed":
            process.send_signal(signal.SIGKILL)
        else:
            process.stdin.close()
    assert process.returncode == (-signal.SIGKILL if how == "killed" else 0)

    def left() -> set[str]:
        # empty folders of the kernel: the next node removes them, too
        remove_groups()
        return traces(state_folder, namespace) - before

    wait_until(lambda: not left(), 30, interval=0.1, what="nothing left")
