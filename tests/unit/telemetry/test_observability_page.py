"""The page on observability names what there is."""

from pathlib import Path

import pytest

from baton.telemetry import instruments, metrics
from baton.telemetry.names import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "observability.md"


@pytest.mark.check
def test_every_metric_has_its_row() -> None:
    """Name, labels and meaning of each metric stand in docs/observability.md, in order of their names.

    What is one of a resource's says so.
    """
    assert metrics.RELAY_DURATION in instruments.declared()
    rows = [
        f"| `{each.name}` | {', '.join([*(f'`{label}`' for label in each.labels), *['resource'] * each.of_resource])}"
        f" | {each.documentation} |"
        for each in instruments.declared()
        if not each.name.startswith("pramaan_tests_")
    ]
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8")


@pytest.mark.check
def test_every_span_has_its_row() -> None:
    """Name and kind of each span stand in docs/observability.md."""
    page = PAGE.read_text(encoding="utf-8")
    for name, kind in KINDS.items():
        assert f"| `{name.value}` | {kind.value} |" in page
