"""A real OTLP receiver on a free port, and worse things than a receiver."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.waiting import wait_until


class Collector:
    """Takes spans over OTLP/HTTP and keeps them."""

    def __init__(self, *, status: int = 200, hold: threading.Event | None = None) -> None:
        """Answer with `status`, and only once `hold` is set when it is given."""
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
        self.requests = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests += 1
                if hold is not None:
                    hold.wait(60)
                collector.take(self.path, body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def take(self, path: str, body: bytes) -> None:
        """Decode one request."""
        if path != "/v1/traces":
            return
        request = ExportTraceServiceRequest.FromString(body)
        for resource_spans in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in resource_spans.resource.attributes}
            self.resources.append(attributes)
            for scope in resource_spans.scope_spans:
                self.spans.extend(scope.spans)

    def wait_for(self, count: int) -> list[Span]:
        """The spans, once there are at least `count`."""
        wait_until(lambda: len(self.spans) >= count, what=f"{count} spans at the collector")
        return list(self.spans)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@contextmanager
def collecting(*, status: int = 200, hold: threading.Event | None = None) -> Iterator[Collector]:
    """A collector for the length of a block."""
    collector = Collector(status=status, hold=hold)
    try:
        yield collector
    finally:
        if hold is not None:
            hold.set()
        collector.close()


@contextmanager
def black_hole() -> Iterator[str]:
    """The base URL of an address where connecting never ends: a listener whose queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = []
        for _ in range(3):  # Linux takes one or two more than the backlog before it drops
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            for filler in fillers:
                filler.close()


def closed_port() -> str:
    """The base URL of a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def attribute(span: Span, name: str) -> str | int | None:
    """One attribute of a received span."""
    for each in span.attributes:
        if each.key == name:
            kind = each.value.WhichOneof("value")
            value = getattr(each.value, kind) if kind else None
            return value if isinstance(value, str | int) else None
    return None
