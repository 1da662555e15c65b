"""Word documents: one pass over the XML, so that size costs time and not memory.

Tracked insertions, content controls, text boxes, footnotes and comments are read too, in
which the words of a contract often hide; deleted text is not.
"""

import lzma
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Final
from xml.parsers import expat

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import ReasonCode, Unreadable
from baton.extraction.text import PAGE_BREAK

# The transitional and the strict form of the standard differ in the middle of the name.
_MAIN: Final = re.compile(r"/wordprocessingml/(2006/)?main$")
_COMPATIBILITY: Final = "markup-compatibility/2006"
_RELATIONSHIPS: Final = "_rels/.rels"
_OFFICE_DOCUMENT: Final = "/officeDocument"
_SIDE_PARTS: Final = ("/header", "/footer", "/footnotes", "/endnotes", "/comments")
_CHUNK: Final = 1024 * 1024
_PARTS: Final = 10_000
_DEPTH: Final = 1_000


def read(job: Job) -> Content:
    """Read headers, the body, then footers, notes and comments.

    Raises:
        Unreadable: Damaged, encrypted, unpacks too far, or too much text.
    """
    try:
        with zipfile.ZipFile(job.file) as archive:
            return Content.of_text(_Package(archive, job).text(), limits=job.limits)
    except RuntimeError as error:
        # zipfile has no type of its own for members under a password.
        encrypted = "encrypted" in str(error) or "password" in str(error)
        raise Unreadable(ReasonCode.ENCRYPTED if encrypted else ReasonCode.CORRUPT) from None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, expat.ExpatError, EOFError):
        raise Unreadable(ReasonCode.CORRUPT) from None
    except (OSError, ValueError, KeyError, IndexError, struct.error):
        raise Unreadable(ReasonCode.CORRUPT) from None


class _Package:
    def __init__(self, archive: zipfile.ZipFile, job: Job) -> None:
        entries = archive.infolist()
        if len(entries) > _PARTS:
            raise Unreadable(ReasonCode.EXPANDS_TOO_FAR)
        if sum(entry.file_size for entry in entries) > job.limits.expanded_bytes:
            raise Unreadable(ReasonCode.EXPANDS_TOO_FAR)
        self._archive = archive
        self._names = set(archive.namelist())
        self._unpacked_left = job.limits.expanded_bytes
        self._text_left = job.limits.text_chars

    def text(self) -> str:
        main = self._targets(_RELATIONSHIPS, base="", kinds=(_OFFICE_DOCUMENT,))
        if not main:
            raise Unreadable(ReasonCode.CORRUPT)
        folder, name = posixpath.split(main[0][1])
        sides = self._targets(posixpath.join(folder, "_rels", f"{name}.rels"), base=folder, kinds=_SIDE_PARTS)
        ahead = [part for kind, part in sides if kind == "/header"]
        behind = [part for kind, part in sides if kind != "/header"]
        pieces = [*self._pieces(ahead), self._part(main[0][1]), *self._pieces(behind)]
        return "\n".join(piece for piece in pieces if piece.strip())

    def _pieces(self, parts: list[str]) -> list[str]:
        # The same header stands in a document once per section: said once is enough.
        found = (self._part(part).replace(PAGE_BREAK, "\n") for part in sorted(set(parts)))
        return list(dict.fromkeys(found))

    def _part(self, name: str) -> str:
        if name not in self._names:
            return ""
        words = _Words(self._text_left)
        self._parse(name, words.start, words.end, words.data)
        text = words.text()
        self._text_left -= len(text)
        return text

    def _targets(self, name: str, *, base: str, kinds: tuple[str, ...]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []

        def start(tag: str, attributes: dict[str, str]) -> None:
            kind = "/" + attributes.get("Type", "").rpartition("/")[2]
            target = attributes.get("Target", "")
            internal = attributes.get("TargetMode") != "External"
            if tag.endswith(" Relationship") and internal and kind in kinds:
                path = target.lstrip("/") if target.startswith("/") else f"{base}/{target}"
                found.append((kind, posixpath.normpath(path).lstrip("/")))

        if name in self._names:
            self._parse(name, start, lambda _: None, lambda _: None)
        return found

    def _parse(
        self,
        name: str,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        data: Callable[[str], None],
    ) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = data
        with self._archive.open(name) as part:
            while chunk := part.read(_CHUNK):
                # What the list of contents declared may be a lie: count what really comes.
                self._unpacked_left -= len(chunk)
                if self._unpacked_left < 0:
                    raise Unreadable(ReasonCode.EXPANDS_TOO_FAR)
                parser.Parse(chunk, False)  # noqa: FBT003 - expat's own signature
        parser.Parse(b"", True)  # noqa: FBT003


def _refuse(*_: object) -> None:
    # The format forbids document type declarations; only attacks by entities have them.
    raise Unreadable(ReasonCode.CORRUPT)


class _Words:
    """Gathers the text of one part as its elements go by."""

    def __init__(self, limit: int) -> None:
        self._parts: list[str] = []
        self._left = limit
        self._depth = 0
        self._in_text = 0
        self._cell = 0
        self._hidden = 0

    def text(self) -> str:
        return "".join(self._parts)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEPTH:
            raise Unreadable(ReasonCode.CORRUPT)
        namespace, _, name = tag.rpartition(" ")
        if namespace.endswith(_COMPATIBILITY):
            # A text box comes twice: once for new and once, as a fallback, for old programs.
            self._hidden += name == "Fallback"
            return
        if not _MAIN.search(namespace):
            return
        if name == "t":
            self._in_text += 1
        elif name in {"tab", "ptab"}:
            self._add("\t")
        elif name in {"br", "cr"}:
            self._add(PAGE_BREAK if _is_page(attributes) else "\n")
        elif name == "lastRenderedPageBreak":
            self._add(PAGE_BREAK)
        elif name == "noBreakHyphen":
            self._add("-")
        elif name == "tc":
            self._cell += 1

    def end(self, tag: str) -> None:
        self._depth -= 1
        namespace, _, name = tag.rpartition(" ")
        if namespace.endswith(_COMPATIBILITY):
            self._hidden -= name == "Fallback"
            return
        if not _MAIN.search(namespace):
            return
        if name == "t":
            self._in_text -= 1
        elif name == "p":
            # Within a table a paragraph ends no line: a row is one.
            self._add(" " if self._cell else "\n\n")
        elif name == "tc":
            self._cell -= 1
            self._add("\t")
        elif name in {"tr", "tbl"}:
            self._add("\n")

    def data(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._hidden:
            return
        self._left -= len(text)
        if self._left < 0:
            raise Unreadable(ReasonCode.TOO_MUCH_TEXT)
        self._parts.append(text)


def _is_page(attributes: dict[str, str]) -> bool:
    return any(key.endswith(" type") and value == "page" for key, value in attributes.items())
