"""Watching one process: logs, spans and the health endpoint from its start to its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from baton.settings.model import Settings
from baton.telemetry import fields, health, logs, tracing
from baton.telemetry.progress import Progress

_logger = logging.getLogger("baton.process")


@dataclass(frozen=True, slots=True)
class Watch:
    """What a watched process has at hand."""

    progress: Progress
    port: int | None
    """Where the health endpoint listens; ``None``: there is none."""


@contextmanager
def watched(settings: Settings, *, component: str, version: str = "") -> Iterator[Watch]:
    """Watch the process for the length of a block.

    Leaving takes no longer than ``telemetry.shutdown_timeout`` and one second.

    Raises:
        OSError: when the health endpoint's port is taken; everything else of telemetry that
            cannot be started is logged and done without.
    """
    progress = Progress()
    logs.start(settings.logs, component=component)
    tracing.start(settings.telemetry, component=component, version=version)
    server: health.HealthServer | None = None
    try:
        server = health.opened(settings.health, progress)
        port = None if server is None else server.port
        _logger.info("started", extra=fields.of(version=version, port=port))
        yield Watch(progress, port)
    finally:
        if server is not None:
            server.close()
        if not tracing.stop(within=settings.telemetry.shutdown_timeout):
            _logger.warning("spans were left behind: the collector did not answer in time")
        _logger.info("ended")
