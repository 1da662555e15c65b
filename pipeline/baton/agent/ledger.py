"""Which runs the agent has met, so that asking twice starts no second work."""

import threading
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from uuid import UUID


class RunLedger:
    """Runs in work, and a bounded number of finished ones.

    With a file, finished runs survive a restart. Runs in work do not, on purpose: their work died with the process, so
    the next invocation has to start it again, and `If-None-Match` keeps even that from delivering twice.
    """

    def __init__(self, *, capacity: int, path: Path | None = None) -> None:
        self._capacity = capacity
        self._path = path
        self._lock = threading.Lock()
        self._working: set[UUID] = set()
        self._finished: OrderedDict[UUID, None] = OrderedDict()
        self._file: IO[str] | None = None
        self._written = 0
        if path is not None:
            self._load(path)
            self._rewrite(path)

    def knows(self, run_id: UUID) -> bool:
        """Whether a run is in work or finished."""
        with self._lock:
            return run_id in self._working or run_id in self._finished

    def begin(self, run_id: UUID) -> None:
        """Remember a run as in work."""
        with self._lock:
            self._working.add(run_id)

    def forget(self, run_id: UUID) -> None:
        """Undo `begin`, for a run whose work could not be taken after all."""
        with self._lock:
            self._working.discard(run_id)

    def finish(self, run_id: UUID) -> None:
        """Remember a run as finished, whatever came of it."""
        with self._lock:
            self._working.discard(run_id)
            self._finished[run_id] = None
            while len(self._finished) > self._capacity:
                self._finished.popitem(last=False)
            if self._file is not None and self._path is not None:
                self._file.write(f"{run_id}\n")
                self._file.flush()
                self._written += 1
                if self._written > 2 * self._capacity:
                    self._rewrite(self._path)

    def close(self) -> None:
        """Close the file; further runs are remembered in memory only."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _load(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                self._finished[UUID(line.strip())] = None
            except ValueError:
                # a line cut off by a crash names no run
                continue
        while len(self._finished) > self._capacity:
            self._finished.popitem(last=False)

    def _rewrite(self, path: Path) -> None:
        """Replace the file by what is remembered now, in one step."""
        if self._file is not None:
            self._file.close()
        fresh = path.with_name(path.name + ".new")
        fresh.write_text("".join(f"{run_id}\n" for run_id in self._finished), encoding="ascii")
        fresh.replace(path)
        self._file = path.open("a", encoding="ascii")
        self._written = len(self._finished)
