"""What is said of a folder that was kept."""

import sys
from pathlib import Path

import pytest

from baton.demo import keeping


def test_a_command_that_is_told_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After `make demo` nothing is on the shell's path: the program is named with its folder."""
    folder = tmp_path / "its folder"
    folder.mkdir()
    baton = folder / "baton"
    baton.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert keeping.program() == f"'{baton}'"
    monkeypatch.setenv("PATH", str(folder))
    assert keeping.program() == "baton"
