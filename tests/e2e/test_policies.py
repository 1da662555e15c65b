"""Who may reach whom: tried from inside the pods, with the policies enforced by the node."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from e2e.bed.images import IMAGE
from e2e.bed.releases import NAME, Release
from e2e.bed.sandboxes import HOST, NODE
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

#: What each workload reaches; everything else is refused. `health` is another workload's port of probes and metrics.
MAY = {
    "operator": {"dns", "database", "aws", "apiserver"},
    "ingest-relay": {"dns", "database", "aws"},
    "registrar-relay": {"dns", "database", "aws"},
    "extractor": {"dns", "database", "aws"},
    "registrar": {"dns", "database", "aws", "agent"},
    "settler": {"dns", "database", "aws"},
    "agent": {"dns", "aws"},
}
_TRYING = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reached(place):
    name, host, port = place
    try:
        socket.create_connection((host, port), timeout=4).close()
    except OSError:
        return None
    return name
places = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(places)) as pool:
    print(json.dumps([each for each in pool.map(reached, places) if each]))
"""


@pytest.mark.parametrize("component", MAY)
def test_a_workload_reaches_what_it_needs_and_nothing_else(
    release: Release, places: Mapping[str, tuple[str, int]], component: str
) -> None:
    """Database, queues, API server, agent, names; another's port, another server of the same machine."""
    neighbour = "settler" if component != "settler" else "extractor"
    tried = [(name, *where) for name, where in places.items()]
    tried.append(("health", address(release, neighbour), 8080))
    told = release.inside(component, "python", "-c", _TRYING, json.dumps(tried))
    assert set(json.loads(told)) == MAY[component]


def test_only_whoever_may_watch_reaches_the_metrics(release: Release, stranger: str) -> None:
    """This machine is among those that may, a pod of another namespace is not; nobody but the registrar asks the agent."""
    places = [(component, address(release, component), 8080) for component in MAY]
    places.append(("asking", address(release, "agent"), 8085))
    assert {name for name, host, port in places if answers(host, port)} == set(MAY)
    told = release.node.kubernetes.inside(stranger).kubectl(
        "exec", "stranger", "--", "python", "-c", _TRYING, json.dumps(places)
    )
    assert json.loads(told) == []


@pytest.fixture(scope="module")
def places(release: Release) -> Iterator[Mapping[str, tuple[str, int]]]:
    """Where connections might lead."""
    with listening() as elsewhere:
        yield {
            "dns": (NODE, 53),
            "database": (HOST, release.grounds.server.port),
            "aws": (HOST, release.grounds.aws_port),
            "apiserver": ("10.96.0.1", 443),
            "agent": (f"{NAME}-agent", 8085),
            "elsewhere": (HOST, elsewhere),
            "kubelet": (NODE, 10250),
        }


@pytest.fixture(scope="module")
def stranger(release: Release) -> Iterator[str]:
    """The namespace of a pod that has nothing to do with the release."""
    name = "strangers"
    kubernetes = release.node.kubernetes
    kubernetes.http.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    inside = kubernetes.inside(name)
    container = {"name": "stranger", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "infinity"]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    wait_until(lambda: "created" in inside.kubectl("create", "--filename=-", given=body, code=None), 60)
    inside.kubectl("wait", "--for=condition=Ready", "pod/stranger", "--timeout=50s")
    yield name
    kubernetes.http.delete(f"/api/v1/namespaces/{name}").raise_for_status()


def address(release: Release, component: str) -> str:
    """Where a workload's pod is."""
    found: str = release.pods(component)[0]["status"]["podIP"]
    return found


def answers(host: str, port: int) -> bool:
    """Whether this machine reaches a port."""
    try:
        socket.create_connection((host, port), timeout=4).close()
    except OSError:
        return False
    return True


@contextmanager
def listening() -> Iterator[int]:
    """A server that is nobody's business, on the address where the others are."""
    with socket.create_server((HOST, 0)) as server:
        stop = threading.Event()

        def accept() -> None:
            server.settimeout(0.2)
            while not stop.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1]
        stop.set()
        thread.join()
