"""A release is upgraded with work in flight, to a version that cannot migrate, rolled back, and taken away."""

import json
from pathlib import Path

import pytest

from baton.demo.arrivals import Firm
from baton.demo.once import count
from baton.demo.sights import all_at_rest, look
from cluster.bed.asking import CRDS
from e2e.bed.images import IMAGE, Images
from e2e.bed.releases import COMPONENTS, NAME, Release
from e2e.test_journeys import drawn, judged
from support.charts.rendering import Refused
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

BROKEN = "localhost/baton:broken"
_BAD = """
revision, down_revision = "9999", "{}"
branch_labels = depends_on = None
def upgrade():
    from alembic import op
    op.execute("ALTER TABLE documents ADD COLUMN spoiled int DEFAULT 1 / 0")
"""


def test_an_upgrade_with_work_in_flight_loses_nothing(firm: Firm, release: Release, tmp_path: Path) -> None:
    """Every pod is replaced while documents are read and registered; all end where they must, each effect once."""
    filed = firm.upload(drawn(tmp_path, seed=3)[:20], batch=3)
    wait_until(lambda: sum(each.runs > 0 for each in look(firm).values()) > 0, 120, what="work in flight")
    before = uids(release)
    release.upgrade("--wait", "--timeout=10m", defaults={"podAnnotations": {"example.com/round": "two"}})
    assert not before & uids(release)
    wait_until(lambda: all_at_rest(filed, look(firm)), 420, interval=0.5, what="every document at rest")
    judged(firm, filed)


def test_a_version_that_cannot_migrate_changes_nothing(
    firm: Firm, release: Release, images: Images, tmp_path: Path
) -> None:
    """Helm stops with the migration's own words; what ran goes on, and a rollback brings the release to rest."""
    broken(images, release, tmp_path)
    before, shape = uids(release), columns(release)
    repository, _, tag = BROKEN.rpartition(":")
    with pytest.raises(Refused) as refused:
        release.upgrade(
            "--wait",
            "--timeout=5m",
            image={"repository": repository, "tag": tag},
            migration={"backoffLimit": 0},
        )
    assert "division by zero" in str(refused.value)
    assert uids(release) == before
    assert columns(release) == shape
    assert json.loads(release.asked("status", NAME, "--output=json"))["info"]["status"] == "failed"
    filed = firm.upload(drawn(tmp_path / "more", seed=4)[6:9], batch=4)
    wait_until(lambda: all_at_rest(filed, look(firm)), 300, interval=0.5, what="every document at rest")
    judged(firm, filed)
    release.asked("rollback", NAME, "--wait", "--timeout=5m")
    assert json.loads(release.asked("status", NAME, "--output=json"))["info"]["status"] == "deployed"
    assert {pod["spec"]["containers"][0]["image"] for each in COMPONENTS for pod in release.pods(each)} == {IMAGE}
    # the next migration that succeeds takes the failed one's Job away
    release.upgrade("--wait", "--timeout=5m")
    assert "No resources found" in release.kubernetes.kubectl("get", "jobs")


def test_it_is_taken_away_and_its_data_stay(firm: Firm, release: Release) -> None:
    """Of the release nothing but definitions, resources and data is left, in its namespace and in the cluster."""
    rows = [each.rows for each in count(firm)]
    release.asked("uninstall", NAME, "--wait", "--timeout=5m")
    # pods are given the time to end what they hold
    wait_until(lambda: not left_in_namespace(release), 120, interval=1, what="nothing left in the namespace")
    assert left_in_cluster(release) == set()
    for file in sorted(CRDS.glob("*.yaml")):
        release.kubernetes.kubectl("get", "--filename", file)
    assert "default" in release.kubernetes.kubectl("get", "regrec", "--output=name")
    assert [each.rows for each in count(firm)] == rows


def uids(release: Release) -> set[str]:
    """Which pods there are."""
    return {pod["metadata"]["uid"] for component in COMPONENTS for pod in release.pods(component)}


def columns(release: Release) -> int:
    """How many columns all tables have."""
    with release.grounds.database.preparer.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM information_schema.columns").scalar_one())


def broken(images: Images, release: Release, folder: Path) -> None:
    """The node knows an image whose newest migration fails."""
    with release.grounds.database.preparer.connect() as connection:
        newest = connection.exec_driver_sql("SELECT version_num FROM app.alembic_version").scalar_one()
    file = folder / "9999_spoiled.py"
    file.write_text(_BAD.format(newest), encoding="utf-8")
    place = "/opt/baton/lib/python3.11/site-packages/baton/db/migrations/versions/9999_spoiled.py"
    images.with_file(BROKEN, file, place)
    archive = images.archive(BROKEN, folder / "broken.tar")
    release.node.load(archive)
    archive.unlink()


def left_in_namespace(release: Release) -> set[str]:
    """Objects of every kind but events, without what every namespace has and what people made."""
    told = release.kubernetes.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    kinds = ",".join(each for each in told if not each.startswith(("events", "registrationre")))
    names = release.kubernetes.kubectl("get", kinds, "--output=name", "--ignore-not-found").split()
    return {each for each in names if NAME in each.partition("/")[2] and "nurse" not in each}


def left_in_cluster(release: Release) -> set[str]:
    """Objects of the whole cluster that carry the release's name or namespace in theirs."""
    told = release.kubernetes.kubectl("api-resources", "--namespaced=false", "--verbs=list", "--output=name").split()
    skipped = ("customresourcedefinitions", "componentstatuses", "apiservices", "namespaces")
    kinds = ",".join(each for each in told if not each.startswith(skipped))
    names = release.kubernetes.kubectl("get", kinds, "--output=name", "--ignore-not-found").split()
    return {each for each in names if release.namespace in each or f"/{NAME}" in each}
