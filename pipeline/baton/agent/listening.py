"""The port: a thread for each connection, a bound on their number and on the time a request may take to arrive."""

import contextlib
import socket
import threading
import time
from http.server import ThreadingHTTPServer
from typing import Any, Final

from baton.agent.accepting import Agent
from baton.agent.requests import RequestHandler

_TICK: Final = 0.1
_CROWDED: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class Listener(ThreadingHTTPServer):
    """The listening socket and its connections.

    A time-out on each read is not enough: a client that sends a byte now and then never meets it. So each connection has
    a moment by which its request must be complete, and is cut off at that moment.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._room = threading.BoundedSemaphore(agent.config.connections)
        self._reading: dict[socket.socket, float] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        super().__init__((agent.config.host, agent.config.port), RequestHandler)

    def listen(self) -> None:
        """Take connections in a thread."""
        self._thread = threading.Thread(target=self.serve_forever, args=(_TICK,), name="agent-port", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port; connections in progress end by themselves or with the process."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join(2 * _TICK + 1)
        self.server_close()

    def has_read(self, connection: socket.socket) -> None:
        """The request of a connection is complete; from here on it may take its time."""
        with self._guard:
            self._reading.pop(connection, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread, or turn it away when there are too many."""
        if not self._room.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.settimeout(_TICK)
                request.sendall(_CROWDED)
            self.shutdown_request(request)
            return
        with self._guard:
            self._reading[request] = time.monotonic() + self.agent.config.request_seconds
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_read(request)
            self._room.release()

    def service_actions(self) -> None:
        """Cut off connections whose request has not come in time; called at every tick."""
        now = time.monotonic()
        with self._guard:
            overdue = [connection for connection, until in self._reading.items() if until <= now]
            for connection in overdue:
                del self._reading[connection]
        for connection in overdue:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is answered by its handler."""
