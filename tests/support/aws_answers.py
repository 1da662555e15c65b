"""Answers and failures in the place of SQS and S3, through the SDK's own event.

The service under test stays real; a stub stands in front of single calls. Use as

    with answered(clients, Service.SQS, "SendMessageBatch", failing(ReadTimeoutError(endpoint_url="x"))):
"""

import io
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from baton.aws.clients import Clients
from baton.aws.faults import Service

Answer = Callable[[AWSPreparedRequest], AWSResponse | None]


@contextmanager
def answered(clients: Clients, service: Service, action: str, answer: Answer) -> Iterator[list[dict[str, Any]]]:
    """Put `answer` before every call of `action`; gives the list of the requests' JSON bodies."""
    seen: list[dict[str, Any]] = []

    def before_send(request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
        if service is Service.SQS:
            body: Any = request.body
            seen.append(json.loads(body or b"{}"))
        else:
            seen.append({"url": request.url, "headers": dict(request.headers)})
        return answer(request)

    events = clients.events(service)
    event = f"before-send.{service}.{action}"
    events.register(event, before_send)
    try:
        yield seen
    finally:
        events.unregister(event, before_send)


def failing(error: Exception) -> Answer:
    """Nothing is sent, and the call ends with `error`."""

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        raise error

    return answer


def accepted_then(error: Exception) -> Answer:
    """The service takes the request, and the answer is lost on its way."""

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        body: Any = request.body
        sent = urllib.request.Request(request.url, data=body, headers=_headers(request), method=request.method)
        with urllib.request.urlopen(sent, timeout=10) as response:
            response.read()
        raise error

    return answer


def hanging(released: threading.Event) -> Answer:
    """Nothing comes back before `released` is set; then the call goes on as usual."""

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        released.wait(60)
        return None

    return answer


def json_answer(body: Mapping[str, Any], *, status: int = 200, code: str = "", fault: str = "Sender") -> Answer:
    """An answer of SQS: `body`, or with `code` an error as SQS words it."""
    content = {"__type": f"com.amazonaws.sqs#{code}", "message": "stub"} if code else dict(body)
    headers = {"content-type": "application/x-amz-json-1.0"}
    if code:
        headers["x-amzn-query-error"] = f"{code};{fault}"
    return raw_answer(json.dumps(content).encode(), status=status, headers=headers)


def raw_answer(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer of any bytes."""

    def answer(request: AWSPreparedRequest) -> AWSResponse | None:
        written = HTTPHeaders.from_dict({**(headers or {}), "content-length": str(len(body))})
        return AWSResponse(request.url, status, written, _Raw(body))

    return answer


class _Raw(io.BytesIO):
    """Bytes in the shape that the SDK reads from."""

    def stream(self, amount: int = 65_536, decode_content: bool | None = None) -> Iterator[bytes]:
        while chunk := self.read(amount):
            yield chunk


def _headers(request: AWSPreparedRequest) -> dict[str, str]:
    raw: Any = request.headers
    return {
        name: value.decode() if isinstance(value, bytes) else str(value)
        for name, value in raw.items()
        if name.lower() != "content-length"
    }
