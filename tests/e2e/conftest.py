"""The image, the node, the servers beside it and the release on it: each once for the session."""

import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from baton.demo.arrivals import Firm
from cluster.bed.asking import Kubernetes
from cluster.bed.neighbours import definitions
from e2e.bed.grounds import Grounds, laid_out, servers
from e2e.bed.images import IMAGE, PAUSE, Images
from e2e.bed.nodes import Node
from e2e.bed.programs import find_or_build_all
from e2e.bed.releases import Release, chosen, seen
from e2e.bed.watching import Prometheus, watching
from support.charts.picture import Asking, picture
from support.charts.places import REPOSITORY
from support.charts.rendering import NAMESPACE, helm
from support.parts import require, without

_PICTURE = REPOSITORY / "build" / "dashboard.svg"
_LEVELS = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


@pytest.fixture(scope="session")
def images() -> Images:
    """The store that holds the product's image, built from this tree."""
    require("root", "buildah", "debootstrap")
    images = Images()
    images.product()
    return images


@pytest.fixture(scope="session")
def image_root(images: Images) -> Iterator[Path]:
    """The files of the image."""
    with images.mounted() as root:
        yield root


@pytest.fixture(scope="session")
def node(images: Images, session_folder: Path) -> Iterator[Node]:
    """A cluster with one node that has the image."""
    require("root", "containerd", "runc", "cni", "iptables", "ipset", "conntrack", "openssl")
    programs = find_or_build_all()
    if programs is None:
        without("needs Go, to build a node once")
    with Node(session_folder / "node", programs) as node:
        for image in (PAUSE, IMAGE):
            archive = images.archive(image, session_folder / "image.tar")
            node.load(archive)
            archive.unlink()
        yield node


@pytest.fixture(scope="session")
def grounds(node: Node, session_folder: Path) -> Iterator[Grounds]:
    """The servers that the release uses."""
    with servers(session_folder) as (postgres, aws):
        grounds = laid_out(postgres, aws)
        yield grounds
        grounds.database.close()


@pytest.fixture(scope="session")
def cluster_of_node(node: Node) -> Kubernetes:
    """The cluster, with the neighbours' kinds, and a namespace that enforces the restricted standard."""
    kubernetes = node.kubernetes
    given = [argument for file in definitions() for argument in ("--filename", file)]
    kubernetes.kubectl("apply", "--server-side", *given)
    kubernetes.kubectl("wait", "--for=condition=Established", "--timeout=60s", *given)
    body = {"metadata": {"name": NAMESPACE, "labels": _LEVELS}}
    kubernetes.http.post("/api/v1/namespaces", json=body).raise_for_status()
    return kubernetes.inside(NAMESPACE)


@pytest.fixture(scope="session")
def release(cluster_of_node: Kubernetes, node: Node, grounds: Grounds) -> Release:
    """The release, installed by Helm and ready."""
    release = Release(node, grounds, helm(), cluster_of_node, chosen(node, grounds))
    release.install("--wait", "--timeout=10m")
    return release


@pytest.fixture(scope="session")
def prometheus(release: Release, session_folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that watches the release by its own rules."""
    require("prometheus")
    began = time.time()
    with watching(release, session_folder / "prometheus") as prometheus:
        yield prometheus
        _PICTURE.parent.mkdir(exist_ok=True)
        told = picture(Asking(prometheus.url, release.namespace, began, prometheus.newest()))
        _PICTURE.write_text(told, encoding="utf-8")


@pytest.fixture(scope="module")
def firm(release: Release, grounds: Grounds) -> Iterator[Firm]:
    """A firm that files documents; nobody else's are among those that it counts."""
    with grounds.firm() as firm:
        yield firm


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a test that failed what the release looked like."""
    report = yield
    release = getattr(item, "funcargs", {}).get("release")
    # after that it may be gone
    if report.failed and report.when == "call" and release is not None:
        report.sections.append(("the release", seen(release)))
    return report
