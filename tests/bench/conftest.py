"""What benchmarks share: a durable server, the scale, and the figures that they leave behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from support.databases import Cluster, Database
from support.figures import Figures

#: A server as one would run it on a machine of two cores and 24 GiB; durability is Postgres's default.
SERVER = {
    "shared_buffers": "4GB",
    "effective_cache_size": "12GB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
    "max_connections": "200",
}
_FIGURES = pytest.StashKey[Figures]()


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Figures:
    """The run's figures."""
    found = Figures()
    request.config.stash[_FIGURES] = found
    return found


@pytest.fixture(autouse=True)
def _part(request: pytest.FixtureRequest, figures: Figures) -> None:
    """Figures belong to what their module is about."""
    figures.part = (request.module.__doc__ or "").partition("\n")[0].rstrip(".")


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> float:
    """The part of the full size that is asked for."""
    return float(request.config.getoption("--bench-scale"))


@pytest.fixture
def durable(state_folder: Path, postgres_binaries: PostgresBinaries) -> Iterator[Database]:
    """A migrated database on a durable server of this test's own."""
    with EmbeddedPostgres(state_folder / "postgres", binaries=postgres_binaries, settings=SERVER) as server:
        database = Cluster(server).create()
        yield database
        database.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the figures; one that misses its target fails the run, after all have been taken."""
    found = session.config.stash.get(_FIGURES, None)
    if found is None or not found.found:
        return
    path = found.write()
    print(f"\nfigures: {path}")  # noqa: T201
    for each in found.missed:
        print(f"missed: {each}")  # noqa: T201
    if found.missed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
