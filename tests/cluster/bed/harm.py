"""What goes wrong with documents, and with the way to their database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from sqlalchemy import text

from baton.embedded.ports import LOOPBACK
from cluster.bed.replicas import Cluster
from support.databases import Database
from support.reconciling import Loop


def broken(world: Cluster, count: int = 1) -> Loop:
    """Documents that were queued, and whose request nobody has."""
    loop = Loop(world.matter)
    for _ in range(count):
        loop.erase_request(loop.queued()[0])
    return loop


def fail(world: Cluster, count: int = 1) -> list[UUID]:
    """Documents whose registration failed for good: no loop brings them back."""
    matter = world.matter
    made = []
    for _ in range(count):
        document = matter.document()
        matter.apply(matter.settle(matter.dispatch(document), "expired", message="No answer came."))
        made.append(document)
    matter.prepare("UPDATE documents SET next_attempt_at = NULL WHERE registration_status = 'registration_failed'")
    return made


def repaired(loop: Loop, count: int) -> bool:
    """Whether so many repairs were made, or more."""
    return len(loop.ledger()) >= count


@contextmanager
def busy(world: Cluster, document: UUID) -> Iterator[None]:
    """A document's lock is taken within the block, as by live work; for as long as it takes."""
    with world.database.preparer.begin() as connection:
        connection.execute(text("SELECT 1 FROM documents WHERE id = :id FOR NO KEY UPDATE"), {"id": document})
        yield


@contextmanager
def held(world: Cluster, table: str = "documents", *, mode: str = "ACCESS EXCLUSIVE") -> Iterator[None]:
    """Nobody reads a document within the block: whoever asks waits for a lock.

    :param mode: ``SHARE``: nobody writes, and everybody reads.
    """
    with world.database.preparer.begin() as connection:
        connection.execute(text(f"LOCK TABLE {table} IN {mode} MODE"))
        yield


def waiting(world: Cluster, statements: int = 1) -> bool:
    """Whether so many statements of the operator wait for a lock."""
    found = world.matter.count(
        "pg_stat_activity",
        "datname = current_database() AND application_name LIKE 'baton-operator%' AND wait_event_type = 'Lock'",
    )
    return found >= statements


@contextmanager
def by_password(database: Database, role: str, password: str) -> Iterator[None]:
    """This database lets the role in by a password only; all others trust it as before."""
    with database.preparer.connect() as connection:
        file = Path(connection.execute(text("SHOW hba_file")).scalar_one())
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text(f"host {database.name} {role} {LOOPBACK}/32 scram-sha-256\n{before}", encoding="utf-8")
        _say(database, f"ALTER ROLE {role} PASSWORD '{password}'")
        yield
    finally:
        file.write_text(before, encoding="utf-8")
        _say(database, f"ALTER ROLE {role} PASSWORD NULL")


def _say(database: Database, statement: str) -> None:
    with database.preparer.begin() as connection:
        connection.execute(text(statement))
        connection.execute(text("SELECT pg_reload_conf()"))
