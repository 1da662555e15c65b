"""Whoever dies, at whichever statement or call: the ordinary workers bring every document to the same end, once.

`--crash-at scene:worker/hash/occurrence/kind` has one death again; `--crash-all` dies at every occurrence of every point.
Repairs are not needed for any of it, and none are run.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from baton.settings.stores import Queues
from support.aws_accounts import AwsAccount
from support.crashing.bench import Bench
from support.crashing.scenes import SCENES
from support.crashing.sweeps import Sweep, distinct, pairs
from support.databases import Cluster

pytestmark = [pytest.mark.chaos]

_STANDARD = Queues(ingest="baton-ingest", registrar="baton-registrar", results="baton-results")


@pytest.fixture
def sweep(cluster: Cluster, aws: AwsAccount, tmp_path: Path) -> Iterator[Sweep]:
    """With FIFO queues."""
    with Bench(cluster, aws, tmp_path, queues=Queues()).opened() as bench:
        yield Sweep(bench)


@pytest.mark.timeout(14_400)
def test_a_death_at_any_statement_or_call_changes_no_end(
    sweep: Sweep, request: pytest.FixtureRequest, tell: Callable[[str], None]
) -> None:
    """Each worker dies once at each of its statements and calls, in each way that differs."""
    at = request.config.getoption("--crash-at")
    counted = [sweep.count(scene) for scene in SCENES]
    every = [(each, death) for each in counted for death in each.deaths()]
    chosen = every if request.config.getoption("--crash-all") else distinct(counted)
    if at is not None:
        chosen = [(each, death) for each, death in every if f"{each.scene.name}:{death.name}" == at]
        assert chosen, f"no scene has the point {at}"
    for each, death in chosen:
        sweep.die(each, death)
    labels = {(point.stage, point.label) for each in counted for point in each.points}
    covered = {(death.point.stage, death.point.label) for _, death in sweep.died}
    points = sum(len(each.points) for each in counted)
    tell(f"{len(sweep.died)} deaths at {len(covered)} of {len(labels)} statements and calls; {points} points")
    assert not sweep.amiss, "\n".join(sweep.amiss)
    assert not sweep.missed, sweep.missed
    if at is None:
        assert not labels - covered, sorted(labels - covered)
        assert len(labels) > 100


@pytest.mark.timeout(1200)
def test_two_deaths_in_one_run_change_no_end(
    sweep: Sweep, request: pytest.FixtureRequest, tell: Callable[[str], None]
) -> None:
    """Pairs of deaths, drawn by chance."""
    seed = request.config.getoption("--seed") or 1
    for scene in SCENES[:3]:
        counted = sweep.count(scene)
        for two in pairs(counted, number=6, seed=seed):
            sweep.die(counted, *two)
    tell(f"{sweep.ran} pairs, --seed {seed}, {len(sweep.died)} deaths")
    assert not sweep.amiss, "\n".join(sweep.amiss)


@pytest.mark.timeout(1200)
def test_standard_queues_with_doubles_out_of_order_change_no_end(
    cluster: Cluster, aws: AwsAccount, tmp_path: Path
) -> None:
    """Every message twice, the first time in the wrong order, and a death in each run."""
    with Bench(cluster, aws, tmp_path, queues=_STANDARD).opened() as bench:
        sweep = Sweep(bench, doubling=True)
        for scene in SCENES[:3]:
            counted = sweep.count(scene)
            deaths = [death for _, death in distinct([counted])]
            for death in islice(deaths, 0, None, max(1, len(deaths) // 8)):
                sweep.die(counted, death)
    assert sweep.ran >= 24
    assert not sweep.amiss, "\n".join(sweep.amiss)
