"""Waiting for a child: a condition with a deadline."""

import time
from collections.abc import Callable


def poll(condition: Callable[[], bool], *, timeout: float, interval: float = 0.02) -> bool:
    """Ask `condition` every `interval` seconds until it holds; False after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(interval)
    return True
