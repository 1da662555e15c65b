"""One POST to the agent, within a hard bound of time and bytes, whatever the other side does."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Final, Self

import httpx

from baton.contract import limits
from baton.runs.answers import Fate, Reply
from baton.settings.agents import Agent
from baton.telemetry.spans import current_traceparent

_MOST_WAIT: Final = 86_400.0


class AgentMissing(Exception):
    """No agent is configured: its URL or its token is not set."""


class AgentClient:
    """The agent outside; shared between threads."""

    def __init__(self, agent: Agent) -> None:
        if agent.url is None or agent.token is None:
            raise AgentMissing("BATON_AGENT_URL and BATON_AGENT_TOKEN must be set")
        self._url = agent.url.rstrip("/") + "/invocations"
        self._token = agent.token
        self._bound = agent.connect_timeout + agent.read_timeout
        self._client = httpx.Client(
            timeout=httpx.Timeout(agent.read_timeout, connect=agent.connect_timeout, pool=agent.connect_timeout),
            # a connection of its own for each call: it can be cut, and a stale one cannot lose the call
            limits=httpx.Limits(max_keepalive_connections=0),
            verify=ssl.create_default_context(),
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no call carries what another was told
            follow_redirects=False,  # the token is for this address only
        )

    @property
    def bound(self) -> float:
        """Seconds that one call lasts at most, name resolution aside."""
        return self._bound

    def invoke(self, body: bytes) -> Reply:
        """POST an invocation and say what came back. Raises nothing that the agent or the network can cause."""
        cut = _Cut(self._bound)
        began = time.perf_counter()
        try:
            with (
                cut,
                self._client.stream(
                    "POST", self._url, content=body, headers=self._headers(), extensions={"trace": cut.trace}
                ) as response,
            ):
                return Reply(
                    fate=Fate.ANSWERED,
                    status=response.status_code,
                    body=_bounded(response) if response.is_success else b"",
                    retry_after=_retry_after(response.headers),
                    seconds=time.perf_counter() - began,
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            fate = Fate.LOST if cut.sent else Fate.UNSENT
            reason = "too slow" if cut.over else type(error).__name__
            return Reply(fate=fate, reason=reason, seconds=time.perf_counter() - began)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _headers(self) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        traceparent = current_traceparent()
        return headers | ({"traceparent": traceparent} if traceparent else {})


class _Cut:
    """Ends a call when its total time is over.

    A time-out of the HTTP client bounds each wait for bytes, so a server that sends one byte in a while holds a call
    for as long as it likes. This one shuts the connection down instead, by a duplicate of its socket, which stays
    valid while the client wraps it for TLS or closes it.
    """

    def __init__(self, seconds: float) -> None:
        self.sent = False
        self.over = False
        self._line: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._now)
        self._timer.daemon = True

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Follow the call: the HTTP client names each of its steps."""
        if event == "connection.connect_tcp.complete":
            line = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._line = line.dup()
                if self.over:
                    self._shut()
        elif event.endswith(".send_request_headers.started"):
            self.sent = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            if self._line is not None:
                self._line.close()
                self._line = None

    def _now(self) -> None:
        with self._lock:
            self.over = True
            self._shut()

    def _shut(self) -> None:
        if self._line is not None:
            with contextlib.suppress(OSError):  # the other side was faster
                self._line.shutdown(socket.SHUT_RDWR)


def _bounded(response: httpx.Response) -> bytes:
    """The body, up to one byte more than an acceptance may have; what else comes is not read."""
    body = b""
    for chunk in response.iter_raw(limits.MAX_ACCEPTED_BYTES + 1):
        body += chunk
        if len(body) > limits.MAX_ACCEPTED_BYTES:
            return body[: limits.MAX_ACCEPTED_BYTES + 1]
    return body


def _retry_after(headers: httpx.Headers) -> float | None:
    text = headers.get("Retry-After", "").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        return None  # a date would be by a clock that decides nothing here
    return min(float(text), _MOST_WAIT)
