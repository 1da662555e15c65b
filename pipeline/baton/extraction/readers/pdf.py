"""PDF: native text page by page, recognition where a page is a picture."""

import ctypes
from collections.abc import Iterator
from typing import Any, Final

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image

from baton.extraction.jobs import Content, Draft, Job
from baton.extraction.outcomes import Note, ReasonCode, Source, Unreadable
from baton.extraction.readers.recognition import Recognition
from baton.extraction.text import clean, has_words, split

_DPI: Final = 200
_LONG_SIDE: Final = 4_000
_POINTS_PER_INCH: Final = 72
_TAIL_BYTES: Final = 64 * 1024
_LINEARIZED_TAIL: Final = 8 * 1024
# A page number or a filing stamp over a scan is native text, but not the page's.
_STAMP_CHARS: Final = 200
_PICTURE_SHARE: Final = 0.5
_FORM_DEPTH: Final = 3
_OBJECTS_LOOKED_AT: Final = 2_000


def read(job: Job) -> Content:
    """Read every page of a PDF.

    Raises:
        Unreadable: Encrypted, incomplete, damaged, or too many pages or too much text.
    """
    _require_end(job)
    document = _open(job.path)
    if len(document) == 0:
        raise Unreadable(ReasonCode.CORRUPT)
    if len(document) > job.limits.pages:
        raise Unreadable(ReasonCode.TOO_MANY_PAGES)
    recognition = Recognition(job)
    content = Content(attachments=_attachment_names(document))
    total, broken = 0, 0
    for index in range(len(document)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            broken += 1
            content.pages.append(Draft(""))
            continue
        draft = _page(page, recognition)
        page.close()
        total += len(draft.text)
        if total > job.limits.text_chars:
            raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
        _append(content, draft, size=job.limits.page_chars)
    if broken == len(document):
        raise Unreadable(ReasonCode.CORRUPT)
    # What could be read is kept, but nobody may take it for the whole document.
    content.reason = ReasonCode.PAGES_UNREADABLE if broken else recognition.reason
    return content


def _append(content: Content, draft: Draft, *, size: int) -> None:
    pieces = list(split(draft.text, size=size)) or [""]
    if len(pieces) > 1:
        content.notes.add(Note.PAGES_SPLIT)
    content.pages.extend(Draft(piece, draft.source, draft.confidence) for piece in pieces)


def _require_end(job: Job) -> None:
    """Refuse a file that was cut off: pdfium would repair it and lose pages without a word."""
    size = job.file.seek(0, 2)
    start = max(0, size - _TAIL_BYTES)
    job.file.seek(start)
    tail = job.file.read(_TAIL_BYTES).rstrip(b"\x00 \t\r\n")
    marker = tail.rfind(b"%%EOF")
    if marker < 0 and b"startxref" not in tail[-64:]:
        raise Unreadable(ReasonCode.TRUNCATED)
    job.file.seek(0)
    head = job.file.read(_LINEARIZED_TAIL)
    if b"/Linearized" in head:
        # Such a file has an end marker near its start and says how long it must be.
        declared = _linearized_length(head)
        if declared is not None and size < declared:
            raise Unreadable(ReasonCode.TRUNCATED)


def _linearized_length(head: bytes) -> int | None:
    at = head.find(b"/Linearized")
    key = head.find(b"/L ", at, at + 512)
    digits = head[key + 3 : key + 15].split(None, 1)[0] if key >= 0 else b""
    return int(digits) if digits.isdigit() else None


def _open(path: str) -> Any:
    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}:
            raise Unreadable(ReasonCode.ENCRYPTED) from None
        raise Unreadable(ReasonCode.CORRUPT) from None


def _attachment_names(document: Any) -> list[str]:
    names: list[str] = []
    for index in range(min(document.count_attachments(), 200)):
        try:
            names.append(str(document.get_attachment(index).get_name()))
        except pypdfium2.PdfiumError:
            continue
    return names


def _page(page: Any, recognition: Recognition) -> Draft:
    text = _native_text(page)
    if _is_readable(text) and (len(text) >= _STAMP_CHARS or not _is_picture(page)):
        return Draft(text)
    if not _shows_anything(page):
        return Draft(text)
    draft = recognition.page(lambda: _render(page), dpi=_DPI)
    if not draft.text:
        return Draft(text, Source.NATIVE if has_words(text) else Source.OCR, None)
    if has_words(text) and _is_readable(text) and text not in draft.text:
        return Draft(f"{draft.text}\n\n{text}", Source.OCR, draft.confidence)
    return draft


def _native_text(page: Any) -> str:
    try:
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return ""
    raw = text_page.get_text_range(errors="ignore")
    text_page.close()
    text = clean(raw).replace("\f", "\n")
    fields = clean("\n".join(_field_values(page)))
    return f"{text}\n\n{fields}".strip() if fields else text


def _field_values(page: Any) -> Iterator[str]:
    """What was typed into the fields of a form; the page's own text does not hold it."""
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _OBJECTS_LOOKED_AT)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_WIDGET:
                value = _string_value(annotation, b"V")
                if has_words(value):
                    yield value
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _string_value(annotation: Any, key: bytes) -> str:
    length = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if not 2 < length <= 200_000:
        return ""
    buffer = ctypes.create_string_buffer(length)
    pdfium.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return buffer.raw[: length - 2].decode("utf-16-le", "ignore")


def _is_readable(text: str) -> bool:
    """Whether there is text, and it is not the debris of a font without a character map."""
    if not has_words(text):
        return False
    debris = sum(character == "\ufffd" or "\ue000" <= character <= "\uf8ff" for character in text)
    return debris * 5 <= len(text)


def _is_picture(page: Any) -> bool:
    area = max(page.get_width() * page.get_height(), 1.0)
    return any(_covered(item) >= area * _PICTURE_SHARE for item in _objects(page, pdfium.FPDF_PAGEOBJ_IMAGE))


def _shows_anything(page: Any) -> bool:
    return next(iter(_objects(page, None)), None) is not None


def _objects(page: Any, kind: int | None) -> Iterator[Any]:
    kinds = None if kind is None else [kind]
    for number, item in enumerate(page.get_objects(filter=kinds, max_depth=_FORM_DEPTH)):
        if number >= _OBJECTS_LOOKED_AT:
            return
        yield item


def _covered(item: Any) -> float:
    try:
        left, bottom, right, top = item.get_bounds()
    except pypdfium2.PdfiumError:
        return 0.0
    return float(abs(right - left) * abs(top - bottom))


def _render(page: Any) -> Image.Image:
    width, height = page.get_size()
    longest = max(width, height, 1.0)
    scale = min(_DPI / _POINTS_PER_INCH, _LONG_SIDE / longest)
    image: Image.Image = page.render(scale=scale, grayscale=True).to_pil()
    return image
