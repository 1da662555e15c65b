"""HTML to running text, for messages and for HTML files."""

from html.parser import HTMLParser
from typing import Final

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import ReasonCode, Unreadable
from baton.extraction.readers import plain

_SILENT: Final = frozenset({"script", "style", "head", "template", "noscript", "svg", "object"})
_BLOCKS: Final = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "thead",
        "tr",
        "ul",
    ]
)
_CELLS: Final = frozenset({"td", "th"})


def read(job: Job) -> Content:
    """Read an HTML file.

    Raises:
        Unreadable: More text than one document may have.
    """
    job.file.seek(0)
    data = job.file.read(job.limits.text_chars * 4 + 1)
    if len(data) > job.limits.text_chars * 4:
        raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
    declared = plain.charset_of(data[:2048].decode("latin-1"))
    text, _ = plain.decode(data, declared=declared)
    return Content.of_text(to_text(text), limits=job.limits)


def to_text(markup: str) -> str:
    """The text that a browser would show, one line per block, table cells apart by tabs."""
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return parser.text


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._preformatted = 0

    @property
    def text(self) -> str:
        lines = (line.strip(" ") for line in "".join(self._parts).split("\n"))
        return "\n".join(lines)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "body":
            # A head that was never closed would silence the whole page.
            self._silent.clear()
        elif tag in _SILENT:
            self._silent.append(tag)
        if tag == "br" or tag in _BLOCKS:
            self._break()
        elif tag in _CELLS:
            self._parts.append("\t")
        self._preformatted += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        if tag in _BLOCKS:
            self._break()
        self._preformatted = max(0, self._preformatted - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._preformatted:
            self._parts.append(data)
            return
        words = " ".join(data.split())
        lead = " " if data[:1].isspace() else ""
        tail = " " if data[-1:].isspace() and words else ""
        self._parts.append(lead + words + tail)

    def _break(self) -> None:
        self._parts.append("\n")
