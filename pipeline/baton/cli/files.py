"""What is to be uploaded: the files that were named, and those in folders that were."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

_LONGEST_NAME: Final = 1024
_OTHER: Final = "application/octet-stream"
#: Whatever tables the machine has, a file has the same type everywhere.
_TYPES: Final = mimetypes.MimeTypes()
_OWN_TYPES: Final = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".eml": "message/rfc822",
    ".msg": "application/vnd.ms-outlook",
    ".rtf": "application/rtf",
}


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file to upload."""

    path: Path
    name: str
    """As the document will be called: with the folders between it and the one that was named."""

    @property
    def content_type(self) -> str:
        """By its name; what it really is, extraction finds out from the bytes."""
        suffix = self.path.suffix.lower()
        return _OWN_TYPES.get(suffix) or _TYPES.guess_type(f"x{suffix}")[0] or _OTHER


def collect(named: Iterable[Path]) -> Iterator[LocalFile]:
    """The files, each once, folders in order of name; links to folders are not followed, hidden files left out.

    A file that was named is taken as it is, also when it does not exist: its upload tells so.
    """
    seen: set[Path] = set()
    for path in named:
        folder = os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises of a name that is too long
        for each in _inside(path) if folder else (LocalFile(path, _name(path.name)),):
            key = each.path.absolute()
            if key not in seen:
                seen.add(key)
                yield each


def _inside(folder: Path) -> Iterator[LocalFile]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            path = Path(where, file)
            if not file.startswith(".") and (path.is_file() or path.is_symlink()):
                yield LocalFile(path, _name(PurePosixPath(path.relative_to(folder)).as_posix()))


def _name(found: str) -> str:
    """A name that the database takes: characters of no encoding replaced, its end kept when it is too long."""
    return found.encode("utf-8", "replace").decode()[-_LONGEST_NAME:]
