"""Looking inside a demo afterwards: its folder was kept, and its servers can be started on it again."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from baton.db.access import Role
from baton.demo.stage import ACCOUNT, DATABASE, Stage, reopen_stage
from baton.embedded.binaries import find_binaries
from baton.embedded.postgres import SUPERUSER
from baton.settings.loading import environment
from baton.settings.model import Settings


def tell_kept(stage: Stage, console: Console) -> None:
    """Say what stays, and how to look inside."""
    folder = stage.folder
    opened = () if stage.given else (f"     database and objects:  {program()} demo --open {shlex.quote(str(folder))}",)
    for line in (
        f"The folder stays: {folder}",
        f"     logs of every process: {folder / 'logs'}",
        *opened,
        f"     remove it:             rm -r {shlex.quote(str(folder))}",
        *(f"It stays {line}" for line in stage.given),
    ):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def show_kept(folder: Path) -> None:
    """Start the servers of a kept folder, say how to ask them, and wait for Ctrl-C."""
    with reopen_stage(folder.absolute()) as stage:
        for line in _lines(stage):
            click.echo(line)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


def _lines(stage: Stage) -> Iterator[str]:
    administrator = stage.postgres.url(SUPERUSER, DATABASE).replace("postgresql+psycopg", "postgresql", 1)
    yield "Look with psql, as an administrator (no policies apply):"
    yield f"    {_psql()} {administrator}"
    yield "or with baton, as the firm's member, in another shell:"
    member = stage.database_url(Role.MEMBER_APP).reveal()
    told = environment(Settings(queues=stage.queues, bucket=stage.bucket))
    for name, value in {**stage.aws.environ(ACCOUNT), **told, "DATABASE_URL": member}.items():
        yield f"    export {name}={shlex.quote(value)}"
    observer = shlex.quote(stage.database_url(Role.OBSERVER).reveal())
    for firm, document in _examples(stage):
        yield f"    {program()} status --firm {firm}"
        yield f"    {program()} show --firm {firm} {document}"
        yield f"    DATABASE_URL={observer} {program()} explain {document}"
    yield "Only the servers run: what is uploaded or asked for now waits, since no process takes it on."
    yield "Ctrl-C stops the servers; the folder stays."


def program() -> str:
    """How this program is called in a shell: by its name only where the shell finds it."""
    own = Path(sys.executable).with_name("baton")
    found = shutil.which("baton")
    return "baton" if found is not None and Path(found) == own else shlex.quote(str(own))


def _psql() -> str:
    beside = find_binaries().folder / "psql"
    return shlex.quote(str(beside)) if beside.exists() else "psql"


def _examples(stage: Stage) -> Iterator[tuple[str, str]]:
    engine = create_engine(stage.postgres.url(SUPERUSER, DATABASE), poolclass=NullPool)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT firm_id, id FROM documents ORDER BY id LIMIT 1")).one_or_none()
    engine.dispose()
    if row is not None:
        yield str(row.firm_id), str(row.id)
