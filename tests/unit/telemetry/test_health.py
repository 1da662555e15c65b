"""The health endpoint answers by itself, whatever the work is doing."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from baton.settings.model import Settings
from baton.settings.watching import Health, LogLevel, Logs
from baton.telemetry import instruments, logs, metrics, process
from baton.telemetry.health import HealthServer, opened
from baton.telemetry.progress import Progress


@pytest.fixture
def progress() -> Progress:
    """Signs of life that the test gives."""
    return Progress()


@pytest.fixture
def server(progress: Progress) -> Iterator[HealthServer]:
    """An open endpoint."""
    found = HealthServer(Health(port=0), progress)
    yield found
    found.close()


def get(server: HealthServer, path: str) -> httpx.Response:
    """One request."""
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", timeout=5)


def test_probes_follow_the_signs_of_life(server: HealthServer, progress: Progress) -> None:
    """503 until the first success, 200 after it, with the reasons as JSON."""
    progress.declare("relay", silent_after=60)
    assert get(server, "/livez").status_code == 200
    assert get(server, "/readyz").status_code == 503
    assert get(server, "/startupz").json()["details"]["relay"] == "has not gone round yet"
    progress.beat("relay")
    progress.ready("relay")
    progress.started()
    assert [get(server, path).status_code for path in ("/readyz", "/startupz")] == [200, 200]


def test_a_stuck_loop_fails_liveness(server: HealthServer, progress: Progress) -> None:
    """A loop past its bound is 503 by name."""
    progress.declare("relay", silent_after=-1)
    answer = get(server, "/livez")
    assert answer.status_code == 503
    assert "relay" in answer.json()["details"]


def test_metrics_are_in_prometheus_text(server: HealthServer) -> None:
    """What was counted is exposed with the content type that Prometheus expects."""
    with instruments.isolated():
        metrics.RELAY_TICKETS.add(lane="ingest", outcome="sent")
        answer = get(server, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'pramaan_document_ingest_relay_tickets_total{lane="ingest",outcome="sent"} 1.0' in answer.text


def test_other_paths_and_methods_are_refused(server: HealthServer) -> None:
    """There is nothing else to find, and nothing to post."""
    assert get(server, "/").status_code == 404
    assert httpx.post(f"http://127.0.0.1:{server.port}/livez", timeout=5).status_code == 405
    head = httpx.head(f"http://127.0.0.1:{server.port}/livez", timeout=5)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("clients", [30, 200])
def test_slow_clients_do_not_keep_a_probe_waiting(server: HealthServer, clients: int) -> None:
    """Connections that never finish asking leave the endpoint answering at once, also more of them than are let in."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(clients)]
    try:
        for each in idle:
            with suppress(OSError):  # closed already, to make room
                each.sendall(b"GET /livez HTTP/1.1\r\n")
        began = time.perf_counter()
        assert get(server, "/livez").status_code == 200
        assert time.perf_counter() - began < 2
    finally:
        for each in idle:
            each.close()


def test_closing_frees_the_port_and_ends_the_threads(progress: Progress) -> None:
    """After closing, the same port can be opened again, and no thread is left."""
    before = set(threading.enumerate())
    for _ in range(3):
        server = HealthServer(Health(port=0), progress)
        began = time.perf_counter()
        server.close()
        assert time.perf_counter() - began < 1.5
        again = HealthServer(Health(port=server.port), progress)
        again.close()
    assert {each for each in set(threading.enumerate()) - before if each.name == "health"} == set()


def test_a_taken_port_is_an_error_at_the_start(server: HealthServer, progress: Progress) -> None:
    """Two processes on one port is a fault that the second one names."""
    with pytest.raises(OSError, match="in use"):
        HealthServer(Health(port=server.port), progress)


def test_a_name_for_several_addresses_opens_one(progress: Progress) -> None:
    """`localhost` may stand for two addresses; one socket is opened."""
    server = HealthServer(Health(port=0, host="localhost"), progress)
    assert server.port > 0
    server.close()


def test_without_a_port_nothing_is_opened(progress: Progress) -> None:
    """No port, no endpoint."""
    assert opened(Health(), progress) is None


def test_a_watched_process_has_all_of_it(caplog: pytest.LogCaptureFixture) -> None:
    """Logs, spans and endpoint run for the length of the block, and the endpoint is gone after it."""
    settings = Settings(health=Health(port=0), logs=Logs(level=LogLevel.INFO))
    with caplog.at_level(logging.INFO), process.watched(settings, component="tests") as watch:
        url = f"http://127.0.0.1:{watch.port}/livez"
        assert httpx.get(url, timeout=5).status_code == 200
    logs.stop()
    assert [record.message for record in caplog.records if record.name == "baton.process"] == ["started", "ended"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, timeout=5)
