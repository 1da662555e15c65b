"""Levels that belong to resources, of which a process may have many."""

from collections.abc import Iterator

import pytest

from baton.telemetry import instruments, metrics
from baton.telemetry.labels import Lane


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    with instruments.isolated():
        yield


def shown() -> str:
    """What Prometheus reads."""
    return instruments.exposition().decode()


def test_each_resource_has_its_own_level_and_takes_it_along() -> None:
    """Two side by side, and one that is gone leaves nothing."""
    instruments.label_resources()
    for name in ("main", "second"):
        with instruments.of_resource("legal", name):
            metrics.LANE_OPEN.set(len(name), lane=Lane.INGEST)
            metrics.OPERATOR_READY.set(1)
    labels = {"namespace": "legal", "lane": "ingest"}
    assert instruments.reading("pramaan_lane_open_tickets", labels={**labels, "name": "main"}) == 4
    assert instruments.reading("pramaan_lane_open_tickets", labels={**labels, "name": "second"}) == 6
    instruments.forget("legal", "main")
    assert 'name="main"' not in shown()
    assert 'name="second"' in shown()
    instruments.forget("legal", "never there")


def test_a_level_of_no_resource_is_not_shown_beside_theirs() -> None:
    """Nobody would take it away."""
    instruments.label_resources()
    metrics.REPAIRS_HELD.set(1)
    assert "pramaan_reconcile_repairs_held" not in shown()


def test_a_process_of_one_loop_shows_plain_levels() -> None:
    """Whatever thread shows them."""
    with instruments.of_resource("legal", "main"):
        metrics.REPAIRS_HELD.set(1)
    assert instruments.reading("pramaan_reconcile_repairs_held") == 1


def test_no_number_of_resources_makes_metrics_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come last are not shown, until another is gone."""
    monkeypatch.setattr(instruments, "_MOST_RESOURCES", 2)
    instruments.label_resources()
    for name in ("a", "b", "c"):
        with instruments.of_resource("n", name):
            metrics.REPAIRS_HELD.set(1)
    assert 'name="b"' in shown()
    assert 'name="c"' not in shown()
    instruments.forget("n", "a")
    with instruments.of_resource("n", "c"):
        metrics.REPAIRS_HELD.set(1)
    assert 'name="c"' in shown()
