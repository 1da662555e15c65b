"""What a file is, by its bytes."""

import io
from datetime import UTC, datetime

import pytest

from baton.casefile.bombs import png_bomb
from baton.casefile.compound import Storage, write_compound
from baton.casefile.messages import Letter, Person, make_eml, make_msg
from baton.casefile.pdfs import make_pdf
from baton.casefile.worddocs import make_docx, pack
from baton.extraction.outcomes import Kind
from baton.extraction.sniffing import contradicts, sniff

LETTER = Letter(Person("A", "a@x.example"), Person("B", "b@y.example"), "S", datetime(2024, 1, 2, tzinfo=UTC), "Body\n")
SAMPLES = [
    (make_pdf([["x"]], title="x"), Kind.PDF),
    (b"\xef\xbb\xbf junk before\n" + make_pdf([["x"]], title="x"), Kind.PDF),
    (make_docx(["x"]), Kind.DOCX),
    (pack({"[Content_Types].xml": "", "xl/workbook.xml": ""}), Kind.SPREADSHEET),
    (pack({"[Content_Types].xml": "", "ppt/presentation.xml": ""}), Kind.PRESENTATION),
    (pack({"readme.txt": ""}), Kind.ARCHIVE),
    (make_msg(LETTER), Kind.MSG),
    (write_compound(Storage({"EncryptedPackage": b"1" * 5000})), Kind.ENCRYPTED_OFFICE),
    (write_compound(Storage({"WordDocument": b"1" * 5000})), Kind.LEGACY_OFFICE),
    (make_eml(LETTER), Kind.EML),
    (b"{\\rtf1\\ansi hello}", Kind.RTF),
    (png_bomb(side=8), Kind.PNG),
    (b"\xff\xd8\xff\xe0" + bytes(20), Kind.JPEG),
    (b"II*\x00" + bytes(20), Kind.TIFF),
    (b"<!-- x --><!DOCTYPE html><p>x", Kind.HTML),
    (b"", Kind.EMPTY),
    (b" \r\n\x00" * 100_000, Kind.EMPTY),
    (b" " * 100_000 + b"late words", Kind.UNKNOWN),
    ("Ωμέγα".encode("utf-16"), Kind.TEXT),
    ("No mark at all".encode("utf-16-be"), Kind.TEXT),
    (b"Dear Sir,\n\nplease find", Kind.TEXT),
    (b"From: the desk of X\nTo: Y\nSubject: memo\n\nbody", Kind.TEXT),
    (b"Note: this is\nno mail: at all\n", Kind.TEXT),
    (bytes(range(256)) * 40, Kind.UNKNOWN),
]


@pytest.mark.parametrize(("data", "kind"), SAMPLES, ids=[f"{n}-{kind}" for n, (_, kind) in enumerate(SAMPLES)])
@pytest.mark.parametrize("name", ["file", "file.pdf", "file.png"])
def test_bytes_decide_whatever_the_name_says(data: bytes, kind: Kind, name: str) -> None:
    """The name changes nothing."""
    assert sniff(io.BytesIO(data), name=name, content_type="application/pdf") is kind


def test_a_name_decides_only_between_mail_and_text() -> None:
    """Headers that a memo has too are mail when the name says so."""
    memo = b"From: X\nTo: Y\nSubject: memo\n\nbody"
    assert sniff(io.BytesIO(memo), name="memo.eml", content_type="") is Kind.EML
    assert sniff(io.BytesIO(memo), name="memo.txt", content_type="") is Kind.TEXT


def test_a_name_that_promises_another_type_is_noticed() -> None:
    """A Word document called .pdf is; text called .eml is not worth a word."""
    assert contradicts(Kind.DOCX, name="A.PDF")
    assert not contradicts(Kind.PDF, name="A.PDF")
    assert not contradicts(Kind.TEXT, name="a.eml")
    assert not contradicts(Kind.PDF, name="no extension")
