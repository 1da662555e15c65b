"""What a log line may carry besides its constant message, and what is bound to all lines of a task.

``logger.info("ticket parked", extra=fields.of(ticket=ticket_id, attempts=5))``. The message is a
constant; everything that varies is a field of the closed list below. Content of documents, names
of parties, file names and bodies of messages have no field, so they cannot be logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import MappingProxyType
from typing import Final
from uuid import UUID

ALLOWED: Final = frozenset(
    {
        # whom it is about
        "firm", "matter", "document", "extraction_run", "run", "ticket", "message",
        # who asked the operator, by their name in the cluster
        "caller",
        # closed words
        "action", "answer", "axis", "code", "component", "event_type", "fault", "kind", "lane",
        "loop", "outcome", "part", "purpose", "queue", "reason", "role", "rule", "schema", "signal",
        "state", "status", "variable", "verdict", "version",
        # counts, sizes, times
        "attempt", "attempts", "bytes", "count", "deleted", "depth", "epoch", "exit_code", "failed",
        "found", "generation", "limit", "pages", "pid", "port", "received", "repaired", "seconds",
        "sent", "status_code", "workers",
        # texts of our own errors that declare themselves free of content, and addresses we listen on
        "detail", "address",
    }
)  # fmt: skip
"""The names of all fields."""

KEY: Final = "baton_fields"
"""The attribute of a log record under which they travel."""

Value = str | int | float | bool

_LONGEST: Final = 300
_NOTHING: Final[Mapping[str, Value]] = MappingProxyType({})
_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_bound: ContextVar[Mapping[str, Value]] = ContextVar("baton_log_fields", default=_NOTHING)


def of(**values: object) -> dict[str, dict[str, Value]]:
    """The ``extra`` of one log call; what is not on the list is dropped. Never raises."""
    return {KEY: clean(values)}


@contextmanager
def bound(**values: object) -> Iterator[None]:
    """Add fields to every log line of this thread or task for the length of a block."""
    token = _bound.set({**_bound.get(), **clean(values)})
    try:
        yield
    finally:
        _bound.reset(token)


def current() -> Mapping[str, Value]:
    """The fields that are bound here."""
    return _bound.get()


def clean(values: Mapping[str, object]) -> dict[str, Value]:
    """Only what is on the list, in a form that can be logged; ``None`` is left out."""
    return {name: kept for name, value in values.items() if name in ALLOWED and (kept := _kept(value)) is not None}


def one_line(text: str, *, longest: int = _LONGEST) -> str:
    """Text without control characters or line breaks, cut to a length."""
    flat = _BREAKS.sub(" ", text)
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def _kept(value: object) -> Value | None:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, UUID):
        return str(value)
    return one_line(value) if isinstance(value, str) else None
