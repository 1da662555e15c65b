"""An object store over HTTP that fails as it is told, which no real one does on demand."""

import contextlib
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FailingStore:
    """GET answers `text`, PUT keeps bodies and headers; `calls` counts both by path.

    `statuses` of a method are used up one by one, 0 closing the connection, then all is well. While `hold` is cleared
    nothing is answered.
    """

    def __init__(self, text: bytes) -> None:
        self.statuses: dict[str, list[int]] = {"GET": [], "PUT": []}
        self.text = text
        self.calls: Counter[str] = Counter()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.hold = threading.Event()
        self.hold.set()
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._act(store.text)

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self._act(b"") == 200:
                    store.bodies.append(body)
                    store.headers.append(dict(self.headers))

            def _act(self, body: bytes) -> int:
                store.calls[f"{self.command} {self.path}"] += 1
                store.hold.wait(30)
                statuses = store.statuses[self.command]
                status = statuses.pop(0) if statuses else 200
                if status == 0:
                    self.connection.close()
                    return status
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)
                return status

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class named it
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self, path: str) -> str:
        """The address of an object."""
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def close(self) -> None:
        """Let go of callers that are held, and close the port."""
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
