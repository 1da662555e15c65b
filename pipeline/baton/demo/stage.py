"""The stage: a folder of the demo's own, and in it Postgres, SQS and S3, or what stands for them elsewhere.

The folder carries the number of the process that made it. A demo that was killed cannot clean up, so the next one does:
a folder whose process is gone is removed, unless it was to be kept.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from baton.aws.naming import dead_letter_queues
from baton.db.migrate import migrate
from baton.demo.given import Given, check_entrance
from baton.demo.lodgings import Say, own_database, own_places, surely
from baton.embedded.ministack import AwsServer, open_aws
from baton.embedded.postgres import ExternalPostgres, PostgresServer, open_postgres
from baton.embedded.waiting import poll
from baton.settings.secret import Secret
from baton.settings.stores import Bucket, Queues

DATABASE: Final = "baton"
#: Twelve digits: an account of the embedded SQS and S3.
ACCOUNT: Final = "150315431544"
_PREFIX: Final = "baton-demo-"
_PATIENCE: Final = 5.0  # seconds in which whoever was killed writes no more
_KEPT: Final = "baton-demo-kept-"
_OF_PROCESS: Final = re.compile(re.escape(_PREFIX) + r"(\d+)-.*")
#: The parts are six processes with a pool each.
_CONNECTIONS: Final = "200"
#: Short, so that what a killed process held is soon somebody else's.
_QUEUES: Final = Queues(visibility=6, retention=3600)
_BUCKET: Final = Bucket()
_NOTHING: Final = Given()


def _silent(_line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Servers that run, what is the demo's on them, and where everybody's logs lie."""

    folder: Path
    postgres: PostgresServer
    aws: AwsServer
    database: str = DATABASE
    bucket: Bucket = _BUCKET
    queues: Queues = _QUEUES
    given: tuple[str, ...] = ()
    """What was made on servers of somebody else's, in words."""

    def database_url(self, role: str) -> Secret:
        """A URL that logs in to the demo's database as the role."""
        return Secret(self.postgres.url(role, self.database))

    @property
    def papers(self) -> Path:
        """Where the case file is written."""
        return self.folder / "case-file"

    @property
    def logs(self) -> Path:
        """One log for each process."""
        return self.folder / "logs"

    @property
    def scratch(self) -> Path:
        """Where the processes put temporary files."""
        return self.folder / "tmp"


@contextmanager
def open_stage(*, keep: bool = False, given: Given = _NOTHING, say: Say = _silent) -> Iterator[Stage]:
    """Start everything in a fresh folder, with a migrated database; end it, and remove it all unless it is kept.

    :param given: servers to be used in place of the demo's own.
    :param say: is told what is made on them, and what of it could not be removed.
    :raises EmbeddedError: a server cannot be started, or does not answer.
    :raises SettingsError: a server that was given does not allow what a demo needs.
    :raises AwsError: bucket and queues cannot be made where they were given.
    :raises MigrationFailed: the database cannot be prepared.
    """
    with ExitStack() as opened:
        folder = opened.enter_context(_folder(keep=keep))
        stage = opened.enter_context(_servers(folder, given))
        postgres = stage.postgres
        administrator: Engine = create_engine(
            postgres.url(postgres.administrator, postgres.maintenance),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"connect_timeout": 5},
        )
        opened.callback(administrator.dispose)
        if isinstance(postgres, ExternalPostgres):
            check_entrance(postgres, administrator, database=stage.database)
        for line in stage.given:
            say(line)
        if given.aws is not None:
            opened.enter_context(own_places(given.aws, stage.bucket, stage.queues, keep=keep, say=say))
        # An embedded server's goes with its folder.
        kept = keep or given.database_url is None
        opened.enter_context(own_database(administrator, stage.database, keep=kept, say=say))
        migrate(postgres.url(postgres.administrator, stage.database), progress=lambda _line: None)
        yield stage


@contextmanager
def reopen_stage(folder: Path) -> Iterator[Stage]:
    """Start the servers of a folder that was kept.

    :raises EmbeddedError: a server cannot be started.
    :raises FileNotFoundError: it is not a folder of a demo.
    """
    if not all(each.is_dir() for each in (folder / "postgres" / "data", folder / "aws")):
        raise FileNotFoundError(f"{folder} is not the folder of a demo that had servers of its own")
    with _servers(folder, _NOTHING) as stage:
        yield stage


@contextmanager
def _servers(folder: Path, given: Given) -> Iterator[Stage]:
    stage = _laid_out(folder, given)
    for each in (stage.logs, stage.scratch):
        each.mkdir(exist_ok=True)
    with ExitStack() as started:
        for server in (stage.postgres, stage.aws):
            started.callback(server.stop)
            server.start()
        yield stage


def _laid_out(folder: Path, given: Given) -> Stage:
    url = None if given.database_url is None else given.database_url.reveal()
    # What is killed here is processes, never the machine: nothing depends on what the disk has been told.
    postgres = open_postgres(
        folder / "postgres", database_url=url, durable=False, settings={"max_connections": _CONNECTIONS}
    )
    stage = Stage(folder=folder, postgres=postgres, aws=open_aws(folder / "aws", environ=given.aws))
    # On a server of somebody else's nothing may bear a name that something bears already.
    own = secrets.token_hex(5)
    if given.database_url is not None:
        name = f"{DATABASE}_demo_{own}"
        stage = replace(stage, database=name, given=(f"on the server of DATABASE_URL: database {name}",))
    if given.aws is not None:
        prefix = f"{_PREFIX}{own}"
        ingest, registrar, results = f"{prefix}-ingest.fifo", f"{prefix}-registrar.fifo", f"{prefix}-results"
        queues = replace(_QUEUES, ingest=ingest, registrar=registrar, results=results)
        names = ", ".join((*dead_letter_queues(queues), *dead_letter_queues(queues).values()))
        lines = (
            f"on the server of AWS_ENDPOINT_URL_S3: bucket {prefix}",
            f"on the server of AWS_ENDPOINT_URL_SQS: queues {names}",
        )
        stage = replace(stage, bucket=Bucket(name=prefix), queues=queues, given=(*stage.given, *lines))
    return stage


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    base = Path(tempfile.gettempdir())
    _sweep(base)
    # Named before it is made: the wish to end may come in between.
    folder = base / f"{_KEPT if keep else f'{_PREFIX}{os.getpid()}-'}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        # Postgres does not run as root: its account must pass through.
        folder.chmod(0o711)
        yield folder
    finally:
        if not keep:
            surely(lambda: poll(lambda: _removed(folder), timeout=_PATIENCE))


def _removed(folder: Path) -> bool:
    """Remove it; false where a process that was killed wrote into it still."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _sweep(base: Path) -> None:
    for found in base.glob(f"{_PREFIX}*"):
        match = _OF_PROCESS.fullmatch(found.name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            shutil.rmtree(found, ignore_errors=True)
