"""Asking the API server, from threads: a handful of calls, each with an end, and typed errors.

ApiError
├── ApiAway        no answer, or none that made sense: ask again later
├── ApiConflict    the object has changed since it was read
├── ApiMissing     there is no such object
└── ApiRefused     the request's own fault, or a right that is missing

kopf's own client lives in its event loop, and a client library of Kubernetes' costs more memory than everything else here
together; these calls need neither. What carries them is there for the AWS SDK already.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import urllib3

from baton.operator.access import Access
from baton.operator.vocabulary import GROUP, VERSION, Plural
from baton.settings.secret import Secret

#: Seconds. A call that takes longer is given up; its effect is looked for before it is made again.
_TIMEOUT: Final = urllib3.Timeout(connect=3.0, read=10.0)
#: Connections that are kept at most; there are as many as threads that asked at once.
_KEPT: Final = 100
#: One that is dead is found out while it is idle: after ten seconds, and three signs five seconds apart. Data that nobody
#: takes is given up after twenty.
_SOCKET: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),
)
_DONE: Final = range(200, 300)
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}

Body = Mapping[str, Any]


class ApiError(Exception):
    """The API server did not do what it was asked."""


class ApiAway(ApiError):
    """It did not answer, or said that it cannot now."""


class ApiConflict(ApiError):
    """The object has changed since it was read, or is there already."""


class ApiMissing(ApiError):
    """There is no such object."""


class ApiRefused(ApiError):
    """It answered that it will not; asking again alone does not help."""


class Api:
    """One client for all threads."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._server = access.server.rstrip("/")
        self._pool = urllib3.PoolManager(
            maxsize=_KEPT, timeout=_TIMEOUT, retries=False, ssl_context=access.tls(), socket_options=_SOCKET
        )

    def close(self) -> None:
        """Close its connections."""
        self._pool.clear()

    def resources(self, plural: Plural, namespace: str | None) -> list[Body]:
        """Every resource of a kind.

        :param namespace: ``None``: of all namespaces.
        :raises ApiMissing: the kind is not served.
        """
        found: list[Body] = self._ask("GET", _path(plural, namespace))["items"]
        return found

    def resource(self, plural: Plural, namespace: str, name: str) -> Body:
        """One resource, as it stands now."""
        return self._ask("GET", _path(plural, namespace, name))

    def write_status(self, plural: Plural, namespace: str, name: str, *, status: Body, version: str) -> Body:
        """Write the status that was computed from ``version``, and only onto that.

        :param status: a merge patch: ``None`` takes a field away.
        :raises ApiConflict: the resource has changed since.
        """
        change = {"metadata": {"resourceVersion": version}, "status": status}
        return self._ask("PATCH", f"{_path(plural, namespace, name)}/status", change, headers=_MERGE)

    def apply(self, plural: Plural, namespace: str, name: str, *, kind: str, spec: Body, manager: str) -> Body:
        """Make a resource, or bring what of its spec is this manager's to ``spec``; what others set is left to them.

        :raises ApiConflict: somebody else set one of these values to another one.
        """
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self._ask("PATCH", f"{_path(plural, namespace, name)}?fieldManager={manager}", body, headers=_APPLY)

    def delete(self, plural: Plural, namespace: str, name: str, *, uid: str, version: str) -> None:
        """Delete a resource, if it is the one that is meant, and as it was read.

        :raises ApiConflict: it is another one, or has changed since.
        """
        meant = {"uid": uid, "resourceVersion": version}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": meant}
        self._ask("DELETE", _path(plural, namespace, name), options)

    def secret(self, namespace: str, name: str) -> Body:
        """One secret."""
        return self._ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")

    def create_event(self, namespace: str, body: Body) -> None:
        """Post an event."""
        self._ask("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)

    def lease(self, namespace: str, name: str) -> Body:
        """One Lease."""
        return self._ask("GET", f"{_leases(namespace)}/{name}")

    def create_lease(self, namespace: str, body: Body) -> Body:
        """Make a Lease; of several who try one succeeds.

        :raises ApiConflict: it is there already.
        """
        return self._ask("POST", _leases(namespace), body)

    def replace_lease(self, namespace: str, name: str, body: Body) -> Body:
        """Write a Lease onto the version that it was read at.

        :raises ApiConflict: somebody else wrote it since.
        """
        return self._ask("PUT", f"{_leases(namespace)}/{name}", body)

    def review_token(self, token: Secret, *, audiences: Sequence[str] = ()) -> Body:
        """Whose token it is.

        :param audiences: whom it must be meant for, one of them; none: the API server itself.
        """
        spec = {"token": token.reveal(), **({"audiences": list(audiences)} if audiences else {})}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        return self._ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)

    def review_access(self, namespace: str, *, name: str, subresource: str, user: Body) -> Body:
        """Whether somebody may ``get`` a part of a RegistrationReconciler, by the namespace's own review."""
        wanted = {"group": GROUP, "version": VERSION, "resource": Plural.RECONCILERS, "subresource": subresource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": namespace},
            "spec": {**user, "resourceAttributes": {**wanted, "verb": "get", "namespace": namespace, "name": name}},
        }
        path = f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
        return self._ask("POST", path, body)

    def _ask(
        self, method: str, path: str, body: Body | None = None, *, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        try:
            token = self._access.token()
            sent = {"User-Agent": "baton-operator", **({} if token is None else {"Authorization": f"Bearer {token}"})}
            sent |= {"Content-Type": "application/json"} if body is not None else {}
            content = None if body is None else json.dumps(body)
            answer = self._pool.request(
                method, self._server + path, body=content, headers={**sent, **(headers or {})}, redirect=False
            )
            if answer.status in _DONE:
                found: dict[str, Any] = json.loads(answer.data)
                return found
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # its text may name the address, never what was sent
            raise ApiAway(f"the API server does not answer ({type(error).__name__})") from error
        raise _refusal(answer.status, path)


def _refusal(code: int, path: str) -> ApiError:
    place = path.rpartition("/")[0]
    if code == HTTPStatus.CONFLICT:
        return ApiConflict("it has changed, or is there already")
    if code == HTTPStatus.NOT_FOUND:
        return ApiMissing(f"there is no such object below {place}")
    if code == HTTPStatus.TOO_MANY_REQUESTS or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ApiAway(f"the API server answers {code}")
    return ApiRefused(f"the API server answers {code} below {place}")


def _path(plural: Plural, namespace: str | None, name: str = "") -> str:
    place = f"/apis/{GROUP}/{VERSION}" + (f"/namespaces/{namespace}" if namespace else "")
    return f"{place}/{plural}" + (f"/{name}" if name else "")


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
