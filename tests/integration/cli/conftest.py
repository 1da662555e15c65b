"""A person at the command line, for each test."""

import io
from pathlib import Path

import pytest

from support.aws_accounts import AwsAccount
from support.command_line import CommandLine
from support.databases import Database
from support.operators import Operator


@pytest.fixture
def desk(
    database: Database, aws: AwsAccount, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A firm's person, with the settings in this process's environment."""
    made = CommandLine(database, aws, capsys)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    """A file."""
    path = tmp_path / "letter.txt"
    path.write_text("We write about the lease.")
    return path


@pytest.fixture
def operator(
    database: Database, aws: AwsAccount, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Operator:
    """An operator, who may look or repair."""
    return Operator(database, aws, capsys, monkeypatch)
