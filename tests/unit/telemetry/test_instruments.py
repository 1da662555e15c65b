"""Metrics are bounded, named as they should be, and never in the way."""

import threading
from collections.abc import Iterator
from enum import StrEnum

import prometheus_client
import pytest

from baton.telemetry import instruments, metrics
from baton.telemetry.labels import Lane, SendOutcome

TICKETS = metrics.RELAY_TICKETS.name


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    with instruments.isolated():
        yield


def test_every_metric_is_named_after_the_platform() -> None:
    """All names carry the prefix, and the relay's duration has the name that dashboards know."""
    assert all(each.name.startswith("pramaan_") for each in instruments.declared())
    metrics.RELAY_DURATION.observe(0.1, lane=Lane.INGEST)
    text = instruments.exposition().decode()
    assert 'pramaan_document_ingest_relay_duration_seconds_bucket{lane="ingest",le="0.1"} 1.0' in text
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert all(name.startswith("pramaan_") for name in names)


def test_a_value_outside_the_closed_set_is_other() -> None:
    """However many strange values come, they are one series."""
    for n in range(1000):
        metrics.RELAY_TICKETS.add(lane=f"lane-{n}", outcome=SendOutcome.SENT)
    metrics.RELAY_TICKETS.add(outcome="sent")
    assert instruments.reading(TICKETS, labels={"lane": "other", "outcome": "sent"}) == 1001
    assert instruments.exposition().decode().count(f"{TICKETS}{{") == 1


def test_words_and_enum_members_count_alike() -> None:
    """Another component's enum counts by its value."""

    class Theirs(StrEnum):
        INGEST = "ingest"

    metrics.RELAY_TICKETS.add(2, lane=Theirs.INGEST, outcome="sent")
    metrics.RELAY_TICKETS.add(1, lane="ingest", outcome=SendOutcome.SENT)
    assert instruments.reading(TICKETS, labels={"lane": "ingest", "outcome": "sent"}) == 3


def test_counting_wrongly_never_raises() -> None:
    """A negative count, a text for a number or an unknown label is lost, not raised."""
    metrics.RELAY_TICKETS.add(-1, lane="ingest", outcome="sent")
    metrics.RELAY_TICKETS.add("many", lane="ingest", outcome="sent")  # type: ignore[arg-type]
    metrics.RELAY_TICKETS.add(1, lane="ingest", outcome="sent", firm="f")
    metrics.RELAY_LAG.set("late")  # type: ignore[arg-type]
    metrics.RELAY_DURATION.observe(None)  # type: ignore[arg-type]
    assert instruments.reading(TICKETS, labels={"lane": "ingest", "outcome": "sent"}) == 1


def test_nothing_reaches_the_client_librarys_global_registry() -> None:
    """Baton's metrics are on a registry of their own."""
    metrics.RELAY_TICKETS.add(lane="ingest", outcome="sent")
    assert prometheus_client.REGISTRY.get_sample_value(TICKETS, {"lane": "ingest", "outcome": "sent"}) is None


def test_an_isolated_registry_forgets() -> None:
    """What a test counts is not seen by the next."""
    with instruments.isolated():
        metrics.RELAY_TICKETS.add(lane="ingest", outcome="sent")
        assert instruments.reading(TICKETS, labels={"lane": "ingest", "outcome": "sent"}) == 1
    assert instruments.reading(TICKETS, labels={"lane": "ingest", "outcome": "sent"}) is None


def test_prepared_counters_stand_at_zero() -> None:
    """The first failure is a rise, because the series was there before it."""
    instruments.prepare("pramaan_document_ingest_relay")
    assert instruments.reading(TICKETS, labels={"lane": "registrar", "outcome": "refused"}) == 0
    assert instruments.reading("pramaan_consumer_received_total", labels={"queue": "ingest"}) is None


def test_blocks_are_timed_and_held_however_they_end() -> None:
    """A block that raises is still timed, and lets go of its gauge."""

    def work() -> None:
        assert instruments.reading("pramaan_consumer_in_flight", labels={"queue": "ingest"}) == 1
        raise KeyError

    with (
        pytest.raises(KeyError),
        metrics.CONSUMER_DURATION.timed(queue="ingest"),
        metrics.CONSUMER_IN_FLIGHT.held(queue="ingest"),
    ):
        work()
    assert instruments.reading("pramaan_consumer_in_flight", labels={"queue": "ingest"}) == 0
    name = "pramaan_consumer_handle_duration_seconds"
    assert instruments.reading(name, part="_count", labels={"queue": "ingest"}) == 1


def test_threads_lose_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """First use and counting from many threads at once add up, though making an instrument takes its time."""
    barrier, pause, make = threading.Barrier(8), threading.Event(), metrics.RELAY_TICKETS._make

    def slowly(*arguments: object, **options: object) -> object:
        pause.wait(0.05)
        return make(*arguments, **options)

    monkeypatch.setattr(metrics.RELAY_TICKETS, "_make", slowly)

    def count() -> None:
        barrier.wait()
        for _ in range(500):
            metrics.RELAY_TICKETS.add(lane="ingest", outcome="sent")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert instruments.reading(TICKETS, labels={"lane": "ingest", "outcome": "sent"}) == 4000


@pytest.mark.parametrize("name", ["relay_total", "pramaan_relay", TICKETS])
def test_a_wrongly_declared_counter_is_refused(name: str) -> None:
    """Prefix, suffix and uniqueness are checked where a metric is declared."""
    with pytest.raises(ValueError, match=r"pramaan_|relay"):
        instruments.Counter(name, "x")


def test_labels_that_multiply_are_refused() -> None:
    """A metric cannot be declared with more than a few hundred series."""
    wide = StrEnum("wide", [f"v{n}" for n in range(20)])  # type: ignore[misc]
    with pytest.raises(ValueError, match="series"):
        instruments.Counter("pramaan_wide_total", "x", labels={"a": wide, "b": wide})
