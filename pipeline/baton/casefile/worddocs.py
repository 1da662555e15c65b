"""Word documents (DOCX), written part by part so that the same words give the same bytes."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import Final
from xml.sax.saxutils import escape

_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MIME: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def make_docx(
    opening: Iterable[str],
    *,
    table: Iterable[Iterable[str]] = (),
    closing: Iterable[str] = (),
    header: str | None = None,
) -> bytes:
    """Write paragraphs, a table, paragraphs, and a header for every page."""
    rows = "".join(_row(row) for row in table)
    body = "".join(map(_paragraph, opening))
    body += f"<w:tbl>{rows}</w:tbl>" if rows else ""
    body += "".join(map(_paragraph, closing))
    reference = '<w:headerReference w:type="default" r:id="rId1"/>' if header else ""
    document = (
        f'{_XML}<w:document xmlns:w="{_WORD}" xmlns:r="{_OFFICE}">'
        f"<w:body>{body}<w:sectPr>{reference}</w:sectPr></w:body></w:document>"
    )
    parts = {
        "[Content_Types].xml": _content_types(),
        "_rels/.rels": _relationship("officeDocument", "word/document.xml"),
        "word/document.xml": document,
    }
    if header:
        parts["word/_rels/document.xml.rels"] = _relationship("header", "header1.xml")
        parts["word/header1.xml"] = f'{_XML}<w:hdr xmlns:w="{_WORD}">{_paragraph(header)}</w:hdr>'
    return pack(parts)


def pack(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP of the parts, without a trace of when it was made."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return out.getvalue()


def _paragraph(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _row(cells: Iterable[str]) -> str:
    inner = "".join(f"<w:tc>{_paragraph(cell)}</w:tc>" for cell in cells)
    return f"<w:tr>{inner}</w:tr>"


def _content_types() -> str:
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_MIME}.{kind}+xml"/>'
        for name, kind in (("document", "document.main"), ("header1", "header"))
    )
    return (
        f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )


def _relationship(kind: str, target: str) -> str:
    return (
        f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/{kind}" Target="{target}"/></Relationships>'
    )
