"""A real API server: the session's own, or one that `--kubeconfig` names."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from baton.operator.vocabulary import Plural
from cluster.bed.asking import CRDS, Kubernetes
from cluster.bed.building import find_or_build
from cluster.bed.replicas import Cluster
from cluster.bed.servers import ApiServer
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter
from support.parts import without
from support.waiting import wait_until


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a cluster; known where the tests of this folder are asked for by its name."""
    parser.addoption("--kubeconfig", default=None, help="the cluster to ask, in the place of the tests' own")


@pytest.fixture(scope="session")
def api_server(request: pytest.FixtureRequest, session_folder: Path) -> Iterator[ApiServer | None]:
    """The session's own server; None where somebody else's is used."""
    if request.config.getoption("--kubeconfig", None):
        yield None
        return
    binaries = find_or_build()
    if binaries is None:
        without("needs Go, to build an API server once; or a cluster that --kubeconfig names")
    if shutil.which("openssl") is None:
        without("needs openssl")
    with ApiServer(session_folder / "kubernetes", binaries=binaries) as server:
        yield server


@pytest.fixture(scope="session")
def served(request: pytest.FixtureRequest, api_server: ApiServer | None) -> Iterator[Kubernetes]:
    """A cluster that serves the resources; where it is somebody else's they are removed in the end."""
    file = api_server.kubeconfig if api_server is not None else Path(request.config.getoption("--kubeconfig"))
    with Kubernetes.reached(file) as found:
        if "baton.pramaan.dev" in found.kubectl("get", "crds", "--output", "name"):
            pytest.fail("the cluster serves Baton's resources already: they must not be touched", pytrace=False)
        found.kubectl("apply", "--server-side", "--filename", CRDS)
        found.kubectl("wait", "--for=condition=Established", "--timeout=60s", "--filename", CRDS)
        paths = [found.path(plural) for plural in Plural]
        wait_until(lambda: all(found.http.get(path).status_code == 200 for path in paths), 60, what="the new kinds")
        yield found
        found.kubectl("delete", "--ignore-not-found", "--filename", CRDS)


@pytest.fixture
def kubernetes(served: Kubernetes) -> Iterator[Kubernetes]:
    """A namespace of the test's own."""
    name = f"test-{uuid4().hex[:12]}"
    served.http.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    mine = served.inside(name)
    yield mine
    for plural in Plural:
        mine.http.delete(mine.path(plural)).raise_for_status()
    served.http.delete(f"/api/v1/namespaces/{name}").raise_for_status()


@pytest.fixture
def world(kubernetes: Kubernetes, database: Database, aws: AwsAccount, tmp_path: Path) -> Cluster:
    """A namespace, a database and an AWS account."""
    return Cluster(kubernetes, tmp_path, database, aws, Matter(database, uuid7(), uuid7()))
