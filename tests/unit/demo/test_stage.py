"""Folders that a killed demo left behind."""

import os
from pathlib import Path

from baton.demo import stage


def test_the_next_demo_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """A folder whose process is gone goes; one of a living process, and one that was to be kept, stay."""
    gone = tmp_path / "baton-demo-999999999-abc"
    alive = tmp_path / f"baton-demo-{os.getpid()}-abc"
    kept = tmp_path / "baton-demo-kept-abc"
    for folder in (gone, alive, kept):
        (folder / "postgres").mkdir(parents=True)
    stage._sweep(tmp_path)
    assert not gone.exists()
    assert alive.exists()
    assert kept.exists()
