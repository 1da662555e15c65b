"""Cleaning text so that Postgres stores it and a search finds it, and cutting it into pages."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

PAGE_BREAK: Final = "\f"
"""What readers put between pages where the format knows of pages."""

_PLAIN_PAGE_CHARS: Final = 3_000

# U+FFFE is pdfium's mark for a hyphen at the end of a line. A word goes on in lower case;
# a reference such as CS-2041 does not and keeps its hyphen.
_BROKEN_WORD: Final = re.compile("(?<=[^\\W\\d_])\ufffe\n?(?=[^\\W\\d_A-Z])")
_HYPHEN: Final = re.compile("\ufffe")
_LINE_ENDS: Final = re.compile("\r\n|[\r\x85\u2028]|\u2029")
_DROPPED: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\xad\ufeff\ud800-\udfff\ufdd0-\ufdef\uffff]")
_LIGATURES: Final = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\xa0": " ",
        "\x0b": "\n",
    }
)
_TRAILING: Final = re.compile(r"[ \t]+(?=\n|\f|\Z)")
_BLANK_LINES: Final = re.compile(r"\n{3,}")


def clean(text: str) -> str:
    """Normalise to NFC with LF line ends, without NUL, controls and lone surrogates.

    Page breaks are kept; everything else that Postgres or a reader would stumble over goes.
    """
    text = _LINE_ENDS.sub("\n", text)
    text = _BROKEN_WORD.sub("", text)
    text = _HYPHEN.sub("-", text)
    text = text.translate(_LIGATURES)
    text = _DROPPED.sub("", text)
    text = unicodedata.normalize("NFC", text)
    text = _TRAILING.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def has_words(text: str) -> bool:
    """Whether anything in the text is a letter or a digit."""
    return any(character.isalnum() for character in text)


def paginate(text: str, *, page_chars: int) -> tuple[str, ...]:
    """Cut running text into pages.

    Page breaks of the format are followed where there are any; text without them is cut at
    about 3,000 characters, at the end of a paragraph if one is near. No page exceeds
    `page_chars`. Blank pages are left out.
    """
    parts = text.split(PAGE_BREAK)
    if len(parts) == 1:
        return tuple(split(text, size=min(_PLAIN_PAGE_CHARS, page_chars)))
    return tuple(piece for part in parts if part.strip() for piece in split(part.strip("\n"), size=page_chars))


def split(text: str, *, size: int) -> Iterator[str]:
    """Cut text into pieces of at most `size` characters, at paragraphs, lines or words."""
    start = 0
    while len(text) - start > size:
        end = start + size
        # A cut in the first half would leave slivers: rather cut a paragraph than that.
        floor = start + size // 2
        for boundary in ("\n\n", "\n", " "):
            found = text.rfind(boundary, floor, end)
            if found > 0:
                end = found
                break
        piece = text[start:end].strip("\n")
        if piece.strip():
            yield piece
        start = end
    rest = text[start:].strip("\n")
    if rest.strip():
        yield rest


def is_storable(text: str) -> bool:
    """Whether the text holds nothing that `clean` would have to take out for Postgres."""
    return _DROPPED.search(text) is None
