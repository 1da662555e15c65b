"""A port of an operator's pod, forwarded by a kubectl of our own that ends with the question."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl, said
from baton.operator.vocabulary import OPERATOR_LABELS
from baton.settings.exits import Exit

LOOPBACK: Final = "127.0.0.1"
_FORWARDS: Final = re.compile(rf"Forwarding from {re.escape(LOOPBACK)}:(\d+) -> \d+")
#: Seconds until the port has to be open.
_OPENS: Final = 30.0
_ENDS: Final = 3.0


@contextmanager
def tunnel(kubectl: Kubectl, *, namespace: str, pod: str | None, port: int) -> Iterator[int]:
    """Forward a port of the operator's pod; gives the port on this machine.

    :param pod: its name; ``None``: one that is ready, whether it leads or not.
    :raises Failed: there is no such pod, or no way to it.
    """
    name = pod if pod is not None else _ready(kubectl, namespace)
    arguments = ("port-forward", f"--address={LOOPBACK}", f"pod/{name}", f":{port}")
    child = kubectl.begin(*arguments, namespace=namespace)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(child, lines), daemon=True)
    reader.start()
    try:
        yield _opened(lines)
    finally:
        _end(child, reader)


def _read(child: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Take every line as it comes, to the last, so that kubectl never waits for somebody to read."""
    for line in child.stdout or ():
        lines.put(line)
    lines.put(None)


def _ready(kubectl: Kubectl, namespace: str) -> str:
    pods = kubectl.json("get", "pods", f"--selector={OPERATOR_LABELS}", namespace=namespace)["items"]
    for pod in pods:
        if _is_ready(pod):
            return str(pod["metadata"]["name"])
    if pods:
        raise Failed(f"of {len(pods)} pods of the operator none is ready", code=Exit.UNAVAILABLE)
    raise Failed(
        f"there is no pod of the operator in the namespace {namespace}: say where it is (--operator-namespace)",
        code=Exit.UNAVAILABLE,
    )


def _is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    leaving = pod["metadata"].get("deletionTimestamp") is not None
    return not leaving and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _opened(lines: queue.SimpleQueue[str | None]) -> int:
    """Wait for the line that names the port."""
    seen: list[str] = []
    while True:
        try:
            line = lines.get(timeout=_OPENS)
        except queue.Empty:
            raise Failed("the port of the operator's pod does not open", code=Exit.UNAVAILABLE) from None
        if line is None:
            failure = said("\n".join(seen))
            raise Failed(str(failure), code=Exit.UNAVAILABLE if failure.code is Exit.FAILED else failure.code)
        found = _FORWARDS.match(line)
        if found is not None:
            return int(found[1])
        seen.append(line.rstrip())


def _end(child: subprocess.Popen[str], reader: threading.Thread) -> None:
    child.terminate()
    try:
        child.wait(_ENDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    reader.join(_ENDS)
    if child.stdout is not None and not reader.is_alive():
        child.stdout.close()
