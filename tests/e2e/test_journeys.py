"""Documents of all kinds go through the installed release, in peace and while everything is taken away from it."""

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from baton.aws.clients import Clients
from baton.aws.queues import configured
from baton.casefile.exhibits import Exhibit, make_case_file
from baton.demo.arrivals import Filed, Firm
from baton.demo.once import count
from baton.demo.sights import all_at_rest, look
from baton.settings.loading import load
from baton.settings.stores import Queues
from e2e.bed.grounds import Grounds
from e2e.bed.releases import COMPONENTS, Release
from e2e.bed.watching import Prometheus
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

#: Seconds that a batch may take; two processors do all of it.
_PATIENCE = 600.0
_BATCH = 30


def test_thirty_documents_end_where_they_must(firm: Firm, prometheus: Prometheus, tmp_path: Path) -> None:
    """Of every kind that a matter brings, each where its verdict was written down; each effect once; no alert."""
    began = time.time()
    filed = firm.upload(drawn(tmp_path, seed=1), batch=1)
    at_rest(firm, filed, _PATIENCE)
    judged(firm, filed)
    assert prometheus.fired(since=began) == set()


def test_nothing_is_lost_whatever_is_taken_away(
    firm: Firm, release: Release, grounds: Grounds, prometheus: Prometheus, tmp_path: Path
) -> None:
    """Every pod deleted once, the kubelet restarted, a queue emptied, artifacts' events lost, no agent for a while."""
    clients = Clients(load(grounds.account.environ).aws)
    ingest, _, results = configured(clients, Queues())
    began = time.time()
    filed = list(firm.upload(drawn(tmp_path, seed=2), batch=2))
    told: set[str] = set()

    def until(condition: Callable[[], bool], what: str) -> None:
        def seen() -> bool:
            told.update(discrepancies(release))
            return condition()

        wait_until(seen, _PATIENCE, interval=0.5, what=what)

    until(lambda: indexed(firm, filed) >= 3, "the first documents")
    release.kubernetes.kubectl("scale", "deployment/baton-agent", "--replicas=0")
    ingest.purge()
    release.node.restart_kubelet()
    for component in COMPONENTS:
        if component != "agent":
            deleted(release, component)
    release.wait(*(each for each in COMPONENTS if each != "agent"))
    before = asked_of(grounds)
    release.scale("agent", 1)
    until(lambda: asked_of(grounds) > before, "the agent's work")
    results.purge()
    deleted(release, "agent")
    # what was emptied out before anybody had received it counts as lost once its queue was seen empty for five minutes
    until(lambda: all_at_rest(filed, look(firm)), "the end of it")
    judged(firm, filed)
    assert told, "kubectl get regrec never showed that something was stuck"
    print(f"found on the way: {sorted(told)}; alerts: {sorted(prometheus.fired(since=began))}")  # noqa: T201
    clients.close()


def drawn(folder: Path, *, seed: int) -> Sequence[Exhibit]:
    """Thirty documents: two matters of it, whole and in part."""
    files = (make_case_file(folder / str(each), seed=each) for each in (seed * 10, seed * 10 + 1))
    return list(itertools.islice(itertools.chain.from_iterable(files), _BATCH))


def at_rest(firm: Firm, filed: Sequence[Filed], within: float) -> None:
    """Wait until nobody but a person will move any of them."""
    began = time.monotonic()
    wait_until(lambda: all_at_rest(filed, look(firm)), within, interval=0.5, what="every document at rest")
    print(f"{len(filed)} documents in {time.monotonic() - began:.0f} s")  # noqa: T201


def judged(firm: Firm, filed: Sequence[Filed]) -> None:
    """Each is where its verdict says, and nothing happened twice."""
    seen = look(firm)
    assert not [(each.exhibit.name, seen[each.id]) for each in filed if not seen[each.id].as_expected(each.exhibit)]
    counts = count(firm)
    assert sum(each.rows for each in counts) > len(filed)
    assert not [each for each in counts if not each.once]


def indexed(firm: Firm, filed: Sequence[Filed]) -> int:
    """How many have been read."""
    seen = look(firm)
    return sum(seen[each.id].processing == "indexed" for each in filed if each.id in seen)


def asked_of(grounds: Grounds) -> int:
    """How many runs the agent has ended."""
    with grounds.database.preparer.connect() as connection:
        told = connection.exec_driver_sql("SELECT count(*) FROM agents.agent_run WHERE state = 'delivered'")
        return int(told.scalar_one())


def deleted(release: Release, component: str) -> None:
    """A workload's pod is deleted, and another one comes."""
    for pod in release.pods(component):
        release.kubernetes.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")


def discrepancies(release: Release) -> set[str]:
    """What kubectl shows of the resource: what is found just now."""
    path = "--output=jsonpath={range .status.discrepancies[*]}{.name}{'\\n'}{end}"
    return set(release.kubernetes.kubectl("get", "regrec", "default", path).split())
