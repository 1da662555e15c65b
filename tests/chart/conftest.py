"""Helm, once for the session."""

import pytest

from support.charts.places import CHART
from support.charts.rendering import Helm, Object, helm


@pytest.fixture(scope="session")
def charts() -> Helm:
    """Helm."""
    return helm()


@pytest.fixture(scope="session")
def everything(charts: Helm) -> list[Object]:
    """The release in which everything that can be on is on."""
    return charts.render(CHART / "ci" / "everything.yaml")


@pytest.fixture(scope="session")
def small(charts: Helm) -> list[Object]:
    """The smallest whole release."""
    return charts.render(CHART / "ci" / "small.yaml")
