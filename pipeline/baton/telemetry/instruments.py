"""Counters, gauges and histograms that cannot disturb the work nor grow without bound.

An instrument is declared once, in ``metrics``, with the closed set of values of each label; a
value outside the set is counted as ``other``. Instruments live on a registry of Baton's own,
never on the Prometheus client's global one, and a test can have one of its own for a while.

A process that works for several resources says so once (``label_resources``). From then on levels
that belong to one of them carry its ``namespace`` and ``name``, those of the thread that shows
them, until they are taken away with it (``forget``).
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, StrEnum
from typing import Any, Final, Literal

import prometheus_client
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

PREFIX: Final = "pramaan_"
OTHER: Final = "other"
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

# A creation time beside every counter doubles the series and nobody asks for them.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

#: Where a level belongs to a resource: which one.
RESOURCE: Final = ("namespace", "name")

_MOST_SERIES: Final = 256  # label combinations of one instrument
_MOST_RESOURCES: Final = 500  # of more, those that come last are not shown
_logger = logging.getLogger("baton.telemetry")


class _Registry:
    """One Prometheus registry and what was made on it."""

    def __init__(self) -> None:
        self.prometheus = prometheus_client.CollectorRegistry(auto_describe=False)
        prometheus_client.ProcessCollector(namespace="pramaan", registry=self.prometheus)
        self.made: dict[str, Any] = {}
        self.lock = threading.Lock()


class _Resources:
    """Which resources are shown, and which one a thread works for."""

    def __init__(self) -> None:
        self.labelled = False
        self.shown: set[tuple[str, str]] = set()
        self.mine = threading.local()

    @property
    def current(self) -> tuple[str, str] | None:
        found: tuple[str, str] | None = getattr(self.mine, "value", None)
        return found


_declared: dict[str, Instrument] = {}
_registry = _Registry()
_resources = _Resources()


class Instrument:
    """What counters, gauges and histograms share."""

    def __init__(
        self,
        name: str,
        documentation: str,
        make: Callable[..., Any],
        *,
        labels: Mapping[str, type[StrEnum]] | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self.documentation = documentation
        self.labels = dict(labels or {})
        self.of_resource = False
        self._make = make
        self._options = options
        self._values = {label: frozenset(str(value) for value in values) for label, values in self.labels.items()}
        series = 1
        for values in self._values.values():
            series *= len(values) + 1
        if not name.startswith(PREFIX) or name in _declared or series > _MOST_SERIES:
            raise ValueError(f"{name}: wrong prefix, declared twice, or {series} series")
        _declared[name] = self

    def prepare(self) -> None:
        """Show every series at zero from now on, so that the first event is seen as a rise."""
        for combination in itertools.product(*self._values.values()):
            self._child(dict(zip(self._values, combination, strict=True)))

    def _child(self, labels: Mapping[str, object]) -> Any:
        registry = _registry
        metric = registry.made.get(self.name)
        if metric is None:
            with registry.lock:
                metric = registry.made.get(self.name)
                if metric is None:
                    metric = self._make(
                        self.name,
                        self.documentation,
                        labelnames=(*self.labels, *self._own_names()),
                        registry=registry.prometheus,
                        **self._options,
                    )
                    registry.made[self.name] = metric
        own = self._own_values()
        if not self.labels and not own:
            return metric
        return metric.labels(*(self._bounded(name, labels.get(name)) for name in self.labels), *own)

    def _own_names(self) -> tuple[str, ...]:
        return RESOURCE if self.of_resource and _resources.labelled else ()

    def _own_values(self) -> tuple[str, ...]:
        return (_resources.current or ("", "")) if self._own_names() else ()

    def _bounded(self, label: str, value: object) -> str:
        word = str(value.value) if isinstance(value, Enum) else str(value)
        return word if word in self._values[label] else OTHER


class Counter(Instrument):
    """Counts events. The name ends in ``_total``."""

    def __init__(
        self,
        name: str,
        documentation: str,
        *,
        labels: Mapping[str, type[StrEnum]] | None = None,
    ) -> None:
        if not name.endswith("_total"):
            raise ValueError(f"{name}: a counter's name ends in _total")
        super().__init__(name, documentation, prometheus_client.Counter, labels=labels)

    def add(self, amount: float = 1, **labels: object) -> None:
        """Count ``amount`` events; never raises."""
        try:
            self._child(labels).inc(amount)
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet(self.name, error)


class Gauge(Instrument):
    """Shows a level."""

    def __init__(
        self,
        name: str,
        documentation: str,
        *,
        labels: Mapping[str, type[StrEnum]] | None = None,
        of_resource: bool = False,
    ) -> None:
        """:param of_resource: the level is one of a resource's, not of the process."""
        super().__init__(name, documentation, prometheus_client.Gauge, labels=labels)
        self.of_resource = of_resource

    def set(self, value: float, **labels: object) -> None:
        """Show ``value`` from now on; never raises."""
        if self.of_resource and _resources.labelled and _resources.current is None:
            return
        try:
            self._child(labels).set(value)
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet(self.name, error)

    def add(self, amount: float = 1, **labels: object) -> None:
        """Raise the level by ``amount``, which may be negative; never raises."""
        try:
            self._child(labels).inc(amount)
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet(self.name, error)

    @contextmanager
    def held(self, **labels: object) -> Iterator[None]:
        """Raise the level by one for the length of a block."""
        self.add(1, **labels)
        try:
            yield
        finally:
            self.add(-1, **labels)


