"""The answer of a child on its way to the parent: one length-prefixed JSON object.

The child has just read a stranger's file and may be under its control, so the parent checks
every value as if a stranger had sent it.
"""

import json
import struct
from dataclasses import dataclass, field
from typing import Any, Final

from baton.extraction.jobs import Draft
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Note, Page, Reading, ReasonCode, Source, verdict_of
from baton.extraction.text import is_storable

READY: Final = b"ready"
"""What the zygote says when it is."""
REQUEST_BYTES: Final = 64 * 1024
"""Largest request to the zygote."""
EXIT_MEMORY: Final = 99
"""Exit code of a child that ran out of memory and could still say so."""
_LENGTH: Final = struct.Struct(">Q")
_NAME_CHARS: Final = 300
_NAMES: Final = 500
_FULL_CONFIDENCE: Final = 100


class WireError(Exception):
    """The bytes are no answer that an honest child would give."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the child found."""

    kind: Kind
    reason: ReasonCode | None
    pages: list[Draft] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def encode(answer: Answer) -> bytes:
    """Frame an answer."""
    body = json.dumps(
        {
            "kind": answer.kind,
            "reason": answer.reason,
            "pages": [[page.text, page.source, page.confidence] for page in answer.pages],
            "attachments": answer.attachments[:_NAMES],
            "notes": answer.notes,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode("utf-8", "replace")
    return _LENGTH.pack(len(body)) + body


def frame_limit(limits: Limits) -> int:
    """Bytes that an answer may have at most, frame and all."""
    return limits.result_bytes + _LENGTH.size


def decode(data: bytes, *, limits: Limits) -> Reading:
    """Check an answer and make a reading of it.

    Raises:
        WireError: Cut short, not JSON, or any value that is not what it must be.
    """
    if len(data) < _LENGTH.size or _LENGTH.unpack_from(data)[0] != len(data) - _LENGTH.size:
        raise WireError("the frame is not whole")
    try:
        said = json.loads(data[_LENGTH.size :])
        return _reading(said, limits)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"the answer is not well formed: {type(error).__name__}") from None


def _reading(said: Any, limits: Limits) -> Reading:
    if not isinstance(said, dict) or len(said) != 5:
        raise ValueError
    reason = None if said["reason"] is None else ReasonCode(said["reason"])
    pages = tuple(_page(number, item, limits) for number, item in enumerate(_listed(said["pages"]), start=1))
    if sum(len(page.text) for page in pages) > limits.text_chars:
        raise ValueError
    names = tuple(_name(item) for item in _listed(said["attachments"])[:_NAMES])
    return Reading(
        verdict=verdict_of(reason),
        kind=Kind(said["kind"]),
        reason_code=reason,
        pages=pages,
        attachments=names,
        notes=tuple(Note(item) for item in _listed(said["notes"])),
    )


def _page(number: int, item: Any, limits: Limits) -> Page:
    text, source, confidence = item
    if not isinstance(text, str) or len(text) > limits.page_chars or not is_storable(text):
        raise ValueError
    if confidence is not None:
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise TypeError
        if not 0 <= confidence <= _FULL_CONFIDENCE:
            raise ValueError
        confidence = float(confidence)
    return Page(number=number, text=text, source=Source(source), confidence=confidence)


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    shown = " ".join("".join(c for c in value if c.isprintable()).split())
    return shown[:_NAME_CHARS]
