"""Every type of file is read to what a person would read in it."""

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import docx
import pytest
from PIL import Image

from baton.casefile.bombs import plain_pdf
from baton.casefile.messages import Attached, Letter, Person, make_eml, make_msg
from baton.casefile.pdfs import make_pdf
from baton.casefile.worddocs import make_docx, pack
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Note, Reading, ReasonCode, Source, Verdict
from baton.extraction.reading import FileReader, close_shared, read_file

Read = Callable[..., Reading]
ANNA = Person("Anna Ö", "anna@x.example")
BEN = Person("Ben", "ben@y.example")
SENT = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


def test_a_pdf_has_the_text_of_each_page(read: Read) -> None:
    """Native text comes page by page, with LF line ends."""
    reading = read(make_pdf([["First page", "second line"], ["Second page"]], title="T"), "a.pdf")
    assert reading.verdict is Verdict.INDEXED
    assert [(p.number, p.text, p.source, p.confidence) for p in reading.pages] == [
        (1, "First page\nsecond line", Source.NATIVE, None),
        (2, "Second page", Source.NATIVE, None),
    ]


def test_a_blank_page_keeps_its_number(read: Read) -> None:
    """Page numbers are those of the file, also after a blank page."""
    reading = read(make_pdf([["one"], [], ["three"]], title="T"), "a.pdf")
    assert [p.text for p in reading.pages] == ["one", "", "three"]
    assert reading.verdict is Verdict.INDEXED


def test_a_form_says_what_was_typed_into_it(read: Read) -> None:
    """Values of fields are text of the page."""
    data = plain_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Annots[4 0 R]>>",
            b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Kestrel Textiles)/Rect[9 9 99 30]/P 3 0 R>>",
        ]
    )
    assert "Kestrel Textiles" in read(data, "form.pdf").pages[0].text


def test_too_many_pages_are_refused(read: Read) -> None:
    """The bound on pages is on all of them."""
    data = make_pdf([["x"]] * 4, title="T")
    assert read(data, "a.pdf", limits=Limits(pages=4)).verdict is Verdict.INDEXED
    assert read(data, "a.pdf", limits=Limits(pages=3)).reason_code is ReasonCode.TOO_MANY_PAGES


def test_a_pdf_under_a_password_is_refused_with_the_reason(read: Read) -> None:
    """A lawyer is told what to do about it."""
    reading = read(make_pdf([["x"]], title="T", password="p"), "a.pdf")
    assert (reading.verdict, reading.reason_code) == (Verdict.FAILED, ReasonCode.ENCRYPTED)
    assert reading.reason is not None
    assert "password" in reading.reason


def test_a_pdf_without_its_end_is_not_taken_for_the_whole(read: Read) -> None:
    """Pdfium would repair it and lose pages without a word."""
    data = make_pdf([[f"page {n}"] for n in range(30)], title="T")
    assert read(data + b"\n\x00\x00", "a.pdf").verdict is Verdict.INDEXED
    for cut in (0.4, 0.9, 0.995):
        reading = read(data[: int(len(data) * cut)], "a.pdf")
        assert (reading.verdict, reading.reason_code) == (Verdict.FAILED, ReasonCode.TRUNCATED)


def test_a_word_document_has_header_paragraphs_and_rows(read: Read) -> None:
    """A table row is a line, its cells apart by tabs."""
    data = make_docx(["Opening & <more>"], table=[["Route", "Rate"], ["North", "9"]], closing=["End"], header="Head")
    (page,) = read(data, "a.docx").pages
    assert [line.split("\t") for line in page.text.split("\n") if line] == [
        ["Head"],
        ["Opening & <more>"],
        ["Route ", "Rate"],
        ["North ", "9"],
        ["End"],
    ]


