"""Readers and files for the tests of reading."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.extraction.limits import Limits
from baton.extraction.outcomes import Reading
from baton.extraction.reading import FileReader

Read = Callable[..., Reading]


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    """A reader with its own zygote, ended with the module."""
    with FileReader() as one:
        yield one


@pytest.fixture
def read(reader: FileReader, tmp_path: Path) -> Read:
    """Reads bytes under a name."""

    def _read(data: bytes, name: str, *, content_type: str = "", limits: Limits | None = None) -> Reading:
        path = tmp_path / "upload"
        path.write_bytes(data)
        return reader.read(path, content_type=content_type, name=name, limits=limits)

    return _read
