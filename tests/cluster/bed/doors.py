"""The read-only API in this process, with the operator's own account: as a replica opens it, without its loops."""

import contextlib
import http.client
import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from baton.operator.access import Access
from baton.operator.api import Api
from baton.operator.reading.answering import Answering
from baton.operator.reading.grounds import Replica
from baton.operator.reading.serving import HOST, serve
from baton.settings.loading import load
from baton.settings.secret import Secret
from cluster.bed.asking import Kubernetes


@dataclass
class Door:
    """Where it listens, and which resource is asked about."""

    port: int
    namespace: str

    def path(self, view: str, name: str = "main") -> str:
        """The path of a view."""
        return f"/v1/namespaces/{self.namespace}/registrationreconcilers/{name}/{view}"

    def ask(self, view: str, token: str | None, *, name: str = "main") -> tuple[int, Any]:
        """Status and body."""
        return ask(self.port, self.path(view, name), token)

    def reason(self, view: str, token: str | None) -> tuple[int, str]:
        """Status and why."""
        status, body = self.ask(view, token)
        return status, body.get("error", {}).get("reason", "")


def ask(port: int, path: str, token: str | None) -> tuple[int, Any]:
    """One question over HTTP."""
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, {"text": text.decode(errors="replace")}


def raw(port: int, sent: bytes) -> bytes:
    """Everything that comes back for what is sent as it is; a server that has read enough may cut it off."""
    found = b""
    with socket.create_connection((HOST, port), timeout=60) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65_536):
            found += part
    return found


@contextmanager
def door(kubernetes: Kubernetes, token: str, *, server: str | None = None) -> Iterator[Door]:
    """Open it for the namespace.

    :param server: where it looks for the API server.
    """
    access = replace(
        kubernetes.access, server=server or kubernetes.access.server, token_file=None, fixed_token=Secret(token)
    )
    with _opened(access) as port:
        yield Door(port, kubernetes.namespace)


@contextmanager
def _opened(access: Access) -> Iterator[int]:
    api, stop = Api(access), threading.Event()
    ports: queue.SimpleQueue[int] = queue.SimpleQueue()
    application = Answering(api, replica=Replica("test", lambda: False, access.namespace), ambient=load())
    more = {"port": 0, "beat": lambda: None, "listens": ports.put}
    thread = threading.Thread(target=serve, args=(application, stop), kwargs=more)
    thread.start()
    try:
        yield ports.get(timeout=60)
    finally:
        stop.set()
        thread.join(30)
        api.close()
        assert not thread.is_alive()


def nowhere() -> str:
    """An address where nobody listens."""
    with socket.create_server((HOST, 0)) as taken:
        return f"https://{HOST}:{urlsplit(f'//{HOST}:{taken.getsockname()[1]}').port}"
