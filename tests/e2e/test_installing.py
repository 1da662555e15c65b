"""The chart is installed by Helm on a real node whose namespace enforces the restricted standard."""

import json

import pytest

from baton.db.access import LOGIN
from e2e.bed.grounds import KEEPER
from e2e.bed.releases import COMPONENTS, Release, chosen
from support.charts.rendering import Refused

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_every_workload_is_ready(release: Release) -> None:
    """One pod of each, which was never restarted; what the standard forbids is refused in its namespace."""
    pods = {each: release.pods(each) for each in COMPONENTS}
    assert all(len(found) == 1 for found in pods.values())
    restarts = {name: found[0]["status"]["containerStatuses"][0]["restartCount"] for name, found in pods.items()}
    assert not any(restarts.values()), restarts
    container = {"name": "root", "image": "root", "securityContext": {"runAsUser": 0}}
    refused = release.kubernetes.kubectl(
        "create",
        "--filename=-",
        given={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}, "spec": {"containers": [container]}},
        code=1,
    )
    assert 'violates PodSecurity "restricted' in refused


def test_the_migration_was_a_hook(release: Release) -> None:
    """Run by Helm as an administrator who is no superuser, before everything else, and gone since it succeeded."""
    rows = release.grounds.database.preparer.connect()
    with rows as connection:
        at, owner, mighty = connection.exec_driver_sql(
            "SELECT (SELECT version_num FROM app.alembic_version), "
            "(SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()), "
            f"(SELECT rolsuper FROM pg_roles WHERE rolname = '{KEEPER}')"
        ).one()
        names = {each[0] for each in connection.exec_driver_sql("SELECT rolname FROM pg_roles")}
    assert at
    assert (owner, mighty) == (KEEPER, False)
    assert set(LOGIN) <= names
    assert "No resources found" in release.kubernetes.kubectl("get", "jobs")


def test_helm_test_passes(release: Release) -> None:
    """A pod of the release asks every workload."""
    assert "Succeeded" in release.asked("test", "baton", "--timeout=3m")


def test_the_default_resource_is_made_and_ready(release: Release) -> None:
    """By the operator, which carries it out."""
    release.kubernetes.kubectl("wait", "--for=condition=Ready", "regrec/default", "--timeout=50s")
    told = json.loads(release.kubernetes.kubectl("get", "regrec", "default", "--output=json"))
    assert told["spec"]["mode"] == "Repair"


def test_values_that_lead_nowhere_are_refused_beforehand(release: Release) -> None:
    """A typo stops an upgrade before anything happens, with the name of it."""
    values = chosen(release.node, release.grounds)
    assert "settlr" not in values
    with pytest.raises(Refused, match="settlr"):
        release.upgrade(settlr={"replicas": 2})
