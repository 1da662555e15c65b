"""Files made to break a reader: one of each known kind, and seeded mutations of good files."""

import io
import random
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from PIL import Image

from baton.casefile.bombs import pdf_bomb, plain_pdf, png_bomb, zip_bomb
from baton.casefile.compound import Storage, write_compound
from baton.casefile.messages import Attached, Letter, Person, make_eml, make_msg
from baton.casefile.pdfs import make_pdf
from baton.casefile.worddocs import make_docx, pack

_DAY: Final = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)
_CHUNK: Final = 512
_NUMBERS: Final = (b"0", b"-1", b"1", b"65536", b"2147483648", b"99999999999999999999")


@dataclass(frozen=True, slots=True)
class HostileFile:
    """A file, the name it comes under, and what is wrong with it."""

    name: str
    data: bytes
    what: str


def hostile_files() -> Iterator[HostileFile]:
    """One file of each kind that is known to have broken readers."""
    good_pdf = make_pdf([["A page", "of text"]] * 3, title="Good")
    good_docx = make_docx(["A paragraph"], header="A header")
    good_msg = make_msg(_letter())
    known: tuple[tuple[str, Callable[[], bytes], str], ...] = (
        ("empty.pdf", lambda: b"", "nothing"),
        ("blank.txt", lambda: b" \r\n\t\x00" * 4_000, "only blanks"),
        ("locked.pdf", lambda: make_pdf([["x"]], title="x", password="open"), "a password"),
        ("locked.docx", _locked_office, "an encrypted Word document"),
        ("old.doc", _legacy_word, "a document of an old Word"),
        ("cut.pdf", lambda: good_pdf[: len(good_pdf) // 2], "cut in half"),
        ("cut.docx", lambda: good_docx[:-40], "cut at its end"),
        ("cut.msg", lambda: good_msg[: len(good_msg) // 3], "cut to a third"),
        ("cut.png", lambda: _picture()[:-200], "cut at its end"),
        ("bomb.pdf", pdf_bomb, "a stream that unpacks to gigabytes"),
        ("bomb.docx", zip_bomb, "a part that unpacks to gigabytes"),
        ("liar.docx", lambda: zip_bomb(lie=True), "a bomb that declares a small size"),
        ("bomb.png", png_bomb, "too many pixels"),
        ("noise.pdf", lambda: b"%PDF-1.7\n" + random.Random(7).randbytes(20_000), "noise"),  # noqa: S311
        ("noise.bin", lambda: random.Random(8).randbytes(20_000), "noise of no type"),  # noqa: S311
        ("loop.pdf", _page_tree_loop, "a page tree that contains itself"),
        ("deep.pdf", _deep_arrays, "arrays nested without end"),
        ("endless.pdf", _endless_form, "a form that draws itself"),
        ("giant.pdf", _giant_page, "a page of kilometres"),
        ("laughs.docx", _billion_laughs, "entities that multiply"),
        ("deep.docx", _deep_elements, "elements nested without end"),
        ("hollow.docx", lambda: pack({"[Content_Types].xml": "<T/>", "word/x": "x"}), "no document"),
        ("nested.eml", _nested_mail, "messages within messages"),
        ("parts.eml", _many_parts, "thousands of parts"),
        ("broken.eml", _broken_headers, "headers that are not"),
        ("loop.tiff", _frame_loop, "frames that follow each other in a circle"),
        ("nul.txt", lambda: b"Dear\x00 Sir\x00\n" + b"\xed\xa0\x80 text" * 4, "NUL and surrogates"),
        ("line.txt", lambda: b"x" * 3_000_000, "one endless line"),
        ("marks.txt", lambda: ("e" + "\u0301" * 3_000).encode() * 20, "piles of accents"),
        ("deep.html", lambda: b"<html><body>" + b"<div>" * 200_000 + b"words", "tags without end"),
        ("names.pdf", lambda: good_docx, "a Word document under the name of a PDF"),
    )
    for name, make, what in known:
        yield HostileFile(name, make(), what)


def mutations(seed: int, count: int) -> Iterator[HostileFile]:
    """Good files of each type with a few bytes changed, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311
    corpus = good_files()
    for number in range(count):
        name, data = corpus[number % len(corpus)]
        change = rng.choice(_CHANGES)
        yield HostileFile(
            name=f"{number:05d}-{name}",
            data=change(bytearray(data), rng),
            what=change.__name__.strip("_").replace("_", " "),
        )


def _flip(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 4, 32))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _overwrite(data: bytearray, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    new = rng.choice((b"\xff" * 8, b"\0" * 8, b"999999999", b"-1", rng.randbytes(16)))
    data[at : at + len(new)] = new
    return bytes(data)


def _cut(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data))])


def _remove(data: bytearray, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 200)]
    return bytes(data)


def _repeat(data: bytearray, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.randrange(1, _CHUNK)]
    data[at:at] = piece * rng.choice((1, 3, 50))
    return bytes(data)


def _number(data: bytearray, rng: random.Random) -> bytes:
    """Another number where one stands: an offset, a length, a count."""
    found = list(re.finditer(rb"\d{1,10}", data))
    if not found:
        return _overwrite(data, rng)
    spot = rng.choice(found)
    return bytes(data[: spot.start()] + rng.choice(_NUMBERS) + data[spot.end() :])


def _inside(data: bytearray, rng: random.Random) -> bytes:
    """The same changes in a part of a container, which is whole again afterwards; of what is none, in the file."""
    change = rng.choice((_flip, _overwrite, _cut, _remove, _repeat, _swap, _number))
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return change(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        parts = {name: container.read(name) for name in container.namelist()}
    name = rng.choice(sorted(name for name, part in parts.items() if part))
    parts[name] = change(bytearray(parts[name]), rng)
    return pack(parts)


def _swap(data: bytearray, rng: random.Random) -> bytes:
    one, other = sorted(rng.randrange(len(data)) for _ in range(2))
    return bytes(data[:one] + data[other:] + data[one:other])


_CHANGES: Final[tuple[Callable[[bytearray, random.Random], bytes], ...]] = (
    _flip,
    _overwrite,
    _cut,
    _remove,
    _repeat,
    _swap,
    _number,
    _inside,
)


def good_files() -> list[tuple[str, bytes]]:
    """A small good file of each type, by name: what mutations are made of."""
    letter = _letter()
    return [
        ("good.pdf", make_pdf([["One page", "of words"], _image()], title="Good")),
        ("good.docx", make_docx(["One", "two"], table=[["a", "b"]], header="Head")),
        ("good.eml", make_eml(letter)),
        ("good.msg", make_msg(letter)),
        ("good.txt", "Straße, один, δύο\n\n".encode() * 20),
        ("good.html", b"<html><body><p>One</p><table><tr><td>two</td></tr></table></body></html>"),
        ("good.png", _picture()),
        ("good.tiff", _picture("TIFF")),
        ("good.jpeg", _picture("JPEG")),
    ]


def _letter() -> Letter:
    file = Attached("list.csv", "text/csv", b"a,b\n1,2\n")
    one, other = Person("Ada", "ada@one.example"), Person("Ben", "ben@two.example")
    return Letter(one, other, "Bales", _DAY, "Dear Ben,\n\nwet bales.\n\nAda\n", (file,))


def _image() -> Image.Image:
    return Image.linear_gradient("L").resize((120, 160))


def _picture(kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    _image().save(out, kind)
    return out.getvalue()


def _locked_office() -> bytes:
    return write_compound(Storage({"EncryptionInfo": b"\x04\0\x04\0" * 60, "EncryptedPackage": b"\x01" * 6_000}))


def _legacy_word() -> bytes:
    return write_compound(Storage({"WordDocument": b"\xec\xa5" * 2_500, "1Table": b"\0" * 900}))


def _page_tree_loop() -> bytes:
    return plain_pdf([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 100000>>"])


def _deep_arrays() -> bytes:
    depth = 100_000
    return plain_pdf(
        [b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * depth + b"]" * depth + b">>", b"<</Type/Pages/Kids[]/Count 0>>"]
    )


def _endless_form() -> bytes:
    return plain_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</XObject<</A 5 0 R>>>>>>",
            b"<</Length 5>>stream\n/A Do\nendstream",
            (
                b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 11"
                b"/Resources<</XObject<</A 5 0 R>>>>>>stream\n/A Do /A Do\nendstream"
            ),
        ]
    )


def _giant_page() -> bytes:
    return plain_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99999999 99999999]/Contents 4 0 R>>",
            b"<</Length 30>>stream\n0 0 99999999 99999999 re f    \nendstream",
        ]
    )


def _billion_laughs() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return pack(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": '<Relationships xmlns="r"><Relationship Type="x/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<!DOCTYPE w [<!ENTITY l0 "ha">{entities}]><w>&l9;</w>',
        }
    )


def _deep_elements() -> bytes:
    depth = 300_000
    return pack(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": '<Relationships xmlns="r"><Relationship Type="x/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": "<a>" * depth + "</a>" * depth,
        }
    )


def _nested_mail() -> bytes:
    data = b"From: a@b.example\r\nSubject: core\r\nMIME-Version: 1.0\r\n\r\ncore\r\n"
    for _ in range(200):
        data = b"From: a@b.example\r\nContent-Type: message/rfc822\r\nMIME-Version: 1.0\r\n\r\n" + data
    return data


def _many_parts() -> bytes:
    part = b"--x\r\nContent-Type: text/plain\r\n\r\na\r\n"
    head = b"From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
    return head + part * 20_000 + b"--x--\r\n"


def _broken_headers() -> bytes:
    return (
        b"From: =?utf-8?q?=\xff\xfe?= <@@>\r\nTo: =?no-such-charset?b?!!!?=\r\n"
        b"Subject: =?utf-8?b?" + b"A" * 5_000 + b"?=\r\nDate: yesterday\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: text/plain; charset="rot13"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
        b"SGVsbG8h!!!\r\n"
    )


def _frame_loop() -> bytes:
    picture = bytearray(_picture("TIFF"))
    (first,) = struct.unpack_from("<I", picture, 4)
    (count,) = struct.unpack_from("<H", picture, first)
    struct.pack_into("<I", picture, first + 2 + 12 * count, first)
    return bytes(picture)
