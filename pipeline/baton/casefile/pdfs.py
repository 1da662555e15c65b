"""PDF files: native text, scans, a mixture, under a password, and cut off."""

import io
from collections.abc import Sequence
from typing import Final

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

_MARGIN: Final = 64
_LEADING: Final = 16
_SIZE: Final = 11
# A font that every reader of PDF has by name, so none is embedded; it covers Greek as well.
_WORLD_FONT: Final = "HeiseiMin-W3"


def make_pdf(
    pages: Sequence[list[str] | Image.Image],
    *,
    title: str,
    password: str | None = None,
    other_script: bool = False,
) -> bytes:
    """Write a PDF whose pages are lines of text or pictures of a whole page.

    Args:
        pages: Lines, drawn as native text, or an image, laid over the page.
        title: For the document's own information.
        password: Without it the file does not open; None for none.
        other_script: Draw in a font that covers more than Latin.
    """
    out = io.BytesIO()
    encryption = StandardEncryption(password, strength=128) if password else None
    canvas = Canvas(out, pagesize=A4, pageCompression=1, invariant=1, encrypt=encryption)
    canvas.setTitle(title)
    font = "Helvetica"
    if other_script:
        pdfmetrics.registerFont(UnicodeCIDFont(_WORLD_FONT))
        font = _WORLD_FONT
    for page in pages:
        if isinstance(page, Image.Image):
            canvas.drawImage(ImageReader(page), 0, 0, width=A4[0], height=A4[1])
        else:
            _draw(canvas, page, font=font)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _draw(canvas: Canvas, lines: list[str], *, font: str) -> None:
    text = canvas.beginText(_MARGIN, A4[1] - _MARGIN)
    text.setFont(font, _SIZE, leading=_LEADING)
    for line in lines:
        text.textLine(line)
    canvas.drawText(text)
