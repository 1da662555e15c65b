"""The program `baton` in a test: within this process for its words and exit codes, or as a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from baton.cli.failures import told
from baton.cli.main import group
from baton.db.access import Role
from support.aws_accounts import AwsAccount
from support.databases import Database


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed for machines."""
        return json.loads(self.out)


@dataclass
class CommandLine:
    """A firm's person at a terminal that is none: output is captured."""

    database: Database
    account: AwsAccount
    captured: pytest.CaptureFixture[str]
    firm: UUID = field(default_factory=uuid4)
    bucket: str = field(default_factory=lambda: f"bucket-{uuid4().hex}")

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a person at the command line."""
        return {
            **self.account.environ,
            "DATABASE_URL": self.database.url(Role.MEMBER_APP),
            "BATON_BUCKET": self.bucket,
            "BATON_FIRM": str(self.firm),
            "BATON_ACTOR": "counsel",
        }

    def run(self, *arguments: object) -> Ran:
        """Run it within this process."""
        self.captured.readouterr()
        code = told(lambda: group.main([str(each) for each in arguments], standalone_mode=False))
        captured = self.captured.readouterr()
        return Ran(int(code), captured.out, captured.err)

    def start(self, *arguments: object, **more: str) -> subprocess.Popen[str]:
        """Start it as a process."""
        environ = {"PATH": os.environ["PATH"], **self.environ, **more}
        return subprocess.Popen(
            [sys.executable, "-m", "baton.cli", *(str(each) for each in arguments)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Look, as the preparer, who sees every firm."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text(statement), values))

    def prepare(self, statement: str, **values: Any) -> None:
        """Change something, as the preparer."""
        with self.database.preparer.begin() as connection:
            connection.execute(text(statement), values)

    def upload(self, *files: Path, matter: str = "Harbour lease") -> list[UUID]:
        """Upload files; returns their documents."""
        ran = self.run("upload", *files, "--matter", matter, "--json")
        assert ran.code == 0, ran.err
        return [UUID(each["id"]) for each in ran.json["documents"]]
