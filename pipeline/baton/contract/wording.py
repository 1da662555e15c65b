"""Strings that may cross the boundary: one line or several, with nothing in them that shows one thing and is another.

Two kinds of treatment. What an agent sends is *checked*: a control character or a direction override is an error. What
the pipeline passes on about a file somebody named is *cleaned*, because a strange file name must not stop a document.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from baton.contract import limits

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_BUT_LINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# Overrides, embeddings and isolates make `fdp.exe` of `exe.pdf`. Plain right-to-left script needs none of them.
_DIRECTION: Final = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def clean_line(text: str, *, limit: int = limits.MAX_NAME) -> str:
    """Any string as one line of at most `limit` characters: controls become blanks, blanks are joined."""
    text = _SURROGATE.sub("\ufffd", _DIRECTION.sub("", _CONTROL.sub(" ", text)))
    return " ".join(text.split())[:limit].rstrip()


def clean_text(text: str, *, limit: int) -> str:
    """Any string as text of at most `limit` characters; its line breaks are kept."""
    lines = (clean_line(line, limit=limit) for line in text.splitlines())
    return "\n".join(lines).strip()[:limit].rstrip()


def _one_line(text: str) -> str:
    if _CONTROL.search(text) or _DIRECTION.search(text):
        raise ValueError("control or direction characters are not allowed")
    if text != text.strip():
        raise ValueError("blanks at the ends are not allowed")
    return text


def _lines(text: str) -> str:
    if _CONTROL_BUT_LINES.search(text) or _DIRECTION.search(text):
        raise ValueError("control or direction characters are not allowed")
    return text


def _cleaned(value: object) -> object:
    return clean_line(value) if isinstance(value, str) else value


Name = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_NAME), AfterValidator(_one_line)]
"""A checked line of 1..300 characters."""

Reference = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_REFERENCE), AfterValidator(_one_line)]
"""A checked line of 1..120 characters."""

Label = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_LABEL), AfterValidator(_one_line)]
"""A checked line of 1..80 characters."""

Note = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_NOTE), AfterValidator(_one_line)]
"""A checked line of 1..500 characters, shown to a lawyer as it stands."""

Point = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_POINT), AfterValidator(_lines)]
"""Checked text of 1..1000 characters."""

Summary = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_SUMMARY), AfterValidator(_lines)]
"""Checked text of 1..8000 characters."""

GivenName = Annotated[str, BeforeValidator(_cleaned), StringConstraints(max_length=limits.MAX_NAME)]
"""A name as somebody gave it, cleaned to one line of at most 300 characters; may come out empty."""
