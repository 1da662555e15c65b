"""Scans are recognised by tesseract, and how well is told."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from baton.casefile.pdfs import make_pdf
from baton.casefile.scans import scan_page, to_png
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Reading, ReasonCode, Source, Verdict
from baton.extraction.reading import FileReader

pytestmark = pytest.mark.needs("tesseract")

Read = Callable[..., Reading]


def scan(*lines: str) -> Image.Image:
    """A scanned page."""
    return scan_page(list(lines), rng=random.Random(3))


def black_and_white(image: Image.Image) -> Image.Image:
    """What a fax makes of a page."""
    return image.point(lambda value: 255 if value > 128 else 0).convert("1")


def as_file(image: Image.Image, kind: str, **save: object) -> bytes:
    """A picture in a format."""
    out = io.BytesIO()
    image.save(out, kind, **save)
    return out.getvalue()


def test_pages_of_a_mixed_pdf_are_read_each_by_its_kind(read: Read) -> None:
    """Native text stays native; a scanned page is recognised, with its confidence."""
    reading = read(make_pdf([["Native words"], scan("Scanned words of the court")], title="T"), "a.pdf")
    assert reading.verdict is Verdict.INDEXED
    native, scanned = reading.pages
    assert (native.text, native.source, native.confidence) == ("Native words", Source.NATIVE, None)
    assert (scanned.text, scanned.source) == ("Scanned words of the court", Source.OCR)
    assert scanned.confidence is not None
    assert scanned.confidence > 80


def test_a_stamp_on_a_scan_does_not_hide_the_scan(read: Read, tmp_path: Path) -> None:
    """A page number printed over a scanned page leaves the page to be recognised."""
    path = tmp_path / "stamped.pdf"
    canvas = Canvas(str(path), pagesize=(595, 842))
    canvas.drawImage(ImageReader(scan("Words under the stamp")), 0, 0, width=595, height=842)
    canvas.drawString(400, 20, "BATES 000123")
    canvas.save()
    (page,) = read(path.read_bytes(), "a.pdf").pages
    assert "Words under the stamp" in page.text
    assert "BATES 000123" in page.text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (to_png(scan("Invoice of the carrier")), Kind.PNG),
        (as_file(scan("Invoice of the carrier"), "JPEG"), Kind.JPEG),
        (as_file(scan("Invoice of the carrier").convert("RGBA"), "PNG"), Kind.PNG),
        (as_file(black_and_white(scan("Invoice of the carrier")), "TIFF", compression="group4"), Kind.TIFF),
        (
            as_file(scan("Invoice of the carrier").convert("I").point(lambda v: v * 256).convert("I;16"), "PNG"),
            Kind.PNG,
        ),
    ],
)
def test_pictures_of_pages_are_recognised(read: Read, data: bytes, kind: Kind) -> None:
    """Whatever their format and depth of colour."""
    reading = read(data, "a.bin")
    assert (reading.verdict, reading.kind) == (Verdict.INDEXED, kind)
    assert reading.pages[0].text == "Invoice of the carrier"


def test_every_frame_of_a_tiff_is_a_page(read: Read) -> None:
    """A fax of three pages has three."""
    frames = [scan(f"Page number {n}") for n in ("one", "two", "three")]
    data = as_file(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    reading = read(data, "fax.tiff")
    assert [p.text for p in reading.pages] == ["Page number one", "Page number two", "Page number three"]
    assert read(data, "fax.tiff", limits=Limits(pages=2)).reason_code is ReasonCode.TOO_MANY_PAGES


def test_low_confidence_goes_to_a_person_with_the_text(read: Read) -> None:
    """The text is kept, and so is the doubt."""
    reading = read(to_png(scan("Hardly legible words")), "a.png", limits=Limits(min_confidence=99.9))
    assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.LOW_CONFIDENCE)
    assert reading.pages[0].text == "Hardly legible words"


def test_a_blank_scan_goes_to_a_person(read: Read) -> None:
    """No text at all is worth a look."""
    reading = read(to_png(Image.new("L", (800, 1000), 255)), "a.png")
    assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.NO_TEXT)


def test_a_language_that_is_not_installed_is_left_out(tmp_path: Path, reader: FileReader) -> None:
    """Of the languages asked for those are used that are there; with none there is no recogniser."""
    known = reader.tesseract(Limits(languages=("xxx", "eng")))
    assert known is not None
    assert known.languages == ("eng",)
    assert reader.tesseract(Limits(languages=("xxx",))) is None
