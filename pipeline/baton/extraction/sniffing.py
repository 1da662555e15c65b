"""What a file is, by its bytes. Names and declared types are hints for doubtful text only."""

import io
import re
import zipfile
from collections.abc import Mapping
from typing import BinaryIO, Final

from baton.extraction.outcomes import Kind, ReasonCode, Unreadable

HEAD_BYTES: Final = 64 * 1024

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", Kind.PNG),
    (b"\xff\xd8\xff", Kind.JPEG),
    (b"II*\x00", Kind.TIFF),
    (b"MM\x00*", Kind.TIFF),
    (b"II+\x00", Kind.TIFF),
    (b"MM\x00+", Kind.TIFF),
    (b"{\\rtf", Kind.RTF),
    (b"Rar!\x1a\x07", Kind.ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", Kind.ARCHIVE),
    (b"\x1f\x8b", Kind.ARCHIVE),
)
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_HTML: Final = re.compile(rb"\s*(<!--.{0,2000}?-->\s*)?<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_HEADER: Final = re.compile(rb"^([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]?", re.MULTILINE)
_MAIL_ONLY: Final = frozenset(
    {b"received", b"return-path", b"message-id", b"mime-version", b"delivered-to", b"x-mailer"}
)
_MAIL: Final = _MAIL_ONLY | {b"from", b"to", b"subject", b"date", b"cc", b"reply-to"}

_EXPECTED: Final[Mapping[str, Kind]] = {
    ".pdf": Kind.PDF,
    ".docx": Kind.DOCX,
    ".eml": Kind.EML,
    ".msg": Kind.MSG,
    ".txt": Kind.TEXT,
    ".htm": Kind.HTML,
    ".html": Kind.HTML,
    ".png": Kind.PNG,
    ".jpg": Kind.JPEG,
    ".jpeg": Kind.JPEG,
    ".tif": Kind.TIFF,
    ".tiff": Kind.TIFF,
    ".doc": Kind.LEGACY_OFFICE,
}
_TEXT_LIKE: Final = frozenset({Kind.TEXT, Kind.EML, Kind.HTML})


def suffix_of(name: str) -> str:
    """The extension of a file name in lower case, with its dot; empty if there is none."""
    _, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot else ""


def contradicts(kind: Kind, *, name: str) -> bool:
    """Whether the name promises another type than the bytes are."""
    expected = _EXPECTED.get(suffix_of(name))
    if expected is None or expected is kind:
        return False
    return not (expected in _TEXT_LIKE and kind in _TEXT_LIKE)


def sniff(file: BinaryIO, *, name: str, content_type: str) -> Kind:
    """Tell the type of an open file.

    Raises:
        Unreadable: The file says it is a ZIP or OLE container and is damaged.
    """
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if not head.strip(b"\x00 \t\r\n"):
        return _blank(file, head)
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if b"%PDF-" in head[:1024]:
        return Kind.PDF
    if head.startswith(_ZIP):
        return _zip_kind(file)
    if head.startswith(_OLE):
        return _ole_kind(file)
    return _text_kind(head, hint=suffix_of(name), content_type=content_type)


def _blank(file: BinaryIO, head: bytes) -> Kind:
    if not head:
        return Kind.EMPTY
    while chunk := file.read(1024 * 1024):
        if chunk.strip(b"\x00 \t\r\n"):
            return Kind.UNKNOWN
    return Kind.EMPTY


def _zip_kind(file: BinaryIO) -> Kind:
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        # The list of contents stands at the end: without it the end is what is missing.
        raise Unreadable(ReasonCode.TRUNCATED) from None
    if "[Content_Types].xml" not in names:
        return Kind.ARCHIVE
    for folder, kind in (
        ("word/", Kind.DOCX),
        ("xl/", Kind.SPREADSHEET),
        ("ppt/", Kind.PRESENTATION),
    ):
        if any(name.startswith(folder) for name in names):
            return kind
    return Kind.ARCHIVE


def _ole_kind(file: BinaryIO) -> Kind:
    import olefile  # noqa: PLC0415 - only container files pay for it

    file.seek(0)
    try:
        with olefile.OleFileIO(io.BytesIO(file.read())) as ole:
            names = {entry[0].lower() for entry in ole.listdir(streams=True, storages=False)}
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the parser fails in many ways on damaged containers
        raise Unreadable(ReasonCode.CORRUPT) from None
    if "encryptedpackage" in names or "encryptioninfo" in names:
        return Kind.ENCRYPTED_OFFICE
    if "__properties_version1.0" in names:
        return Kind.MSG
    if names & {"worddocument", "workbook", "book", "powerpoint document"}:
        return Kind.LEGACY_OFFICE
    return Kind.UNKNOWN


def _text_kind(head: bytes, *, hint: str, content_type: str) -> Kind:
    if head.startswith(_BOMS):
        return Kind.TEXT
    if utf16_without_mark(head) is not None:
        return Kind.TEXT
    if _controls(head) > max(2, len(head) // 50):
        return Kind.UNKNOWN
    if _HTML.match(head):
        return Kind.HTML
    if _is_mail(head, hinted=hint == ".eml" or content_type.startswith("message/")):
        return Kind.EML
    return Kind.TEXT


def _controls(head: bytes) -> int:
    return len(head) - len(head.translate(None, delete=bytes(range(9)) + bytes(range(14, 32))))


def _is_mail(head: bytes, *, hinted: bool) -> bool:
    block = re.split(rb"\r?\n\r?\n", head.lstrip(), maxsplit=1)[0]
    first = _HEADER.match(block)
    if first is None and not block.startswith(b"From "):
        return False
    found = {match.group(1).lower() for match in _HEADER.finditer(block)}
    if hinted:
        return bool(found & _MAIL)
    return len(found & _MAIL) >= 2 and bool(found & _MAIL_ONLY)


def utf16_without_mark(head: bytes) -> str | None:
    """Name the codec of UTF-16 text that lacks its byte order mark, or None."""
    sample = head[: 4096 & ~1]
    if len(sample) < 8:
        return None
    half = len(sample) // 2
    high_nulls, low_nulls = sample[1::2].count(0), sample[0::2].count(0)
    if high_nulls > half * 0.6 and low_nulls < half * 0.05:
        return "utf-16-le"
    if low_nulls > half * 0.6 and high_nulls < half * 0.05:
        return "utf-16-be"
    return None
