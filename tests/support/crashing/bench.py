"""What all runs share, so that one of them is cheap: the server, the account, the agent and the compiled statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine, text

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Rule
from baton.agent.server import AgentServer
from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.aws.queues import Queue, configured
from baton.db.access import Role
from baton.embedded.postgres import SUPERUSER
from baton.extraction.scratch import Scratch
from baton.runs.invocation import AgentClient
from baton.settings.agents import Agent
from baton.settings.loading import load
from baton.settings.secret import Secret
from baton.settings.stores import Bucket, Queues
from support.aws_accounts import AwsAccount
from support.crashing.hooks import Hooks
from support.databases import Cluster, Database
from support.waiting import wait_until

_TOKEN = "a-token-for-tests"


class Bench:
    """Engines are kept from run to run, each run having a database of its own behind them."""

    def __init__(self, cluster: Cluster, account: AwsAccount, folder: Path, *, queues: Queues) -> None:
        self.hooks = Hooks()
        self.cluster = cluster
        self.clients = Clients(load(account.environ).aws)
        self.bucket = Bucket(name=f"baton-{account.account}")
        self.store = Store(self.clients, self.bucket)
        self.ingest, self.registrar, self.results = configured(self.clients, queues)
        self.scratch = Scratch(folder)
        self.agent = AgentServer(AgentConfig(token=_TOKEN, workers=2))
        self._database: Database | None = None
        self._engines: dict[tuple[str, str], Engine] = {}
        self._connections: dict[str, list[psycopg.Connection[Any]]] = {}
        self._killer: psycopg.Connection[Any] | None = None

    @property
    def database(self) -> Database:
        """The run's own."""
        assert self._database is not None
        return self._database

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All of them."""
        return (self.ingest, self.registrar, self.results)

    @contextmanager
    def opened(self) -> Iterator["Bench"]:
        """Ready for runs."""
        self.store.ensure()
        for queue in self.queues:
            queue.ensure()
        notifications.ensure(self.clients, self.bucket.name, self.results)
        with self.agent:
            self.caller = AgentClient(
                Agent(url=self.agent.url, token=Secret(_TOKEN), connect_timeout=5.0, read_timeout=30.0)
            )
            self._killer = psycopg.connect(_plain(self.cluster.server.url(SUPERUSER, "postgres")), autocommit=True)
            try:
                with self.hooks.installed():
                    yield self
            finally:
                self.dismiss()
                self._killer.close()
                self.caller.close()
                self.clients.close()
                self.scratch.close()

    @contextmanager
    def run(self, rules: tuple[Rule, ...]) -> Iterator[Database]:
        """A fresh database, empty queues, and an agent with these rules."""
        self.agent.script.clear()
        for rule in rules:
            self.agent.script.add(rule)
        self.hooks.receipts.held.clear()
        self._database = self.cluster.create()
        try:
            yield self._database
        except BaseException:
            for queue in self.queues:
                queue.purge()
            raise
        finally:
            self.dismiss()
            self.database.close()

    def engine(self, stage: str, role: Role) -> Engine:
        """A worker's engine."""
        key = (stage, role)
        if key not in self._engines:
            self._engines[key] = create_engine(
                "postgresql+psycopg://",
                creator=lambda: self._connect(role, stage),
                pool_size=5,
                max_overflow=0,
                pool_reset_on_return=None,  # what a dead worker held is let go of much later, and is long closed
            )
        return self._engines[key]

    def bury(self, stage: str, sessions: set[int]) -> None:
        """End the server's side of a dead worker's sessions, as the end of its process does, and wait for that."""
        assert self._killer is not None
        self._killer.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid = ANY(%s) AND datname = %s",
            (list(sessions), self.database.name),
        )
        self._disconnect(stage)

    def dismiss(self) -> None:
        """Close every worker's connections."""
        for stage in [*self._connections]:
            self._disconnect(stage)

    def release(self) -> bool:
        """Show again what the queues hide for those who died or wait; whether there was any."""
        found = False
        for url, held in self.hooks.receipts.held.items():
            for receipt in [*held]:
                found = True
                held.discard(receipt)
                self.clients.sqs.change_message_visibility_batch(
                    QueueUrl=url, Entries=[{"Id": "0", "ReceiptHandle": receipt, "VisibilityTimeout": 0}]
                )
        return found

    def await_agent(self) -> None:
        """Return once the agent has nothing to do."""
        wait_until(self._idle, timeout=60, interval=0.002, what="the agent's rest")

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Look at the run's database."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text(statement), values))

    def _disconnect(self, stage: str) -> None:
        for (owner, _), engine in self._engines.items():
            if owner == stage:
                engine.dispose()
        for connection in self._connections.pop(stage, ()):
            connection.close()

    def _idle(self) -> bool:
        load_now = self.agent.load
        return not load_now.waiting and not load_now.working

    def _connect(self, role: Role, stage: str) -> psycopg.Connection[Any]:
        made = psycopg.connect(
            _plain(self.database.url(role)),
            prepare_threshold=None,
            connect_timeout=10,
            application_name=f"baton-{stage}",
        )
        self._connections.setdefault(stage, []).append(made)
        return made


def _plain(url: str) -> str:
    return url.replace("+psycopg", "", 1)
