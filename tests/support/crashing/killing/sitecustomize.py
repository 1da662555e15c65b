"""Put on a process's PYTHONPATH, this ends one of Baton's processes by SIGKILL where a file says.

A life takes the file's first line: what the statement or call begins with, which one of those in this life, and when.
"""

import os
import signal
import sys
import threading
from pathlib import Path

if "baton.cli" in sys.orig_argv:
    import pytest

    from support.crashing.hooks import Hooks
    from support.crashing.points import Kind, Point, Tracer

    _LEFT = Path(os.environ["BATON_TEST_DEATHS"])

    class _Reaper(Tracer):
        """Counts the calls that begin so, whichever thread makes them, and does not come back from the last."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self._line = line
            self._begins, number, kind = line.rsplit(" ", 2)
            self._to_go, self._kind = int(number), Kind(kind)
            self._lock = threading.Lock()

        def before(self, label: str) -> Point | None:
            if not label.startswith(self._begins):
                return None
            with self._lock:
                self._to_go -= 1
                if self._to_go:
                    return None
            point = Point("", label, 1)
            self.reached(point, Kind.BEFORE)
            return point

        def reached(self, point: Point | None, kind: Kind) -> None:
            if point is not None and kind is self._kind:
                with _LEFT.with_suffix(".died").open("a") as died:
                    died.write(self._line + "\n")
                    died.flush()
                    os.kill(os.getpid(), signal.SIGKILL)

    _lines = _LEFT.read_text().splitlines()
    if _lines:
        _LEFT.write_text("".join(line + "\n" for line in _lines[1:]))
        _hooks = Hooks()
        _hooks.tracer = _Reaper(_lines[0])
        _hooks.watch(pytest.MonkeyPatch())
