"""Taking from a process what it does not need before it touches a stranger's file."""

import ctypes
import os
import resource
import signal
from typing import Final

from baton.extraction.limits import Limits

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_NICENESS: Final = 10
_OPEN_FILES: Final = 64

# Looked up before any fork: between fork and exec nothing may be loaded.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, however that happens."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def confine(limits: Limits, *, parent: int) -> None:
    """Bound this process and all it will start; there is no way back.

    It becomes the leader of its own process group, so that the group can be killed as one.
    """
    os.setpgid(0, 0)
    die_with_parent()
    if os.getppid() != parent:
        # The parent died before the kernel was told to watch it.
        os._exit(os.EX_OSERR)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.nice(_NICENESS)
    for what, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 2),
        (resource.RLIMIT_FSIZE, limits.written_bytes, limits.written_bytes),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
    ):
        ceiling = resource.getrlimit(what)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)  # noqa: PLW2901
        resource.setrlimit(what, (soft, hard))
