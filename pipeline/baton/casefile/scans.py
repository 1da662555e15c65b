"""Pictures of pages, as a scanner makes them: grey, a little off, a little dirty."""

import io
import random
from typing import Final

from PIL import Image, ImageDraw, ImageFont

_PAGE: Final = (1240, 1754)
"""A4 at 150 dots per inch."""
_MARGIN: Final = 110
_LEADING: Final = 46
_SIZE: Final = 26
_PAPER: Final = 244
_INK: Final = 24
_SPECKS: Final = 150


def scan_page(lines: list[str], *, rng: random.Random) -> Image.Image:
    """Draw lines of text on a page that was not laid quite straight."""
    page = Image.new("L", _PAGE, _PAPER)
    draw = ImageDraw.Draw(page)
    # Pillow's own font: the same on every machine, unlike what the system has.
    font = ImageFont.load_default(_SIZE)
    for number, line in enumerate(lines):
        draw.text((_MARGIN, _MARGIN + number * _LEADING), line, fill=_INK, font=font)
    for _ in range(_SPECKS):
        spot = (rng.randrange(_PAGE[0]), rng.randrange(_PAGE[1]))
        draw.point(spot, fill=rng.randrange(120, 200))
    return page.rotate(rng.uniform(-0.6, 0.6), resample=Image.Resampling.BILINEAR, fillcolor=_PAPER)


def to_png(page: Image.Image) -> bytes:
    """The picture as a PNG file."""
    out = io.BytesIO()
    page.save(out, "PNG", dpi=(150, 150), compress_level=3)
    return out.getvalue()
