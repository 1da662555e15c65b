"""Reading a stranger's file without letting it harm the reader."""

import contextlib
import dataclasses
import json
import os
import select
import shutil
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import BinaryIO, Final, Self

from baton.extraction import wire
from baton.extraction.endings import end_of, given_up, outcome
from baton.extraction.jobs import Tesseract
from baton.extraction.limits import Limits
from baton.extraction.nursery import Nursery, ReaderUnavailable
from baton.extraction.outcomes import Reading, ReasonCode

_GRACE_SECONDS: Final = 15.0
_CHUNK: Final = 1024 * 1024
_NAME_CHARS: Final = 1_000
_STATUS_BYTES: Final = 4_096


class FileReader:
    """Reads files, each in a confined process of its own; safe to share between threads."""

    def __init__(self, *, tesseract: str | None = "tesseract") -> None:
        """Make a reader.

        Args:
            tesseract: Name or path of the text recogniser; None to do without one.
        """
        self._nursery = Nursery()
        self._program = shutil.which(tesseract) if tesseract else None
        self._installed: frozenset[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the zygote if it is not running, so that the first file need not wait.

        Raises:
            ReaderUnavailable: It did not start.
        """
        self._nursery.start()

    def close(self) -> None:
        """End the zygote and every child that is still reading."""
        self._nursery.close()

    def read(self, path: Path | str, *, content_type: str, name: str, limits: Limits | None = None) -> Reading:
        """Read one file to its end, whatever that is.

        Args:
            path: A regular file.
            content_type: As declared; no more than a hint for text.
            name: As uploaded; no more than a hint for text.
            limits: What reading may cost; None for the defaults.

        Raises:
            OSError: The file is not there, or cannot be opened.
            ReaderUnavailable: No process could be started to read it in.
        """
        bounds = limits or Limits()
        with Path(path).open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise OSError(f"{path} is not a regular file")
            if about.st_size > bounds.file_bytes:
                return given_up(ReasonCode.FILE_TOO_LARGE)
            return self._in_child(file, content_type=content_type, name=name, limits=bounds)

    def tesseract(self, limits: Limits) -> Tesseract | None:
        """The recogniser with those of the wanted languages that it has, or None."""
        if self._program is None:
            return None
        if self._installed is None:
            self._installed = _installed_languages(self._program)
        languages = tuple(name for name in limits.languages if name in self._installed)
        return Tesseract(self._program, languages) if languages else None

    def _in_child(self, file: BinaryIO, *, content_type: str, name: str, limits: Limits) -> Reading:
        tesseract = self.tesseract(limits)
        request = {
            "name": _plain(name),
            "content_type": _plain(content_type),
            "limits": dataclasses.asdict(limits),
            "tesseract": [tesseract.program, tesseract.languages] if tesseract else None,
        }
        answer_in, answer_out = os.pipe()
        status_in, status_out = os.pipe()
        try:
            try:
                self._nursery.send(json.dumps(request).encode(), [file.fileno(), answer_out, status_out])
            finally:
                os.close(answer_out)
                os.close(status_out)
            ends = time.monotonic() + limits.wall_seconds + _GRACE_SECONDS
            data = _read_all(answer_in, at_most=wire.frame_limit(limits), ends=ends)
            if data is None:
                return given_up(ReasonCode.TOO_MUCH_TEXT)
            status = _read_all(status_in, at_most=_STATUS_BYTES, ends=ends)
        except TimeoutError:
            # Not even the zygote answers: it is stuck, and another takes its place.
            self.close()
            return given_up(ReasonCode.TOO_SLOW)
        finally:
            os.close(answer_in)
            os.close(status_in)
        return outcome(data, end_of(status), limits)


__all__ = ["FileReader", "ReaderUnavailable", "close_shared", "read_file"]

_shared_lock: Final = threading.Lock()
_shared: list[FileReader] = []


def read_file(path: Path | str, *, content_type: str, name: str, limits: Limits | None = None) -> Reading:
    """Read one file with the reader that this process shares; see `FileReader.read`."""
    with _shared_lock:
        if not _shared:
            _shared.append(FileReader())
        reader = _shared[0]
    return reader.read(path, content_type=content_type, name=name, limits=limits)


def close_shared() -> None:
    """End the shared reader; the next file starts a new one."""
    with _shared_lock:
        while _shared:
            _shared.pop().close()


def _read_all(descriptor: int, *, at_most: int, ends: float) -> bytes | None:
    """Everything up to the end of a pipe; None when it is more than allowed."""
    parts: list[bytes] = []
    size = 0
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        left = ends - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return b"".join(parts)
        size += len(chunk)
        if size > at_most:
            return None
        parts.append(chunk)


def _installed_languages(program: str) -> frozenset[str]:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            [program, "--list-langs"],
            capture_output=True,
            timeout=20,
            check=False,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        )
        return frozenset(listed.stdout.decode("utf-8", "replace").split())
    return frozenset()


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")[:_NAME_CHARS]
