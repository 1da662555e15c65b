"""Mail as it travels (RFC 5322): headers, the body as text, and what is attached, by name."""

import email
import email.errors
import email.header
import email.policy
import re
from email.message import Message
from typing import Any, Final

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import ReasonCode, Unreadable
from baton.extraction.readers import markup, plain

HEADERS: Final = ("From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject")
_PARTS: Final = 2_000
_DEPTH: Final = 12
_NAMES: Final = 500
_ENCRYPTED: Final = frozenset({"multipart/encrypted", "application/pgp-encrypted"})
_SMIME: Final = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_UNFOLD: Final = re.compile(r"\s*[\r\n]+\s*")


def read(job: Job) -> Content:
    """Read a message and the messages nested in it.

    Raises:
        Unreadable: No message, or more parts, depth or text than a message has.
    """
    job.file.seek(0)
    data = job.file.read()
    try:
        message = email.message_from_bytes(data, policy=email.policy.compat32)
    except (ValueError, LookupError, IndexError, email.errors.MessageError):
        raise Unreadable(ReasonCode.CORRUPT) from None
    walker = _Walker(job.limits.text_chars)
    walker.message(message, depth=0)
    content = Content.of_text("\n".join(walker.parts), limits=job.limits)
    content.attachments = walker.attachments
    if walker.encrypted and not walker.bodies:
        content.reason = ReasonCode.BODY_NOT_READABLE
    return content


def size_text(size: int) -> str:
    """A size in words: bytes, then kB of 1,000 bytes, then MB."""
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


class _Walker:
    def __init__(self, limit: int) -> None:
        self.parts: list[str] = []
        self.attachments: list[str] = []
        self.encrypted = False
        self.bodies = 0
        self._left = limit
        self._seen = 0

    def message(self, message: Message, *, depth: int) -> None:
        if depth > _DEPTH:
            raise Unreadable(ReasonCode.CORRUPT)
        for name in HEADERS:
            value = header(message, name)
            if value:
                self._add(f"{name}: {value}")
        self._add("")
        self._part(message, depth=depth)

    def _part(self, part: Message, *, depth: int) -> None:
        self._seen += 1
        if self._seen > _PARTS or depth > _DEPTH * 2:
            raise Unreadable(ReasonCode.CORRUPT)
        kind = part.get_content_type()
        self.encrypted |= kind in _ENCRYPTED or kind in _SMIME
        inner = _inner(part)
        if kind == "message/rfc822" and inner:
            self._add("\nForwarded message:")
            self.message(inner[0], depth=depth + 1)
        elif kind == "multipart/alternative" and inner:
            self._part(_preferred(inner), depth=depth + 1)
        elif inner:
            for child in inner:
                self._part(child, depth=depth + 1)
        elif _is_body(part, kind):
            self._body(part, kind)
        else:
            self._attached(part, kind)

    def _body(self, part: Message, kind: str) -> None:
        text, _ = plain.decode(_payload(part), declared=_charset(part))
        shown = markup.to_text(text) if kind == "text/html" else text
        if shown.strip():
            self.bodies += 1
            self._add(shown)

    def _attached(self, part: Message, kind: str) -> None:
        name = _decoded(_file_name(part)) or "(no name)"
        if len(self.attachments) < _NAMES:
            self.attachments.append(name)
            self._add(f"[Attachment: {name}, {kind}, {size_text(len(_payload(part)))}]")

    def _add(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
        self.parts.append(text)


def header(message: Message, name: str) -> str:
    """A header as a person reads it, whatever is wrong with it."""
    values = message.get_all(name, [])
    return "; ".join(_decoded(str(value)) for value in values[:5])


def _decoded(value: str) -> str:
    # str() of a header with bytes beyond ASCII holds surrogates: give them their UTF-8 back.
    value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        words = email.header.decode_header(value)
    except (ValueError, email.errors.HeaderParseError):
        words = [(value, None)]
    pieces: list[str] = []
    for word, charset in words:
        if isinstance(word, bytes):
            pieces.append(plain.decode(word, declared=charset)[0])
        else:
            pieces.append(word)
    return _UNFOLD.sub(" ", "".join(pieces)).strip()


def _inner(part: Message) -> list[Message]:
    payload: Any = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _preferred(parts: list[Message]) -> Message:
    """Of the versions of one body the plain one, unless it is blank."""
    for kind in ("text/plain", "text/html"):
        for part in parts:
            if part.get_content_type() == kind and _payload(part).strip():
                return part
    return parts[-1]


def _is_body(part: Message, kind: str) -> bool:
    if part.get_content_disposition() == "attachment" or _file_name(part):
        return False
    return kind in {"text/plain", "text/html"} or part.get_content_maintype() == "text"


def _file_name(part: Message) -> str:
    try:
        return str(part.get_filename() or "")
    except (ValueError, LookupError, TypeError, email.errors.MessageError):
        return ""


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except (ValueError, LookupError, TypeError):
        return None


def _payload(part: Message) -> bytes:
    try:
        payload: Any = part.get_payload(decode=True)
    except (ValueError, LookupError, TypeError, AssertionError):
        return b""
    return payload if isinstance(payload, bytes) else b""
