"""How the processes are watched: spans, logs, health.

Durations are seconds and sizes bytes unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.settings import parsers
from baton.settings.fields import setting


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a log line looks."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where spans go. Telemetry that fails, hangs or is absent never disturbs the work."""

    otlp_endpoint: str | None = setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        parsers.http_url,
        default=None,
        unset="spans are made, so that traces continue, but sent nowhere",
        meaning="Base URL of an OTLP/HTTP collector; `/v1/traces` is appended.",
    )
    service_name: str = setting(
        "OTEL_SERVICE_NAME",
        parsers.text,
        default="baton",
        meaning="Name of the service in traces.",
    )
    queue_size: int = setting(
        "BATON_TRACE_QUEUE_SIZE",
        parsers.integer(16, 65_536),
        default=2048,
        meaning="Spans waiting for the collector; newer ones push out older ones.",
        unit="spans",
    )
    export_timeout: float = setting(
        "BATON_TRACE_EXPORT_TIMEOUT",
        parsers.seconds(0.1, 30),
        default=2.0,
        meaning="Longest export of one batch.",
        unit="seconds",
    )
    shutdown_timeout: float = setting(
        "BATON_TRACE_SHUTDOWN_TIMEOUT",
        parsers.seconds(0, 10),
        default=2.0,
        meaning="Longest wait at exit for spans to leave.",
        unit="seconds",
    )


@dataclass(frozen=True, slots=True)
class Logs:
    """What is logged, to standard error."""

    level: LogLevel = setting(
        "BATON_LOG_LEVEL",
        parsers.one_of(LogLevel),
        default=LogLevel.INFO,
        meaning="Least level that is logged: debug, info, warning, error.",
    )
    format: LogFormat = setting(
        "BATON_LOG_FORMAT",
        parsers.one_of(LogFormat),
        default=LogFormat.AUTO,
        meaning="json, text, or auto: text on a terminal, JSON elsewhere.",
    )


@dataclass(frozen=True, slots=True)
class Health:
    """The HTTP endpoint for probes and Prometheus."""

    port: int | None = setting(
        "BATON_HEALTH_PORT",
        parsers.port,
        default=None,
        unset="no endpoint is opened",
        meaning="Port of /livez, /readyz, /startupz and /metrics; 0 takes a free one.",
    )
    host: str = setting(
        "BATON_HEALTH_HOST",
        parsers.text,
        default="127.0.0.1",
        meaning="Address to listen on; 0.0.0.0 inside a container.",
    )
