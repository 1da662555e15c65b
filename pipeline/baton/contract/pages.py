"""The text of a document as the pipeline hands it to an agent: one JSON object of numbered pages."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from baton.contract import limits, strictjson
from baton.contract.errors import PagesInvalid

PAGES_CONTENT_TYPE: Final = "application/vnd.baton.pages+json"
"""`{"pages": [{"number": 1, "text": "…"}, …]}`, UTF-8."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of one page; pages are numbered from 1, in reading order."""

    number: int
    text: str


def encode_pages(pages: Iterable[PageText]) -> bytes:
    """The bytes behind an input of kind `text`."""
    value = {"pages": [{"number": page.number, "text": page.text} for page in pages]}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def parse_pages(data: bytes, *, content_type: str) -> tuple[PageText, ...]:
    """Read the text of an input: page JSON by its content type, anything else as plain text.

    Plain text is read as UTF-8, with a replacement character for what is not, and paged at form feeds. Raises
    PagesInvalid where the content type promises pages and the bytes do not keep it.
    """
    if _bare(content_type) != PAGES_CONTENT_TYPE:
        text = data.decode("utf-8-sig", errors="replace")
        return tuple(PageText(number, part) for number, part in enumerate(text.split("\f"), 1))
    try:
        value = strictjson.loads(data)
    except strictjson.NotStrictJson as error:
        raise PagesInvalid(str(error)) from None
    listed = value.get("pages") if isinstance(value, dict) else None
    if not isinstance(listed, list) or len(listed) > limits.MAX_PAGES:
        raise PagesInvalid("pages: not an array of the allowed length")
    pages = tuple(_page(entry) for entry in listed)
    if any(later.number <= page.number for page, later in pairwise(pages)):
        raise PagesInvalid("pages: not in the order of their numbers")
    return pages


def _page(entry: Any) -> PageText:
    match entry:
        # bool is an int to Python, not to JSON
        case {"number": int(number), "text": str(text)} if not isinstance(number, bool):
            if 1 <= number <= limits.MAX_PAGE_NUMBER:
                return PageText(number, text)
    raise PagesInvalid("pages: an entry without a page number and a text")


def _bare(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
