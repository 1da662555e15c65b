"""Asking the operator: one question over a forwarded port."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl
from baton.operator.plugin.tokens import token
from baton.operator.plugin.tunnels import LOOPBACK, tunnel
from baton.settings.exits import Exit

#: Seconds; a plan is given up by the operator before.
_PATIENCE: Final = 60.0
_LARGEST: Final = 32 * 1024 * 1024
_CODES: Final = {
    HTTPStatus.UNAUTHORIZED: Exit.REFUSED,
    HTTPStatus.FORBIDDEN: Exit.REFUSED,
    HTTPStatus.SERVICE_UNAVAILABLE: Exit.UNAVAILABLE,
    HTTPStatus.INTERNAL_SERVER_ERROR: Exit.SOFTWARE,
}

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """How the operator is reached, as the command line says."""

    port: int
    namespace: str | None = None
    """The operator's own; ``None``: the resource's."""
    pod: str | None = None
    service_account: str | None = None
    token_file: Path | None = None
    server: str | None = None
    """In the place of a forwarded port; on this machine."""


def ask(kubectl: Kubectl, way: Way, resource: Body, view: str) -> Body:
    """The operator's answer about a resource.

    :param view: ``status``, ``plan``, ``report``, or ``explain/`` and a document.
    :raises Failed: there is none.
    """
    metadata = resource["metadata"]
    namespace = metadata["namespace"]
    bearer = token(kubectl, file=way.token_file, service_account=way.service_account, namespace=namespace)
    path = f"/v1/namespaces/{namespace}/registrationreconcilers/{metadata['name']}/{view}"
    with _reached(kubectl, way, namespace) as (host, port):
        connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {bearer.reveal()}"})
            answer = connection.getresponse()
            content = answer.read(_LARGEST + 1)
        except (OSError, http.client.HTTPException):
            raise Failed("the operator does not answer", code=Exit.UNAVAILABLE) from None
        finally:
            connection.close()
    return _body(answer.status, content)


@contextmanager
def _reached(kubectl: Kubectl, way: Way, namespace: str) -> Iterator[tuple[str, int]]:
    if way.server is None:
        with tunnel(kubectl, namespace=way.namespace or namespace, pod=way.pod, port=way.port) as port:
            yield LOOPBACK, port
        return
    address = urlsplit(way.server)
    if address.scheme != "http" or address.hostname != LOOPBACK or address.port is None:
        # a token in clear text leaves this machine for nobody
        raise Failed(f"--server is of the form http://{LOOPBACK}:PORT", code=Exit.SETTINGS)
    yield address.hostname, address.port


def _body(status: int, content: bytes) -> Body:
    try:
        body = json.loads(content) if len(content) <= _LARGEST else None
    except ValueError:
        body = None
    if status == HTTPStatus.OK and isinstance(body, dict):
        return body
    told = body.get("error") if isinstance(body, dict) else None
    message = told.get("message") if isinstance(told, dict) else f"it answers {status}"
    code = _CODES.get(HTTPStatus(status), Exit.FAILED) if status in list(HTTPStatus) else Exit.FAILED
    raise Failed(f"the operator: {message}", code=code)
