"""Waiting for a resource to come to where it should."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl
from baton.settings.exits import Exit

_EVERY: Final = 1.0

Body = dict[str, Any]


def wait_until(
    kubectl: Kubectl, kind: str, name: str, *, holds: Callable[[Body], bool], timeout: float, seen: Body
) -> Body:
    """Read a resource until ``holds`` says so; an API server that is away for a moment is asked again.

    :param seen: as it stands by now.
    :raises Failed: the time is over; with what the resource says of itself.
    """
    until = time.monotonic() + timeout
    found = seen
    pause = threading.Event()
    while not holds(found):
        left = until - time.monotonic()
        if left <= 0:
            raise Failed(f"after {timeout:.0f} seconds: {_state(found)}", code=Exit.TEMPORARY)
        pause.wait(min(_EVERY, left))
        try:
            found = kubectl.json("get", kind, name)
        except Failed as failure:
            if failure.code is not Exit.UNAVAILABLE:
                raise
    return found


def condition(resource: Body, kind: str) -> Body:
    """One of its conditions; empty where it has none such."""
    conditions = (resource.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def _state(resource: Body) -> str:
    ready = condition(resource, "Ready")
    if not ready:
        return "the resource has no status; does the operator run?"
    return f"Ready is {ready['status']}, {ready['reason']}: {ready['message']}"
