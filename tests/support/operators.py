"""An operator at the command line: every firm's documents, as the role that looks or the one that repairs."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.cli.failures import told
from baton.cli.main import group
from baton.db.access import Role
from baton.settings.loading import load
from support.aws_accounts import AwsAccount
from support.command_line import Ran
from support.databases import Database


@dataclass
class Operator:
    """Runs commands within this process; output is captured."""

    database: Database
    account: AwsAccount
    captured: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    bucket: str = field(default_factory=lambda: f"bucket-{uuid4().hex}")

    def environ(self, role: Role) -> Mapping[str, str]:
        """The settings of somebody who works as the role."""
        return {
            **self.account.environ,
            "DATABASE_URL": self.database.url(role),
            "BATON_BUCKET": self.bucket,
            "BATON_ACTOR": "night shift",
        }

    def run(self, *arguments: object, role: Role = Role.OBSERVER) -> Ran:
        """Run a command as the role."""
        self.captured.readouterr()
        with self.patch.context() as patched:
            for name, value in self.environ(role).items():
                patched.setenv(name, value)
            code = told(lambda: group.main([str(each) for each in arguments], standalone_mode=False))
        captured = self.captured.readouterr()
        return Ran(int(code), captured.out, captured.err)

    def start(self, *arguments: object, role: Role, **more: str) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        environ = {"PATH": os.environ["PATH"], **self.environ(role), **more}
        return subprocess.Popen(
            [sys.executable, "-m", "baton.cli", *(str(each) for each in arguments)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def clients(self) -> Iterator[Clients]:
        """Clients of the account."""
        made = Clients(load(self.account.environ).aws)
        try:
            yield made
        finally:
            made.close()

    def ground(self, clients: Clients) -> tuple[Queue, Queue, Queue]:
        """Make queues, bucket and notification, as the processes do at their start."""
        settings = load(self.environ(Role.OBSERVER))
        queues = configured(clients, settings.queues)
        for queue in queues:
            queue.ensure()
        Store(clients, settings.bucket).ensure()
        notifications.ensure(clients, self.bucket, queues[2])
        return queues
