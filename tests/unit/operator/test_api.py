"""The calls themselves: over connections that are kept, and that do not die unseen."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from baton.operator.access import Access
from baton.operator.api import Api, ApiAway, ApiConflict, ApiError, ApiMissing, ApiRefused
from baton.operator.vocabulary import Plural


class Server(ThreadingHTTPServer):
    """Answers what it is told to, and remembers who asked for what."""

    daemon_threads = True
    status = 200
    body = b'{"items": []}'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[str] = []
        self.callers: set[object] = set()


class Answering(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Answer."""
        self.server.asked.append(self.path)
        self.server.callers.add(self.client_address)
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """One on the loopback address."""
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    """Its client, behind a path of somebody else's."""
    made = Api(Access(server=f"http://127.0.0.1:{server.server_port}/clusters/c-1/", namespace="law"))
    yield made
    made.close()


def test_questions_share_a_connection_whose_death_is_noticed(server: Server, api: Api) -> None:
    """While it is idle, too; and what stands before the API's own path stays there."""
    for _ in range(3):
        assert api.resources(Plural.RECONCILERS, "law") == []
    assert len(server.callers) == 1
    path = "/clusters/c-1/apis/baton.pramaan.dev/v1alpha1/namespaces/law/registrationreconcilers"
    assert set(server.asked) == {path}
    pool = api._pool.connection_from_url(f"http://127.0.0.1:{server.server_port}/").pool
    assert pool is not None
    connection = pool.get()
    assert connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
    pool.put(connection)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, ApiRefused),
        (403, ApiRefused),
        (404, ApiMissing),
        (409, ApiConflict),
        (422, ApiRefused),
        (429, ApiAway),
        (500, ApiAway),
        (503, ApiAway),
    ],
)
def test_each_answer_has_its_error(server: Server, api: Api, status: int, kind: type[ApiError]) -> None:
    """None is asked again by itself, and none is followed elsewhere."""
    server.status = status
    with pytest.raises(ApiError) as refused:
        api.secret("law", "database")
    assert type(refused.value) is kind
    assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"<html>"])
def test_an_answer_that_is_no_json_is_none(server: Server, api: Api, body: bytes) -> None:
    """Asked again later."""
    server.body = body
    with pytest.raises(ApiAway):
        api.secret("law", "database")
