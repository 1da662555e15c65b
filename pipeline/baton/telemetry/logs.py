"""Structured logs on standard error: JSON for machines, one readable line for people.

Each line has time, level, logger, message, the fields bound to the task and those of the call
(``fields``), the trace it belongs to, and for an exception what ``failures`` lets through.
An address is told without its query. Logging never raises, and a chatty library cannot flood: the same place may speak
once a minute.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, Any, Final

from baton.settings.watching import LogFormat, Logs
from baton.telemetry import failures, fields, spans

_LONGEST_MESSAGE: Final = 500
# Libraries that repeat themselves for as long as something is away, or tell of every call.
_CHATTY: Final = ("opentelemetry", "urllib3", "botocore", "waitress", "sqlalchemy.pool", "httpx", "httpcore")
_CHATTY_SECONDS: Final = 60.0
#: What an address asks for, or is signed with: whoever reads a presigned one can use it.
_QUERY: Final = re.compile(r"(\w://[^\s?\"'<>]*\?)[^\s\"'<>]+")
_handler: logging.Handler | None = None


def start(logs: Logs, *, component: str, stream: IO[str] | None = None) -> None:
    """Send all logs of the process to ``stream`` (``None``: standard error) from now on."""
    global _handler  # noqa: PLW0603 - one root logger, one handler of ours on it
    target = sys.stderr if stream is None else stream
    handler = _Handler(target)
    handler.addFilter(_Calm())
    if _wants_json(logs.format, target):
        handler.setFormatter(JsonFormatter(component=component))
    else:
        handler.setFormatter(TextFormatter())
    root = logging.getLogger()
    if _handler is not None:
        root.removeHandler(_handler)
    root.addHandler(handler)
    root.setLevel(logs.level.value.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    _handler = handler


def stop() -> None:
    """Undo ``start``."""
    global _handler  # noqa: PLW0603 - as above
    if _handler is not None:
        root = logging.getLogger()
        root.removeHandler(_handler)
        root.setLevel(logging.WARNING)
        logging.captureWarnings(capture=False)
        _handler = None


class JsonFormatter(logging.Formatter):
    """One JSON object a line, ASCII only."""

    def __init__(self, *, component: str) -> None:
        super().__init__()
        self._component = component

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        written: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "component": self._component,
        }
        for name, value in _details(record).items():
            written.setdefault(name, value)
        return json.dumps(written, ensure_ascii=True, separators=(",", ":"), default=str)


class TextFormatter(logging.Formatter):
    """``12:03:04.123 info    relay  ticket parked  ticket=… attempts=5``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the stack of an exception below it."""
        details = _details(record)
        stack = details.pop("stack", [])
        details.pop("trace_id", None)
        details.pop("span_id", None)
        clock = _time(record).astimezone().strftime("%H:%M:%S.%f")[:-3]
        name = record.name.removeprefix("baton.")
        shown = " ".join(f"{key}={value}" for key, value in details.items())
        line = f"{clock} {record.levelname.lower():<7} {name:<12} {_message(record)}"
        line = f"{line}  {shown}" if shown else line
        return "\n".join([line, *(f"    at {place}" for place in reversed(stack))])


class _Handler(logging.StreamHandler[IO[str]]):
    """A handler whose own trouble (a closed pipe) stays its own."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Say nothing: there is no place left to say it."""


class _Calm(logging.Filter):
    """Lets one place of a chatty library speak once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._spoken: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is let through."""
        if not record.name.startswith(_CHATTY):
            return True
        place, now = (record.pathname, record.lineno), time.monotonic()
        with self._lock:
            last = self._spoken.get(place)
            if last is not None and now - last < _CHATTY_SECONDS:
                return False
            self._spoken[place] = now
            return True


def _wants_json(chosen: LogFormat, stream: IO[str]) -> bool:
    if chosen is LogFormat.AUTO:
        with suppress(ValueError, AttributeError):
            return not stream.isatty()
        return True
    return chosen is LogFormat.JSON


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, tz=UTC)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - a wrong placeholder is no reason to lose the line
        text = str(record.msg)
    return fields.one_line(_QUERY.sub(r"\1…", text), longest=_LONGEST_MESSAGE)


def _details(record: logging.LogRecord) -> dict[str, Any]:
    """Fields of the task, of the call, of the trace and of the exception."""
    found: dict[str, Any] = dict(fields.current())
    own = getattr(record, fields.KEY, None)
    if isinstance(own, dict):
        found |= fields.clean(own)
    traceparent = spans.current_traceparent()
    if traceparent is not None:
        _, found["trace_id"], found["span_id"], _ = traceparent.split("-")
    if record.exc_info and record.exc_info[1] is not None:
        found |= failures.described(record.exc_info[1])
    return found
