"""Named points at which a chaos test may end the process; inert otherwise.

Most crashes are planted from outside, at statements and calls. A point stands here only where a step is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_hooks: list[Callable[[str], None]] = []


def reach(name: str) -> None:
    """Say that the process is at ``name``, e.g. ``relay.sent``."""
    for hook in _hooks:
        hook(name)


@contextmanager
def install(hook: Callable[[str], None]) -> Iterator[None]:
    """Call ``hook`` with each point that is reached inside the block; for tests."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)
