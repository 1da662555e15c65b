"""Between the operator and the API server: counts what is asked, and takes answers away, holds them back or spoils them."""

import contextlib
import http.client
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from baton.embedded.ports import LOOPBACK
from cluster.bed.asking import Kubernetes
from cluster.bed.servers import write_kubeconfig

_PASSED_ON = ("Content-Type", "Accept")


class Mood(StrEnum):
    """How it treats whoever asks."""

    OPEN = "open"
    AWAY = "away"
    """Connections are closed without an answer, as where nobody listens."""
    SILENT = "silent"
    """Nothing is answered, and nothing closed, as where packets are lost."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    watch: bool


@dataclass(frozen=True, slots=True)
class Spoiled:
    """What is answered in the place of the API server."""

    status: int
    body: bytes
    closes: bool = False
    """Whether the connection ends before the answer does."""


Spoil = Callable[[Asked], Spoiled | None]


class Between:
    """A server of plain HTTP on the loopback address; the way on is the administrator's own."""

    def __init__(self, kubernetes: Kubernetes, folder: Path) -> None:
        self.kubernetes = kubernetes
        self.mood = Mood.OPEN
        self.spoil: Spoil | None = None
        """Asked of each request; ``None``: the API server answers it."""
        self.asked: list[Asked] = []
        self.heard = threading.Event()
        """Set while silence ends."""
        self._lock = threading.Lock()
        self._watches: dict[socket.socket, socket.socket | None] = {}
        self._server = _Server((LOOPBACK, 0), _Handler)
        self._server.between = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="between", daemon=True)
        self.kubeconfig = folder / "between.kubeconfig"
        url = f"http://{LOOPBACK}:{self._server.server_port}"
        write_kubeconfig(self.kubeconfig, url=url, authority=None, token="nobody-needs-it")

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End, and let go of whoever waits."""
        self.go(Mood.AWAY)
        self._server.shutdown()
        self._server.server_close()

    def go(self, mood: Mood) -> None:
        """Treat whoever asks like this from now on; what is open is cut when it goes away."""
        self.mood = mood
        if mood is Mood.SILENT:
            self.heard.clear()
        else:
            self.heard.set()
        if mood is Mood.AWAY:
            self.cut()

    def cut(self) -> int:
        """Close every watch in the middle of whatever it is; returns how many there were."""
        with self._lock:
            watches = list(self._watches.items())
        for ends in watches:
            for each in ends:
                if each is not None:
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
        return len(watches)

    @property
    def watches(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._watches)

    def count(self, method: str | None = None, *, holding: str = "", watch: bool | None = None) -> int:
        """Requests so far."""
        return sum(
            (method is None or each.method == method)
            and holding in each.path
            and (watch is None or each.watch is watch)
            for each in list(self.asked)
        )

    def by_kind(self) -> Counter[str]:
        """Requests so far, by method and what they are about."""
        return Counter(f"{'WATCH' if each.watch else each.method} {_about(each.path)}" for each in list(self.asked))

    @contextmanager
    def watching(self, mine: socket.socket, theirs: socket.socket | None) -> Iterator[None]:
        """Have a watch cut when all are."""
        with self._lock:
            self._watches[mine] = theirs
        try:
            yield
        finally:
            with self._lock:
                del self._watches[mine]

    def onward(self) -> http.client.HTTPConnection:
        """A connection to the API server."""
        access = self.kubernetes.access
        where = urlsplit(access.server)
        assert where.hostname is not None
        if where.scheme == "http":
            return http.client.HTTPConnection(where.hostname, where.port)
        return http.client.HTTPSConnection(where.hostname, where.port, context=access.tls())


@contextmanager
def standing_between(kubernetes: Kubernetes, folder: Path) -> Iterator[Between]:
    """One for the length of a block."""
    between = Between(kubernetes, folder)
    between.start()
    try:
        yield between
    finally:
        between.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    between: Between

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever hangs up is not news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is written to the terminal."""

    def _answer(self) -> None:
        between = self.server.between
        path, _, query = self.path.partition("?")
        asked = Asked(self.command, path, "watch=true" in query)
        between.asked.append(asked)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if between.mood is Mood.SILENT:
            with between.watching(self.connection, None):
                between.heard.wait()
            self.close_connection = True
            return
        if between.mood is Mood.AWAY:
            self.close_connection = True
            return
        spoiled = between.spoil(asked) if between.spoil is not None else None
        if spoiled is not None:
            self._give(spoiled)
            return
        connection = between.onward()
        try:
            self._pass_on(connection, body, watch=asked.watch)
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def _give(self, spoiled: Spoiled) -> None:
        self.send_response(spoiled.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(spoiled.body) + (100 if spoiled.closes else 0)))
        self.end_headers()
        self.wfile.write(spoiled.body)
        self.close_connection = spoiled.closes

    def _pass_on(self, connection: http.client.HTTPConnection, body: bytes, *, watch: bool) -> None:
        between = self.server.between
        token = between.kubernetes.access.token()
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(self.command, self.path, body or None, headers)
        with between.watching(self.connection, connection.sock) if watch else contextlib.nullcontext():
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"] or "application/json")
            if not watch:
                content = answer.read()
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while line := answer.readline():
                if between.mood is Mood.SILENT:
                    between.heard.wait()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")


def _about(path: str) -> str:
    """The kind of object, and the part of it, that a path leads to."""
    parts = path.strip("/").split("/")
    if "namespaces" not in parts:
        return parts[-1]
    rest = parts[parts.index("namespaces") + 2 :]
    return "/".join([rest[0] if rest else "namespaces", *rest[2:]])
