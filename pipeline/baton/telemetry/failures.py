"""What may be said of an exception in a log.

The text of an exception may hold content: a database error repeats the row, a parser's the
input. So its type, its code and the places it went through are told always, its text only where
the type promises that it is free of content: Baton's own errors with ``loggable = True``, and
the operating system's.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Final

from baton.telemetry.fields import Value, one_line

_MOST_FRAMES: Final = 30
_MOST_CAUSES: Final = 5
_PLAIN: Final = (OSError, ImportError, MemoryError)


def described(error: BaseException) -> dict[str, Value | list[str]]:
    """Fields that describe ``error``: ``error``, ``error_code``, ``error_text``, ``stack``."""
    fields: dict[str, Value | list[str]] = {"error": _chain(error)}
    code = _code(error)
    if code:
        fields["error_code"] = code
    text = _text(error)
    if text:
        fields["error_text"] = text
    stack = _places(error.__traceback__)
    if stack:
        fields["stack"] = stack
    return fields


def _chain(error: BaseException) -> str:
    """The types from the error down to its first cause."""
    names: list[str] = []
    current: BaseException | None = error
    while current is not None and len(names) < _MOST_CAUSES:
        names.append(type(current).__qualname__)
        hidden = current.__suppress_context__
        current = current.__cause__ or (None if hidden else current.__context__)
    return " < ".join(names)


def _code(error: BaseException) -> str:
    """A short code that the error carries: an SQLSTATE, a service's code, an errno."""
    inner = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's
    for name in ("sqlstate", "code", "errno"):
        value = getattr(inner, name, None)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return one_line(str(value), longest=80)
    return ""


def _text(error: BaseException) -> str:
    if getattr(type(error), "loggable", False) is True or isinstance(error, _PLAIN):
        return one_line(str(error))
    return ""


def _places(tb: TracebackType | None) -> list[str]:
    """``file:line function`` of each frame, the innermost last; never a line of source."""
    frames = traceback.StackSummary.extract(traceback.walk_tb(tb), lookup_lines=False)
    shown = [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return shown[-_MOST_FRAMES:]


def _short(filename: str) -> str:
    """The path from the package on."""
    for root in ("/site-packages/", "/baton/"):
        head, found, rest = filename.rpartition(root)
        if found and head:
            return rest if root == "/site-packages/" else f"baton/{rest}"
    return filename.rpartition("/")[2]