def changed(data: bytes, old: str, new: str) -> bytes:
    """A Word document with another main part."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts["word/document.xml"] = parts["word/document.xml"].replace(old, new)
    return pack(parts)


def test_a_word_document_shows_insertions_and_controls_but_not_deletions(read: Read) -> None:
    """What a reader of the document sees is what is read."""
    inner = (
        "<w:p><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>controlled</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        '<w:p><w:r><w:br w:type="page"/><w:t>next</w:t></w:r></w:p>'
    )
    reading = read(changed(make_docx(["MARK"]), "<w:sectPr>", inner + "<w:sectPr>"), "a.docx")
    assert [page.text.split() for page in reading.pages] == [["MARK", "inserted", "controlled"], ["next"]]


def test_a_word_document_that_declares_entities_is_refused(read: Read) -> None:
    """However few: the format has none, and attacks begin with them."""
    data = changed(make_docx(["MARK"]), "<w:document", '<!DOCTYPE w [<!ENTITY a "b">]><w:document')
    assert read(data, "a.docx").reason_code is ReasonCode.CORRUPT


def test_python_docx_documents_are_read_alike(read: Read, tmp_path: Path) -> None:
    """A document written by another program than ours has the same text."""
    document = docx.Document()
    document.add_heading("Deed of Variation", level=1)
    document.add_paragraph("The parties agree.")
    document.add_table(rows=1, cols=2).rows[0].cells[1].text = "second cell"
    document.sections[0].header.paragraphs[0].text = "Privileged"
    document.save(str(tmp_path / "peer.docx"))
    (page,) = read((tmp_path / "peer.docx").read_bytes(), "peer.docx").pages
    assert page.text.split("\n\n")[:3] == ["Privileged", "Deed of Variation", "The parties agree."]
    assert "second cell" in page.text


def letter(body: str = "Dear Ben,\n\nwords — here.\n") -> Letter:
    """A message with one file."""
    return Letter(ANNA, BEN, "Größe", SENT, body, (Attached("straße.csv", "text/csv", b"a" * 1500),))


@pytest.mark.parametrize(("make", "name", "kind"), [(make_eml, "a.eml", Kind.EML), (make_msg, "a.msg", Kind.MSG)])
def test_messages_have_headers_body_and_names_of_files(
    read: Read, make: Callable[[Letter], bytes], name: str, kind: Kind
) -> None:
    """Mail reads the same whether it travelled or was saved by Outlook."""
    reading = read(make(letter()), name)
    assert (reading.verdict, reading.kind) == (Verdict.INDEXED, kind)
    text = reading.pages[0].text
    assert "anna@x.example" in text
    assert "To: Ben <ben@y.example>" in text
    assert "Subject: Größe" in text
    assert "words — here." in text
    assert "[Attachment: straße.csv, text/csv, 2 kB]" in text
    assert reading.attachments == ("straße.csv",)


def test_html_mail_is_read_as_a_person_sees_it(read: Read) -> None:
    """Markup, scripts and styles are no words."""
    data = (
        b"From: a@x.example\r\nSubject: s\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n"
        b"<html><head><style>p{}</style></head><body><p>Caf\xe9 &amp; bar</p><script>x()</script>"
        b"<table><tr><td>a</td><td>b</td></tr></table></body></html>"
    )
    text = read(data, "a.eml").pages[0].text
    assert "Café & bar" in text
    assert "a\tb" in text
    assert "x()" not in text
    assert "p{}" not in text


def test_a_forwarded_message_is_read_too(read: Read) -> None:
    """The words of a nested message are found."""
    inner = make_eml(letter("inner words\n"))
    data = b"From: z@z.example\r\nSubject: Fwd\r\nMIME-Version: 1.0\r\nContent-Type: message/rfc822\r\n\r\n" + inner
    reading = read(data, "a.eml")
    assert "Subject: Fwd" in reading.pages[0].text
    assert "inner words" in reading.pages[0].text
    assert reading.attachments == ("straße.csv",)


def test_encrypted_mail_goes_to_a_person(read: Read) -> None:
    """Nothing is wrong with it, but nobody here can read it."""
    data = (
        b"From: a@x.example\r\nSubject: s\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: application/pkcs7-mime; name=smime.p7m\r\n\r\nMIIB\r\n"
    )
    reading = read(data, "a.eml")
    assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.BODY_NOT_READABLE)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Ωμέγα ünï".encode(), "Ωμέγα ünï"),
        ("Ωμέγα".encode("utf-8-sig"), "Ωμέγα"),
        ("Ωμέγα".encode("utf-16"), "Ωμέγα"),
        ("Ωμέγα".encode("utf-32"), "Ωμέγα"),
        ("“Straße” — 5 €".encode("cp1252"), "“Straße” — 5 €"),
        ("नमस्ते".encode()[:-1], "नमस्त"),
        (b"Dear\x00 Sir", "Dear Sir"),
    ],
)
def test_text_of_any_encoding_is_decoded(read: Read, data: bytes, text: str) -> None:
    """A byte order mark, valid UTF-8, else windows-1252; NUL never survives."""
    assert read(data, "a.txt").pages[0].text == text


def test_a_declared_charset_is_believed_where_utf8_does_not_fit(read: Read) -> None:
    """Greek in its old encoding is Greek when the uploader says so."""
    data = "Αθήνα".encode("iso-8859-7")
    assert read(data, "a.txt", content_type="text/plain; charset=ISO-8859-7").pages[0].text == "Αθήνα"
    assert read(data, "a.txt", content_type="text/plain; charset=zip").verdict is Verdict.INDEXED


def test_long_text_comes_in_pages(read: Read) -> None:
    """About three thousand characters each, and nothing is lost."""
    words = [f"w{n}" for n in range(5000)]
    reading = read(" ".join(words).encode(), "a.txt")
    assert max(len(page.text) for page in reading.pages) <= 3000
    assert " ".join(page.text for page in reading.pages).split() == words


def test_a_wrong_extension_is_read_as_what_it_is(read: Read) -> None:
    """The note says so."""
    reading = read(make_docx(["Words"]), "a.pdf", content_type="application/pdf")
    assert (reading.verdict, reading.kind, reading.notes) == (Verdict.INDEXED, Kind.DOCX, (Note.OTHER_TYPE,))


def test_very_long_pages_are_split_and_said_to_be(read: Read) -> None:
    """A search vector holds every page."""
    reading = read(make_pdf([["a b c d e f"] * 20], title="T"), "a.pdf", limits=Limits(page_chars=60))
    assert len(reading.pages) > 1
    assert all(len(page.text) <= 60 for page in reading.pages)
    assert reading.notes == (Note.PAGES_SPLIT,)


def test_a_file_that_is_not_there_is_the_callers_error(reader: FileReader, tmp_path: Path) -> None:
    """No verdict is given on what was not read."""
    with pytest.raises(FileNotFoundError):
        reader.read(tmp_path / "no", content_type="", name="no")
    with pytest.raises(OSError, match="directory"):
        reader.read(tmp_path, content_type="", name="no")


def test_a_file_above_the_bound_is_not_opened(read: Read) -> None:
    """Its size alone decides."""
    assert read(b"x" * 101, "a.txt", limits=Limits(file_bytes=100)).reason_code is ReasonCode.FILE_TOO_LARGE


def test_the_shared_reader_can_be_ended_and_starts_again(tmp_path: Path) -> None:
    """Closing it is no more than closing it."""
    path = tmp_path / "a.txt"
    path.write_text("words")
    for _ in range(2):
        assert read_file(path, content_type="text/plain", name="a.txt").pages[0].text == "words"
        close_shared()


def picture(**save: object) -> bytes:
    """A picture with nothing to read."""
    out = io.BytesIO()
    Image.new("RGBA", (64, 64), (0, 0, 0, 0)).save(out, "PNG", **save)
    return out.getvalue()


def test_a_scan_without_a_recogniser_goes_to_a_person(tmp_path: Path) -> None:
    """The verdict says what is missing, and native pages are kept all the same."""
    path = tmp_path / "x"
    with FileReader(tesseract=None) as bare:
        path.write_bytes(picture())
        reading = bare.read(path, content_type="image/png", name="a.png")
        assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.OCR_UNAVAILABLE)
        path.write_bytes(make_pdf([["native words"], Image.new("L", (50, 70), 90)], title="T"))
        reading = bare.read(path, content_type="application/pdf", name="a.pdf")
        assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.OCR_UNAVAILABLE)
        assert reading.pages[0].text == "native words"
