"""Logs say what happened to whom, and never what a document says."""

import io
import json
import logging
import uuid
from collections.abc import Iterator

import httpx
import pytest

from baton.settings.watching import LogFormat, LogLevel, Logs
from baton.telemetry import fields, logs, spans
from baton.telemetry.names import SpanName

LOGGER = logging.getLogger("baton.tests")


class Out(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """Whether it says so."""
        return self._terminal

    def lines(self) -> list[dict[str, object]]:
        """The JSON objects that were written."""
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def out() -> Iterator[Out]:
    """Where JSON logs go."""
    stream = Out()
    logs.start(Logs(), component="tests", stream=stream)
    yield stream
    logs.stop()


def test_a_line_names_the_task_the_call_and_the_trace(out: Out) -> None:
    """Bound fields, the call's fields and the open trace stand in one JSON object."""
    document = uuid.uuid4()
    with spans.span(SpanName.EXTRACT) as opened, fields.bound(document=document, firm="f"), fields.bound(run="r"):
        LOGGER.info("read", extra=fields.of(pages=3, firm="other"))
    (line,) = out.lines()
    assert opened.traceparent is not None
    assert line["document"] == str(document)
    assert (line["run"], line["firm"], line["pages"]) == ("r", "other", 3)
    assert (line["level"], line["logger"], line["component"]) == ("info", "baton.tests", "tests")
    assert line["trace_id"] == opened.traceparent.split("-")[1]
    assert str(line["time"]).endswith("Z")


def test_what_was_bound_ends_with_its_block(out: Out) -> None:
    """After the block, and after an exception in it, nothing is bound."""
    with pytest.raises(KeyError), fields.bound(document="d"):
        raise KeyError
    LOGGER.info("later")
    assert "document" not in out.lines()[0]


def test_a_field_that_is_not_listed_is_dropped(out: Out) -> None:
    """Titles, texts and objects have no way into a line."""
    with fields.bound(title="Smith v. Jones"):
        LOGGER.info("read", extra=fields.of(text="content", document=object(), name="x", message="m-1"))
    (line,) = out.lines()
    assert "content" not in out.getvalue()
    assert "Smith" not in out.getvalue()
    assert line["message"] == "read"


def test_a_field_cannot_break_a_line(out: Out) -> None:
    """Line breaks in fields and messages do not forge a second line."""
    LOGGER.info("one %s", 'two\n{"level":"error"}', extra=fields.of(reason="a\r\nb\u2028c"))
    (line,) = out.lines()
    assert line["reason"] == "a b c"


def test_an_exception_is_told_without_its_text(out: Out) -> None:
    """Type, causes, code and places are told; the text, which may quote a row, is not."""

    class RowError(Exception):
        sqlstate = "23505"

    def fails() -> None:
        raise RowError("Key (name)=(privileged)") from KeyError("privileged")

    try:
        fails()
    except RowError:
        LOGGER.exception("could not apply")
    (line,) = out.lines()
    assert "privileged" not in out.getvalue()
    assert "RowError < KeyError" in str(line["error"])
    assert line["error_code"] == "23505"
    assert "test_an_exception_is_told_without_its_text" in str(line["stack"])


def test_an_error_that_promises_to_be_safe_is_told_in_full(out: Out) -> None:
    """Errors marked loggable and those of the operating system keep their text."""

    class SafeError(Exception):
        loggable = True

    for error in (SafeError("no such queue"), ConnectionRefusedError(111, "refused")):
        LOGGER.error("failed", exc_info=error)
    assert out.lines()[0]["error_text"] == "no such queue"
    assert "refused" in str(out.lines()[1]["error_text"])


def test_people_get_text_and_machines_get_json() -> None:
    """On a terminal a line is for reading; a setting overrides either way."""
    for chosen, terminal, is_json in [
        (LogFormat.AUTO, True, False),
        (LogFormat.AUTO, False, True),
        (LogFormat.JSON, True, True),
        (LogFormat.TEXT, False, False),
    ]:
        stream = Out(terminal=terminal)
        logs.start(Logs(format=chosen), component="tests", stream=stream)
        LOGGER.warning("parked", extra=fields.of(ticket="t1"))
        logs.stop()
        assert stream.getvalue().startswith("{") == is_json
        assert "parked" in stream.getvalue()
        assert ("ticket=t1" in stream.getvalue()) != is_json


def test_the_level_holds(out: Out) -> None:
    """Below the level nothing is written."""
    logs.start(Logs(level=LogLevel.ERROR), component="tests", stream=out)
    LOGGER.warning("quiet")
    assert out.getvalue() == ""


def test_a_closed_stream_does_not_disturb(out: Out) -> None:
    """Logging to a stream that is gone raises nothing."""
    out.close()
    LOGGER.info("gone")


def test_a_wrong_placeholder_does_not_disturb() -> None:
    """A message whose arguments do not fit is still written."""
    record = logging.LogRecord("baton.tests", logging.INFO, "x.py", 1, "%d pages", ("many",), None)
    assert json.loads(logs.JsonFormatter(component="tests").format(record))["message"] == "%d pages"


def test_a_library_cannot_flood(out: Out) -> None:
    """The same place of a chatty library speaks once a minute; Baton's own loggers always."""
    for _ in range(50):
        logging.getLogger("opentelemetry.sdk").warning("away")
        LOGGER.warning("mine")
    messages = [line["message"] for line in out.lines()]
    assert messages.count("away") == 1
    assert messages.count("mine") == 50


def test_a_signed_address_is_not_told(out: Out) -> None:
    """By nobody's logger: whoever reads it in a log could use it."""
    address = "https://store.example/agent-runs/7/artifact.json?X-Amz-Signature=secret&X-Amz-Expires=900"
    for name in ("httpx", "httpcore.http11", "baton.agent.deliveries", "somebody.else"):
        logging.getLogger(name).warning('HTTP Request: PUT %s "HTTP/1.1 200 OK"', address)
        logging.getLogger(name).info("PUT %s", address)
    assert "secret" not in out.getvalue()
    told = out.lines()[0]["message"]
    assert told == 'HTTP Request: PUT https://store.example/agent-runs/7/artifact.json?… "HTTP/1.1 200 OK"'


def test_the_http_client_does_not_tell_of_every_call(out: Out) -> None:
    """A line for each call would be one for each document, and say what Baton says better."""
    with httpx.Client(transport=httpx.MockTransport(lambda _request: httpx.Response(200))) as client:
        client.get("http://agent.example/invocations")
    assert out.getvalue() == ""
