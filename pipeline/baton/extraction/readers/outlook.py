"""Outlook messages (MSG): the same shape of text as mail that travelled as such."""

import io
from typing import Any, Final

from oxmsg import Message

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import ReasonCode, Unreadable
from baton.extraction.readers import markup
from baton.extraction.readers.mail import size_text

_RTF_BODY: Final = 0x1009
_CLASS_ENCRYPTED: Final = ("ipm.note.smime", "ipm.note.rpmsg", "ipm.note.secure")
_SIGNED: Final = "multipartsigned"
_NAMES: Final = 500


def read(job: Job) -> Content:
    """Read headers, body and the names of attachments.

    Raises:
        Unreadable: Damaged, or more text than one document may have.
    """
    job.file.seek(0)
    try:
        message = Message.load(io.BytesIO(job.file.read()))
        lines, attachments = _lines(message)
        body = _body(message)
        kind = str(message.message_class).lower()
        only_rtf = not body and message.properties.binary_prop_value(_RTF_BODY) is not None
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the library fails in many ways on damaged messages
        raise Unreadable(ReasonCode.CORRUPT) from None
    content = Content.of_text("\n".join([*lines, "", body, "", *attachments]), limits=job.limits)
    content.attachments = [line[1] for line in _attached(message)]
    encrypted = kind.startswith(_CLASS_ENCRYPTED) and _SIGNED not in kind
    if encrypted or only_rtf:
        content.reason = ReasonCode.BODY_NOT_READABLE
    return content


def _lines(message: Any) -> tuple[list[str], list[str]]:
    headers = message.message_headers
    recipients = "; ".join(_address(item) for item in message.recipients)
    sent = message.sent_date
    fields = {
        "From": message.sender,
        "To": headers.get("To") or recipients,
        "Cc": headers.get("Cc"),
        "Date": headers.get("Date") or (sent.strftime("%d %B %Y %H:%M UTC") if sent else None),
        "Subject": message.subject,
    }
    lines = [f"{name}: {' '.join(str(value).split())}" for name, value in fields.items() if value]
    return lines, [line for line, _ in _attached(message)]


def _address(recipient: Any) -> str:
    name, address = recipient.name, recipient.email_address
    return f"{name} <{address}>" if address and address != name else str(name)


def _body(message: Any) -> str:
    body = message.body
    if body and body.strip("\x00 \r\n\t"):
        return str(body)
    html = message.html_body
    return markup.to_text(html) if html else ""


def _attached(message: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for item in message.attachments[:_NAMES]:
        name = item.file_name or "(no name)"
        found.append((f"[Attachment: {name}, {item.mime_type}, {size_text(item.size)}]", name))
    return found
