"""Says when a relay cannot do its work: in a metric, in the readiness of its process, and once in the log."""

from __future__ import annotations

import logging
import time

from baton.db.states import Lane
from baton.telemetry import fields, metrics
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)


class Stall:
    """Whether one relay has been failing for too long. A relay with nothing to send cannot stall on its queue."""

    def __init__(self, *, lane: Lane, after: float, progress: Progress, name: str) -> None:
        """:param after: seconds of failing, without one success, that make a stall."""
        self._lane = lane
        self._after = after
        self._progress = progress
        self._name = name
        self._since: float | None = None
        self._reason = ""
        self._stalled = False
        metrics.RELAY_STALLED.set(0, lane=lane)

    @property
    def stalled(self) -> bool:
        """Whether it is stalled now."""
        return self._stalled

    def failed(self, reason: str) -> None:
        """Note a failure; ``reason`` is shown by the process's readiness."""
        if self._since is None:
            self._since = time.monotonic()
        self._reason = reason
        self.look()

    def look(self) -> None:
        """Turn failing into a stall once it has lasted."""
        if self._since is None or self._stalled or time.monotonic() - self._since < self._after:
            return
        self._stalled = True
        metrics.RELAY_STALLED.set(1, lane=self._lane)
        self._progress.not_ready(self._name, f"stalled: {self._reason}")
        _log.error("relay stalled", extra=fields.of(lane=self._lane, detail=self._reason))

    def succeeded(self) -> None:
        """Note a success."""
        self._since = None
        self._progress.ready(self._name)
        if self._stalled:
            self._stalled = False
            metrics.RELAY_STALLED.set(0, lane=self._lane)
            _log.info("relay goes on", extra=fields.of(lane=self._lane))
