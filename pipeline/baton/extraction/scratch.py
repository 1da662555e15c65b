"""A folder for objects while they are read, which nothing outlives: not an error, not the process.

The folder carries the process's number. A process that was killed cannot clean up, so the next one to start does: a
folder whose process is gone is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from uuid_utils.compat import uuid7

_PREFIX: Final = "baton-extraction-"
_NAME: Final = re.compile(re.escape(_PREFIX) + r"(\d+)-.*")


class Scratch:
    """One process's folder; shared between its threads."""

    def __init__(self, parent: Path | None = None) -> None:
        """Make the folder.

        :param parent: where; ``None``: the system's place for temporary files.
        """
        base = parent or Path(tempfile.gettempdir())
        _sweep(base)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The path of a file that does not exist yet, and will not exist any more afterwards."""
        path = self.folder / uuid7().hex
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder with whatever is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _sweep(base: Path) -> None:
    for found in base.glob(f"{_PREFIX}*"):
        match = _NAME.fullmatch(found.name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            shutil.rmtree(found, ignore_errors=True)
