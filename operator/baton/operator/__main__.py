"""``python -m baton.operator``: the operator, until it is told to stop."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import sys
import threading
from typing import Final

from baton.operator.access import AccessMissing
from baton.operator.process import run
from baton.settings.errors import SettingsError
from baton.settings.exits import Exit
from baton.settings.loading import load

#: glibc's name for how many heaps threads share. By itself it makes many, each of which keeps what it once needed.
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def main() -> int:
    """Run it; returns the exit code."""
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
    # What the imports have left stays for good; going through it is most of what a full collection costs at rest.
    gc.collect()
    gc.freeze()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(load(), stop=stop)
    except (SettingsError, AccessMissing) as error:
        sys.stderr.write(f"baton.operator: {error}\n")
        return Exit.SETTINGS
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
