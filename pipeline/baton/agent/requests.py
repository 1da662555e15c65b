"""What the agent answers to each request."""

import json
import logging
import socket
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Protocol, cast

from baton.agent.accepting import Acceptance, Agent
from baton.agent.misbehaviour import WORKLESS, Misbehaviour, Rule, parse_rule
from baton.contract import limits
from baton.contract.errors import InvocationError
from baton.contract.invocations import Accepted, Invocation, parse_invocation

logger = logging.getLogger(__name__)

_DRAINED: Final = 4 * limits.MAX_INVOCATION_BYTES
_CHUNK: Final = 65536


class Port(Protocol):
    """What a request needs of the socket that it came by."""

    agent: Agent

    def has_read(self, connection: socket.socket) -> None:
        """The request of a connection is complete."""


class RequestHandler(BaseHTTPRequestHandler):
    """One request on one connection, which is closed after it: a caller never meets a connection gone stale."""

    protocol_version = "HTTP/1.1"
    server_version = "baton-agent"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """Answer `/healthz`."""
        self._port.has_read(self.connection)
        if self.path != "/healthz":
            self._answer(HTTPStatus.NOT_FOUND, {"error": "not_found"})
            return
        agent = self._port.agent
        load = agent.load
        status = HTTPStatus.SERVICE_UNAVAILABLE if agent.stopping.is_set() else HTTPStatus.OK
        self._answer(status, {"status": status.phrase, "waiting": load.waiting, "working": load.working})

    def do_POST(self) -> None:
        """Answer `/invocations`, and `/misbehave` where it is open."""
        body = self._body()
        if body is None:
            return
        route = {"/invocations": self._invocation, "/misbehave": self._misbehave}.get(self.path)
        if route is None or (self.path == "/misbehave" and not self._port.agent.config.misbehave):
            self._answer(HTTPStatus.NOT_FOUND, {"error": "not_found"})
        elif self._authorized():
            route(body)

    def do_DELETE(self) -> None:
        """Make the agent behave again."""
        if self._body() is None:
            return
        if self.path != "/misbehave" or not self._port.agent.config.misbehave:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "not_found"})
        elif self._authorized():
            self._port.agent.script.clear()
            self._answer(HTTPStatus.NO_CONTENT, None)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class named it
        """Every request, for those who debug; paths and statuses only."""
        logger.debug(format, *args)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class finds wrong (a broken request line, a method of no use) is answered in JSON too."""
        # they repeat the request
        del message, explain
        self._answer(HTTPStatus(code), {"error": HTTPStatus(code).name.lower()})

    @property
    def _port(self) -> Port:
        return cast("Port", self.server)

    def _invocation(self, body: bytes) -> None:
        agent = self._port.agent
        try:
            invocation = parse_invocation(body)
        except InvocationError as error:
            self._answer(HTTPStatus(error.status), {"error": error.code, "detail": error.detail})
            return
        rule = agent.script.for_answer(invocation)
        if rule is not None and rule.act in WORKLESS:
            self._answer(_status_of(rule), {"error": "told_to_refuse"})
            return
        if agent.accept(invocation) is Acceptance.FULL:
            retry = {"Retry-After": str(agent.config.retry_after)}
            self._answer(HTTPStatus.TOO_MANY_REQUESTS, {"error": "busy"}, headers=retry)
            return
        self._accepted(invocation, rule)

    def _accepted(self, invocation: Invocation, rule: Rule | None) -> None:
        accepted = Accepted(run_id=invocation.run_id, status="accepted")
        match rule.act if rule else None:
            case Misbehaviour.DROP_CONNECTION:
                self.close_connection = True
                return
            case Misbehaviour.WRONG_BODY:
                self._answer(HTTPStatus.OK, {"status": "ok", "message": "thank you"})
                return
            case Misbehaviour.WRONG_RUN_ID:
                other = uuid.uuid5(invocation.run_id, "another run")
                accepted = Accepted(run_id=other, status="accepted")
            case Misbehaviour.SLOW_ANSWER if rule is not None:
                self._port.agent.stopping.wait(rule.seconds)
        self._answer(HTTPStatus.OK, accepted.body())

    def _misbehave(self, body: bytes) -> None:
        try:
            rule = parse_rule(body)
        except ValueError as error:
            self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": "no_such_rule", "detail": str(error)})
            return
        self._port.agent.script.add(rule)
        self._answer(HTTPStatus.NO_CONTENT, None)

    def _authorized(self) -> bool:
        if self._port.agent.is_authorized(self.headers.get("Authorization")):
            return True
        self._answer(HTTPStatus.UNAUTHORIZED, {"error": "unauthorized"}, headers={"WWW-Authenticate": "Bearer"})
        return False

    def _body(self) -> bytes | None:
        """The whole body, or None after an answer that says why not.

        It is read before anything is refused: closing a connection with bytes unread resets it, and the caller would
        see a reset, which may mean anything, in place of the refusal.
        """
        lengths = self.headers.get_all("Content-Length") or ["0"]
        if "Transfer-Encoding" in self.headers:
            self._answer(HTTPStatus.LENGTH_REQUIRED, {"error": "length_required"})
            return None
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            self._answer(HTTPStatus.BAD_REQUEST, {"error": "bad_length"})
            return None
        length = int(lengths[0][:18])
        if length > limits.MAX_INVOCATION_BYTES:
            self._drain(min(length, _DRAINED))
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "too_large"})
            return None
        body = self.rfile.read(length)
        self._port.has_read(self.connection)
        if len(body) < length:
            # cut off, by the caller or by the watch over slow ones: nobody is there to be answered
            self.close_connection = True
            return None
        return body

    def _drain(self, length: int) -> None:
        while length > 0 and (chunk := self.rfile.read(min(length, _CHUNK))):
            length -= len(chunk)

    def _answer(
        self, status: HTTPStatus, body: dict[str, Any] | bytes | None, *, headers: dict[str, str] | None = None
    ) -> None:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.close_connection = True
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _status_of(rule: Rule) -> HTTPStatus:
    default = HTTPStatus.CONFLICT if rule.act is Misbehaviour.REFUSE else HTTPStatus.INTERNAL_SERVER_ERROR
    return HTTPStatus(rule.status) if rule.status is not None else default
