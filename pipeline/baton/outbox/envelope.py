"""What travels: the JSON body of a message, written by the relay and read by consumers.

A message is a hint that a ticket is due. Receivers act on ``ticket_id`` and ``idempotency_key`` alone, to load the
ticket's row; the other fields are for people who look into a queue. The body is plain ASCII, so that nothing in a file
name can make a queue refuse it.

    EnvelopeError              not a message that this program can act on
    ├── UnreadableEnvelope     not JSON, or not an envelope
    ├── UnknownVersion         of a newer release
    └── UnknownEvent           an envelope, with an event type that this program does not know
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, Final
from uuid import UUID

from baton.db.states import EventType

VERSION: Final = 1
#: The message attribute that carries the trace.
TRACEPARENT: Final = "traceparent"

#: Characters of a body that is read at all; ours have a few hundred, and a key or name escaped to ASCII a few thousand.
_LONGEST: Final = 64 * 1024
_LONGEST_KEY: Final = 128
#: Characters of a content type, which somebody else's program named, that are worth showing.
_LONGEST_TYPE: Final = 255
_LARGEST_ID: Final = 2**63 - 1
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}(-[0-9a-f]+)+", re.ASCII)


class EnvelopeError(ValueError):
    """The message is none that this program can act on; the text never repeats the message."""


class UnreadableEnvelope(EnvelopeError):
    """Not JSON, or not an envelope."""


class UnknownVersion(EnvelopeError):
    """An envelope of a later version: a newer release wrote it."""


class UnknownEvent(EnvelopeError):
    """An envelope whose event type is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a receiver may take from a message."""

    ticket_id: int
    idempotency_key: str
    event_type: EventType


def write(
    *,
    ticket_id: int,
    idempotency_key: str,
    event_type: str,
    firm_id: UUID | str,
    matter_id: UUID | str,
    document_id: UUID | str,
    object_key: str,
    content_type: str,
    run_id: UUID | str | None = None,
    part: str | None = None,
) -> str:
    """The body of a ticket's message."""
    # Spelt out: an encoder set up anew for each message took half of a relay's own time.
    return (
        f'{{"v":{VERSION},"ticket_id":{ticket_id:d},"idempotency_key":{_quoted(idempotency_key)}'
        f',"event_type":{_quoted(event_type)},"firm_id":"{firm_id}","matter_id":"{matter_id}"'
        f',"document_id":"{document_id}","object_key":{_quoted(object_key)},"content_type":{_quoted(content_type[:_LONGEST_TYPE])}'
        f',"run_id":{_or_null(run_id)},"part":{_or_null(part)}}}'
    )


def _or_null(value: UUID | str | None) -> str:
    return "null" if value is None else _quoted(str(value))


def attributes(traceparent: str | None) -> dict[str, str]:
    """The attributes of a ticket's message. A stored trace that is no trace is left out: a queue could refuse it."""
    if traceparent is None or len(traceparent) > 128 or not _TRACEPARENT.fullmatch(traceparent):
        return {}
    return {TRACEPARENT: traceparent}


def parse(body: str) -> Envelope:
    """Read a message's body, which may be anything.

    :raises UnreadableEnvelope: not JSON, not an object, a ``v`` that no release writes, or fields of the wrong kind.
    :raises UnknownVersion: a later ``v``.
    :raises UnknownEvent: an event type from outside :class:`EventType`.
    """
    found = _object(body)
    version = found.get("v")
    if type(version) is not int or version < VERSION:
        raise UnreadableEnvelope("the message has no version of an envelope")
    if version > VERSION:
        raise UnknownVersion("the message is of a later version than 1")
    ticket_id = found.get("ticket_id")
    if type(ticket_id) is not int or not 0 < ticket_id <= _LARGEST_ID:
        raise UnreadableEnvelope("ticket_id is no ticket's id")
    key = found.get("idempotency_key")
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
        raise UnreadableEnvelope("idempotency_key is no ticket's key")
    event = found.get("event_type")
    if not isinstance(event, str):
        raise UnreadableEnvelope("event_type is missing")
    try:
        event_type = EventType(event)
    except ValueError:
        raise UnknownEvent("the event type is not known") from None
    return Envelope(ticket_id=ticket_id, idempotency_key=key, event_type=event_type)


def _object(body: str) -> dict[str, Any]:
    if len(body) > _LONGEST:
        raise UnreadableEnvelope("the message is too long for an envelope")
    try:
        found = json.loads(body)
    # A number of thousands of digits is a ValueError, an array nested thousands deep a RecursionError.
    except (ValueError, RecursionError):
        raise UnreadableEnvelope("the message is not JSON") from None
    if not isinstance(found, dict):
        raise UnreadableEnvelope("the message is not a JSON object")
    return found
