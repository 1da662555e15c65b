"""Plain text in whatever encoding it comes."""

import codecs
import re
from typing import Final

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import Note, ReasonCode, Unreadable
from baton.extraction.sniffing import utf16_without_mark

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # The mark of UTF-32 begins with that of UTF-16: it must be asked for first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_LONGEST_SEQUENCE: Final = 3


def read(job: Job) -> Content:
    """Decode and cut into pages.

    Raises:
        Unreadable: More text than one document may have.
    """
    job.file.seek(0)
    # Four bytes a character at most, so no text within bounds is cut short here.
    data = job.file.read(job.limits.text_chars * 4 + 1)
    if len(data) > job.limits.text_chars * 4:
        raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
    text, replaced = decode(data, declared=charset_of(job.content_type))
    content = Content.of_text(text, limits=job.limits)
    if replaced:
        content.notes.add(Note.CHARACTERS_REPLACED)
    return content


def charset_of(content_type: str) -> str | None:
    """The charset named by a content type, or None."""
    match = _CHARSET.search(content_type)
    return match.group(1) if match else None


def decode(data: bytes, *, declared: str | None) -> tuple[str, bool]:
    """Decode bytes of unknown encoding; the second value tells whether anything was replaced.

    A byte order mark decides. Else UTF-8 if it fits, what was declared if that fits, and
    windows-1252 as the last resort, in which nearly every byte is a character.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            text = data.decode(codec, "replace")
            return text, "\ufffd" in text
    wide = utf16_without_mark(data)
    if wide is not None:
        return data.decode(wide, "replace"), False
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError as error:
        if len(data) - error.start <= _LONGEST_SEQUENCE and "end of data" in error.reason:
            return data[: error.start].decode("utf-8"), True
    if declared is not None:
        try:
            return data.decode(_text_codec(declared)), False
        except (LookupError, UnicodeError, ValueError):
            pass
    text = data.decode("cp1252", "replace")
    return text, "\ufffd" in text


def _text_codec(name: str) -> str:
    info = codecs.lookup(name)
    # Python also knows codecs such as zip and rot13, which are no encodings of text.
    if not getattr(info, "_is_text_encoding", True):
        raise LookupError(name)
    return info.name
