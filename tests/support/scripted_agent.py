"""An agent that answers exactly as it is told, on a real socket, in whatever bad manner."""

import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from baton.contract.invocations import Invocation, parse_invocation

TOKEN = "a-token-for-tests"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, answered by an `Answer`."""

    invocation: Invocation
    handler: BaseHTTPRequestHandler
    server: "ScriptedAgent"

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Answer in good order."""
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)


Answer = Callable[[Asked], None]


def accept(asked: Asked) -> None:
    """Take the run."""
    asked.server.taken.append(asked.invocation.run_id)
    asked.send(200, json.dumps({"run_id": str(asked.invocation.run_id), "status": "accepted"}).encode())


def status(code: int, body: bytes = b"{}", **headers: str) -> Answer:
    """Answer with a status; underscores in header names become hyphens."""
    return lambda asked: asked.send(code, body, {name.replace("_", "-"): value for name, value in headers.items()})


def accept_another(asked: Asked) -> None:
    """Take the run, and name another."""
    asked.send(200, json.dumps({"run_id": str(uuid4()), "status": "accepted"}).encode())


def reset(asked: Asked) -> None:
    """Break the connection off after the request was read."""
    line = asked.handler.connection
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()
    asked.handler.close_connection = True


def trickle_headers(asked: Asked) -> None:
    """Never finish the headers, but never be silent either."""
    _trickle(asked, b"HTTP/1.1 200 OK\r\nX-Long: ")


def trickle_body(asked: Asked) -> None:
    """Never finish the body, but never be silent either."""
    _trickle(asked, b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")


def flood(asked: Asked) -> None:
    """Send a body without end."""
    line = asked.handler.connection
    try:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while not asked.server.stopping.is_set():
            line.sendall(b" " * 65536)
            asked.server.flooded += 65536
    except OSError:
        pass
    asked.handler.close_connection = True


def silent(asked: Asked) -> None:
    """Say nothing until the end."""
    asked.server.stopping.wait(60)
    asked.handler.close_connection = True


def _trickle(asked: Asked, opening: bytes) -> None:
    line = asked.handler.connection
    try:
        line.sendall(opening)
        while not asked.server.stopping.wait(0.05):
            line.sendall(b"x")
    except OSError:
        pass
    asked.handler.close_connection = True


@dataclass
class ScriptedAgent:
    """Gives its answers in turn, the last of them ever after; usable as a context manager."""

    answers: list[Answer]
    invocations: list[Invocation] = field(default_factory=list)
    taken: list[UUID] = field(default_factory=list)
    """Run ids of the invocations that were answered as accepted, one for each."""
    headers: list[dict[str, str]] = field(default_factory=list)
    flooded: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        agent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                invocation = parse_invocation(body)
                with agent._lock:
                    answer = agent.answers[min(len(agent.invocations), len(agent.answers) - 1)]
                    agent.invocations.append(invocation)
                    agent.headers.append({name.lower(): value for name, value in self.headers.items()})
                answer(Asked(invocation, self, agent))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the play."""
