"""Which files are uploaded, and what they are called."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.cli.files import LocalFile, collect


def test_a_file_that_is_named_twice_is_uploaded_once(tmp_path: Path) -> None:
    """By itself, again, and in its folder."""
    path = tmp_path / "a.txt"
    path.touch()
    assert [each.path for each in collect([path, path, tmp_path])] == [path]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """A link that leads back up would never end."""
    (tmp_path / "a.txt").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [each.name for each in collect([tmp_path])] == ["a.txt", "loop"] or [
        each.name for each in collect([tmp_path])
    ] == ["a.txt"]


def test_what_does_not_exist_is_passed_on(tmp_path: Path) -> None:
    """So that it is told, and not silently left out."""
    assert [each.name for each in collect([tmp_path / "gone.pdf"])] == ["gone.pdf"]
    assert [each.name for each in collect([tmp_path / ("x" * 300)])] == ["x" * 300], "no system has such a name"


@pytest.fixture
def unreachable(tmp_path: Path) -> Iterator[Path]:
    """A folder that holds a file and a folder whose paths are longer than any that the system takes."""
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(os.open("f" * 250, os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)
        at = below
    os.close(at)
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_what_cannot_be_looked_at_is_passed_on(unreachable: Path) -> None:
    """A folder that cannot be listed and a file that cannot be looked at are told of, and the others are found."""
    found = list(collect([unreachable]))
    had = [each for each in found if each.fault is None and each.path.name[0] == "f"]
    lost = [each for each in found if each.fault is not None]
    assert len(had) > 10
    assert [each.path.name[0] for each in lost] == ["d"]
    assert isinstance(lost[0].fault, OSError)


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("a.PDF", "application/pdf"),
        ("a.eml", "message/rfc822"),
        ("a.msg", "application/vnd.ms-outlook"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.tiff", "image/tiff"),
        ("a.txt", "text/plain"),
        ("a.unknown", "application/octet-stream"),
        ("noending", "application/octet-stream"),
    ],
)
def test_types_by_name(name: str, content_type: str) -> None:
    """The same on every machine."""
    assert LocalFile(Path(name), name).content_type == content_type
