"""A sample of the sweep of crashes: whoever dies, the ordinary workers come to the same end."""

from itertools import islice
from pathlib import Path

import pytest

from baton.settings.stores import Queues
from support.aws_accounts import AwsAccount
from support.crashing.bench import Bench
from support.crashing.scenes import SCENES
from support.crashing.sweeps import Sweep, distinct
from support.databases import Cluster

_SAMPLE = 10


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_death_at_every_so_many_statements_changes_no_end(cluster: Cluster, aws: AwsAccount, tmp_path: Path) -> None:
    """One document on its way to a person's review; the same points each time."""
    scene = next(each for each in SCENES if each.name == "reviewed")
    with Bench(cluster, aws, tmp_path, queues=Queues()).opened() as bench:
        sweep = Sweep(bench)
        counted = sweep.count(scene)
        deaths = distinct([counted])
        for _, death in islice(deaths, 3, None, max(1, len(deaths) // _SAMPLE)):
            sweep.die(counted, death)
    assert sweep.ran >= _SAMPLE
    assert not sweep.amiss, "\n".join(sweep.amiss)
    assert not sweep.missed, sweep.missed