class Histogram(Instrument):
    """Counts durations by their length. The name ends in ``_seconds``."""

    def __init__(
        self,
        name: str,
        documentation: str,
        *,
        buckets: Sequence[float],
        labels: Mapping[str, type[StrEnum]] | None = None,
    ) -> None:
        if not name.endswith("_seconds"):
            raise ValueError(f"{name}: a duration's name ends in _seconds")
        super().__init__(name, documentation, prometheus_client.Histogram, labels=labels, buckets=buckets)

    def observe(self, seconds: float, **labels: object) -> None:
        """Count one duration; never raises."""
        try:
            self._child(labels).observe(seconds)
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet(self.name, error)

    @contextmanager
    def timed(self, **labels: object) -> Iterator[None]:
        """Count the duration of a block, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began, **labels)


def declared() -> tuple[Instrument, ...]:
    """Every instrument, by name."""
    return tuple(_declared[name] for name in sorted(_declared))


def prepare(prefix: str) -> None:
    """Show at zero all counters whose name begins with ``prefix``; never raises."""
    for instrument in declared():
        if isinstance(instrument, Counter) and instrument.name.startswith(prefix):
            try:
                instrument.prepare()
            except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
                _quiet(instrument.name, error)


def label_resources() -> None:
    """Say, before anything is shown, that this process works for several resources."""
    _resources.labelled = True


@contextmanager
def of_resource(namespace: str, name: str) -> Iterator[None]:
    """Show levels as this resource's for the length of a block, in this thread."""
    before = _resources.current
    with _registry.lock:
        if len(_resources.shown) < _MOST_RESOURCES:
            _resources.shown.add((namespace, name))
        _resources.mine.value = (namespace, name) if (namespace, name) in _resources.shown else None
    try:
        yield
    finally:
        _resources.mine.value = before


def forget(namespace: str, name: str) -> None:
    """Show nothing of this resource any more; never raises."""
    with _registry.lock:
        _resources.shown.discard((namespace, name))
        made = [_registry.made[each.name] for each in declared() if each.of_resource and each.name in _registry.made]
    for metric in made:
        try:
            metric.remove_by_labels({"namespace": namespace, "name": name})
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet("a resource", error)


def exposition() -> bytes:
    """All that was counted, in Prometheus's text format (``CONTENT_TYPE``)."""
    return generate_latest(_registry.prometheus)


def reading(
    name: str,
    *,
    part: Literal["", "_count", "_sum"] = "",
    labels: Mapping[str, str] | None = None,
) -> float | None:
    """One series as it stands; ``None`` when nothing was counted in it."""
    return _registry.prometheus.get_sample_value(f"{name}{part}", dict(labels or {}))


@contextmanager
def isolated() -> Iterator[None]:
    """Count on a fresh registry for the length of a block, in every thread."""
    global _registry, _resources
    before, _registry, _resources = (_registry, _resources), _Registry(), _Resources()
    try:
        yield
    finally:
        _registry, _resources = before


def _quiet(name: str, error: Exception) -> None:
    """Leave a trace of telemetry's own trouble, where that is still possible."""
    with suppress(Exception):  # there is nowhere left to tell it
        _logger.debug("%s was not counted: %s", name, type(error).__name__)
