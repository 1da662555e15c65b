"""What reading a file can come to, in terms that a lawyer may be shown."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """Where the document goes from here."""

    INDEXED = "indexed"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"


class Source(StrEnum):
    """How a page's text was had."""

    NATIVE = "native"
    OCR = "ocr"


class Kind(StrEnum):
    """What a file is by its bytes, whatever its name says."""

    PDF = "pdf"
    DOCX = "docx"
    EML = "eml"
    MSG = "msg"
    TEXT = "text"
    HTML = "html"
    PNG = "png"
    JPEG = "jpeg"
    TIFF = "tiff"
    ENCRYPTED_OFFICE = "encrypted_office"
    LEGACY_OFFICE = "legacy_office"
    SPREADSHEET = "spreadsheet"
    PRESENTATION = "presentation"
    RTF = "rtf"
    ARCHIVE = "archive"
    EMPTY = "empty"
    UNKNOWN = "unknown"


class ReasonCode(StrEnum):
    """Why a file is not simply indexed."""

    EMPTY = "empty"
    UNSUPPORTED = "unsupported"
    ENCRYPTED = "encrypted"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    EXPANDS_TOO_FAR = "expands_too_far"
    IMAGE_TOO_LARGE = "image_too_large"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    FILE_TOO_LARGE = "file_too_large"
    TOO_MUCH_MEMORY = "too_much_memory"
    TOO_SLOW = "too_slow"
    READER_CRASHED = "reader_crashed"
    NO_TEXT = "no_text"
    OCR_UNAVAILABLE = "ocr_unavailable"
    OCR_INCOMPLETE = "ocr_incomplete"
    LOW_CONFIDENCE = "low_confidence"
    BODY_NOT_READABLE = "body_not_readable"
    PAGES_UNREADABLE = "pages_unreadable"


_REVIEWED: Final = frozenset(
    {
        ReasonCode.NO_TEXT,
        ReasonCode.OCR_UNAVAILABLE,
        ReasonCode.OCR_INCOMPLETE,
        ReasonCode.LOW_CONFIDENCE,
        ReasonCode.BODY_NOT_READABLE,
        ReasonCode.PAGES_UNREADABLE,
    }
)

_REASONS: Final = {
    ReasonCode.EMPTY: "The file is empty. Upload the document again.",
    ReasonCode.UNSUPPORTED: (
        "Files of this type cannot be read. Save the document as PDF or DOCX and upload it again."
    ),
    ReasonCode.ENCRYPTED: ("The file is protected by a password or encrypted. Upload a copy without protection."),
    ReasonCode.TRUNCATED: "The file is incomplete: its end is missing. Upload it again.",
    ReasonCode.CORRUPT: "The file is damaged and cannot be opened. Upload an intact copy.",
    ReasonCode.EXPANDS_TOO_FAR: ("The file unpacks to far more data than a document holds and was not opened."),
    ReasonCode.IMAGE_TOO_LARGE: "The image has too many pixels to be read safely.",
    ReasonCode.TOO_MANY_PAGES: ("The document has too many pages to be read as one. Split it and upload the parts."),
    ReasonCode.TOO_MUCH_TEXT: ("The document has too much text to be read as one. Split it and upload the parts."),
    ReasonCode.FILE_TOO_LARGE: "The file is too large to be read safely.",
    ReasonCode.TOO_MUCH_MEMORY: "The file is too large or too complex to be read safely.",
    ReasonCode.TOO_SLOW: "The file took too long to read and was given up.",
    ReasonCode.READER_CRASHED: "The file could not be read because the reader stopped working.",
    ReasonCode.NO_TEXT: "No text was found in the document. Please look at it yourself.",
    ReasonCode.OCR_UNAVAILABLE: ("The document has scanned pages, and text recognition is not available here."),
    ReasonCode.OCR_INCOMPLETE: "Some scanned pages could not be recognised. Please check them.",
    ReasonCode.LOW_CONFIDENCE: ("The text of scanned pages was recognised with low confidence. Please check it."),
    ReasonCode.PAGES_UNREADABLE: ("Some pages of the file are damaged and could not be read. Please check them."),
    ReasonCode.BODY_NOT_READABLE: (
        "The message is encrypted or in a form that cannot be shown as text. Please look at it."
    ),
}


class Note(StrEnum):
    """What is worth saying of a file that was read all the same."""

    OTHER_TYPE = "other_type"
    PAGES_SPLIT = "pages_split"
    CHARACTERS_REPLACED = "characters_replaced"


NOTES: Final = {
    Note.OTHER_TYPE: "The file is not of the type that its name says; it was read as what it is.",
    Note.PAGES_SPLIT: "Very long pages were split, so page numbers may differ from the original.",
    Note.CHARACTERS_REPLACED: "Some characters could not be decoded and were replaced.",
}


@dataclass(frozen=True, slots=True)
class Page:
    """The text of one page, cleaned so that Postgres can store it."""

    number: int
    """From 1, rising by one."""
    text: str
    source: Source
    confidence: float | None
    """Mean confidence of recognised text, 0 to 100; None for native text or none at all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The outcome of reading one file."""

    verdict: Verdict
    kind: Kind
    reason_code: ReasonCode | None = None
    pages: tuple[Page, ...] = ()
    attachments: tuple[str, ...] = ()
    """Names of files inside this one. They are listed, not read."""
    notes: tuple[Note, ...] = ()

    @property
    def reason(self) -> str | None:
        """A sentence for the lawyer, or None when there is nothing to explain."""
        return None if self.reason_code is None else _REASONS[self.reason_code]

    @property
    def retryable(self) -> bool:
        """Whether another try may end differently: only a crash, and only the caller counts."""
        return self.reason_code is ReasonCode.READER_CRASHED


def verdict_of(reason: ReasonCode | None) -> Verdict:
    """The verdict that follows from a reason, or from having none."""
    if reason is None:
        return Verdict.INDEXED
    return Verdict.NEEDS_REVIEW if reason in _REVIEWED else Verdict.FAILED


class Unreadable(Exception):
    """Raised by a reader that gives a file up; `reason` says why."""

    def __init__(self, reason: ReasonCode) -> None:
        super().__init__(reason.value)
        self.reason = reason
