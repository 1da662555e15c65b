"""What is to be uploaded: the files that were named, and those in folders that were."""

from __future__ import annotations

import mimetypes
import os
import stat
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
    fault: OSError | None = None
    """Why a folder could not be looked into, which then stands here for all that is in it."""

    @property
    def content_type(self) -> str:
        """By its name; what it really is, extraction finds out from the bytes."""
        suffix = self.path.suffix.lower()
        return _OWN_TYPES.get(suffix) or _TYPES.guess_type(f"x{suffix}")[0] or _OTHER


def collect(named: Iterable[Path]) -> Iterator[LocalFile]:
    """The files, each once, folders in order of name; links to folders are not followed, hidden files left out.

    What cannot be had is not left out: a file that was named and does not exist, one that may not be looked at, a folder
    that may not be listed. Its upload tells so.
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
    closed: list[OSError] = []
    for where, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            path = Path(where, file)
            if not file.startswith(".") and _may_be_a_file(path):
                yield LocalFile(path, _name_inside(folder, path))
    for fault in closed:
        path = Path(fault.filename)
        yield LocalFile(path, _name_inside(folder, path), fault)


def _may_be_a_file(path: Path) -> bool:
    """Whether it is one, or leads to nothing, or cannot be looked at; sockets, pipes and devices are none."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _name_inside(folder: Path, path: Path) -> str:
    return _name(PurePosixPath(path.relative_to(folder)).as_posix())


def _name(found: str) -> str:
    """A name that the database takes: characters of no encoding replaced, its end kept when it is too long."""
    return found.encode("utf-8", "replace").decode()[-_LONGEST_NAME:]
