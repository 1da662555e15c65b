"""Which files are uploaded, and what they are called."""

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
