"""Postgres, SQS and S3 on this machine, where pods reach them: every role logs in by a password of its own."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool
from uuid_utils.compat import uuid7

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.db.access import LOGIN, Role
from baton.demo.arrivals import Firm
from baton.embedded.ministack import EmbeddedAws
from baton.embedded.ports import LOOPBACK
from baton.embedded.postgres import SUPERUSER, EmbeddedPostgres
from baton.settings.loading import load
from baton.settings.stores import Bucket
from e2e.bed.sandboxes import HOST
from support.aws_accounts import AwsAccount, new_account
from support.databases import Cluster, Database

KEEPER = "keeper"
"""The administrator whom the migration logs in as: no superuser."""
_PODS = "10.90.0.0/15"


@dataclass(frozen=True)
class Grounds:
    """What a release stands on."""

    server: EmbeddedPostgres
    account: AwsAccount
    database: Database
    passwords: Mapping[str, str]
    bucket: str

    def url(self, role: str) -> str:
        """The address that a pod logs in by."""
        where = f"{HOST}:{self.server.port}/{self.database.name}"
        return f"postgresql://{role}:{self.passwords[role]}@{where}"

    @property
    def aws_port(self) -> int:
        """Where SQS and S3 listen."""
        port = urlsplit(self.account.endpoint).port
        assert port is not None
        return port

    @contextmanager
    def firm(self) -> Iterator[Firm]:
        """A firm that nobody has heard of before, at the platform's door."""
        clients = Clients(load(self.account.environ).aws)
        try:
            yield Firm(uuid7(), self.database.engine(Role.MEMBER_APP), Store(clients, Bucket(name=self.bucket)))
        finally:
            clients.close()


@contextmanager
def servers(folder: Path) -> Iterator[tuple[EmbeddedPostgres, EmbeddedAws]]:
    """Both, listening where pods reach them; there must be a sandbox."""
    postgres = EmbeddedPostgres(
        folder / "postgres",
        durable=False,
        settings={"listen_addresses": f"{LOOPBACK},{HOST}", "max_connections": "300"},
    )
    with postgres, EmbeddedAws(folder / "aws", host=HOST) as aws:
        with _asked(postgres) as connection:
            file = Path(connection.execute(text("SHOW hba_file")).scalar_one())
            trusted = file.read_text(encoding="utf-8")
            file.write_text(f"host all all {_PODS} scram-sha-256\n{trusted}", encoding="utf-8")
            connection.execute(text("SELECT pg_reload_conf()"))
        try:
            yield postgres, aws
        finally:
            # in order it would wait for pods that still ask
            aws.kill()


def laid_out(postgres: EmbeddedPostgres, aws: EmbeddedAws, *, name: str = "baton") -> Grounds:
    """An empty database, its administrator and the roles that log in, and an account of AWS with nothing in it."""
    passwords = {role: secrets.token_hex(12) for role in (KEEPER, *LOGIN)}
    with _asked(postgres) as connection:
        connection.execute(text(f"CREATE ROLE {KEEPER} LOGIN CREATEROLE PASSWORD '{passwords[KEEPER]}'"))
        connection.execute(text(f"CREATE DATABASE {name} OWNER {KEEPER}"))
    with _asked(postgres, user=KEEPER, database=name) as connection:
        for role in LOGIN:
            connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD '{passwords[role]}'"))
    account = new_account(aws)
    return Grounds(postgres, account, Database(Cluster(postgres), name), passwords, f"papers-{account.account}")


@contextmanager
def _asked(postgres: EmbeddedPostgres, *, user: str = SUPERUSER, database: str = "postgres") -> Iterator[Connection]:
    engine = create_engine(postgres.url(user, database), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
