"""Where spans go: the process's tracer and its exporter.

Spans are made whether or not a collector is configured, so that a trace continues through a
process that exports nothing. Exporting has a small queue, short time-outs and a bounded end; the
SDK's own handler at exit, which may wait for half a minute, is not used.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Tracer

from baton.settings.watching import Telemetry

MOST_LINKS: Final = 100
"""Links of one span at most."""

_BATCH: Final = 256
_DELAY_MS: Final = 1000

_logger = logging.getLogger("baton.telemetry")
_lock = threading.Lock()
_provider: TracerProvider | None = None
_tracer: Tracer | None = None


def start(telemetry: Telemetry, *, component: str, version: str = "") -> None:
    """Export the process's spans from now on, if a collector is configured.

    Never raises: a collector that cannot be set up is logged and done without.
    """
    try:
        provider = _made(
            {
                "service.name": telemetry.service_name,
                "service.version": version,
                "baton.component": component,
            }
        )
        if telemetry.otlp_endpoint is not None:
            provider.add_span_processor(
                BatchSpanProcessor(
                    _exporter(telemetry.otlp_endpoint, telemetry.export_timeout),
                    max_queue_size=telemetry.queue_size,
                    max_export_batch_size=min(_BATCH, telemetry.queue_size),
                    schedule_delay_millis=_DELAY_MS,
                )
            )
    except Exception as error:  # noqa: BLE001 - telemetry must not keep a process from starting
        _logger.warning("tracing could not be started: %s", type(error).__name__)
        return
    before = _use(provider)
    if before is not None:
        _end(before)


def _exporter(endpoint: str, timeout: float) -> SpanExporter:
    # a third of a process's start, for those who export nothing
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=timeout)


def stop(*, within: float = 2.0) -> bool:
    """Send what is still queued and stop exporting, in at most ``within`` seconds.

    Returns:
        Whether everything was done in time. Spans of a collector that hangs are lost; the thread
        that waits for it is a daemon and does not hold up the exit.
    """
    provider = _use(None)
    if provider is None:
        return True
    ending = _end(provider)
    if ending is None:
        return False
    ending.join(within)
    return not ending.is_alive()


def tracer() -> Tracer:
    """The tracer in use; the first caller gets one made that exports nothing."""
    found = _tracer
    if found is None:
        with _lock:
            found = _tracer
        if found is None:
            _use(_made({"service.name": "baton"}))
            found = _tracer
    if found is None:  # stopped in between by another thread
        return _made({"service.name": "baton"}).get_tracer("baton")
    return found


def _use(provider: TracerProvider | None) -> TracerProvider | None:
    """Put a provider in use and return the one before."""
    global _provider, _tracer  # noqa: PLW0603 - the SDK's own global can be set only once
    with _lock:
        before = _provider
        _provider = provider
        _tracer = None if provider is None else provider.get_tracer("baton")
    return before


def _made(attributes: dict[str, str]) -> TracerProvider:
    return TracerProvider(
        resource=Resource.create({name: value for name, value in attributes.items() if value}),
        span_limits=SpanLimits(max_links=MOST_LINKS, max_attribute_length=256),
        shutdown_on_exit=False,
    )


def _end(provider: TracerProvider) -> threading.Thread | None:
    """Shut a provider down in the background; ``None``: no thread was to be had."""
    ending = threading.Thread(target=_ended, args=(provider,), name="tracing-stop", daemon=True)
    try:
        ending.start()
    except RuntimeError:
        return None
    return ending


def _ended(provider: TracerProvider) -> None:
    try:
        provider.shutdown()
    except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
        _logger.debug("tracing did not stop cleanly: %s", type(error).__name__)
