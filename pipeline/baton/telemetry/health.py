"""The HTTP endpoint for probes and Prometheus, in threads of its own.

``/livez`` is 503 when a loop has been silent for longer than it declared; ``/readyz`` until the
first success and whenever a part says it cannot work; ``/startupz`` until everything runs.
``/metrics`` is in Prometheus's text format. Nothing here touches database, queue or store: a
probe that waits for them turns an outage of theirs into restarts of ours.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.server import create_server

from baton.settings.watching import Health
from baton.telemetry import instruments
from baton.telemetry.progress import Finding, Progress

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_logger = logging.getLogger("baton.telemetry")
_THREADS: Final = 2
_CONNECTIONS: Final = 50
_IDLE_SECONDS: Final = 10


class HealthServer:
    """The endpoint while it is open."""

    def __init__(self, health: Health, progress: Progress) -> None:
        if health.port is None:
            raise ValueError("no port is set")
        listening = _listening(health.host, health.port)
        self.port = int(listening.getsockname()[1])
        """The port that it listens on."""
        self._sockets: dict[int, Any] = {}
        # With one socket given, waitress makes one plain server; its stubs do not say so.
        self._server: Any = create_server(
            application(progress),
            map=self._sockets,
            sockets=[listening],
            threads=_THREADS,
            connection_limit=_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            cleanup_interval=5,
            max_request_header_size=16_384,
            max_request_body_size=1,
            ident="baton",
            clear_untrusted_proxy_headers=True,
            asyncore_use_poll=True,
        )
        self._thread = threading.Thread(target=self._serve, name="health", daemon=True)
        self._thread.start()

    def close(self, *, within: float = 1.0) -> None:
        """Stop listening, in at most ``within`` seconds."""
        if self._thread.is_alive():
            self._server.trigger.pull_trigger(self._shut)
            self._thread.join(within)

    def _serve(self) -> None:
        try:
            while self._sockets:
                self._make_room()
                wasyncore.loop(timeout=1.0, map=self._sockets, use_poll=True, count=1)
        except Exception as error:  # noqa: BLE001 - the endpoint must not take the work down
            _logger.warning("the health endpoint ended: %s", type(error).__name__)

    def _make_room(self) -> None:
        """Where no more would be let in, close the oldest that have not asked for anything yet: a probe is let in."""
        if len(self._sockets) < _CONNECTIONS:
            return
        silent = [each for each in self._server.active_channels.values() if not each.requests]
        for each in sorted(silent, key=lambda channel: channel.creation_time)[: _CONNECTIONS // 2]:
            each.handle_close()

    def _shut(self) -> None:
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        wasyncore.close_all(self._sockets, ignore_all=True)


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket on the first address that ``host`` stands for."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=_CONNECTIONS)


def opened(health: Health, progress: Progress) -> HealthServer | None:
    """Open the endpoint, where the settings ask for one.

    Raises:
        OSError: when the port is taken.
    """
    return None if health.port is None else HealthServer(health, progress)


def application(
    progress: Progress,
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """The WSGI application."""
    probes: dict[str, Callable[[], Finding]] = {
        "/livez": progress.liveness,
        "/readyz": progress.readiness,
        "/startupz": progress.startup,
    }

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path, method = environ.get("PATH_INFO", ""), environ.get("REQUEST_METHOD", "")
        status, kind, body = HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"not found\n"
        if method not in {"GET", "HEAD"}:
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n"
        elif path == "/metrics":
            status, kind, body = HTTPStatus.OK, instruments.CONTENT_TYPE, instruments.exposition()
        elif path in probes:
            finding = probes[path]()
            status = HTTPStatus.OK if finding.healthy else HTTPStatus.SERVICE_UNAVAILABLE
            kind = "application/json"
            shown = {"healthy": finding.healthy, "details": finding.details}
            body = json.dumps(shown, sort_keys=True).encode() + b"\n"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return [] if method == "HEAD" else [body]

    return answer
