"""A database comes to the version that is needed whatever happens on the way, and work goes on meanwhile."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from baton.cli.failures import told
from baton.cli.main import group
from baton.db import ddl, selfcheck
from baton.db import migrate as migrating
from baton.db.access import FIRM_SCOPED, LOGIN, Role
from baton.db.connect import firm_transaction
from baton.db.errors import MigrationFailed
from baton.db.migrate import migrate
from baton.db.migrations import frozen
from baton.db.revisions import head
from baton.embedded.binaries import debian_binaries
from baton.embedded.postgres import SUPERUSER, EmbeddedPostgres
from baton.settings.exits import Exit
from support import catalogs
from support.databases import Cluster, Database, connect
from support.parts import require
from support.tenancy import as_the_firm, leaks, open_firms
from support.waiting import wait_until

FIRST = "0001"


def shape(database: Database) -> tuple[dict[str, str], set[tuple[str, str, str]]]:
    """Everything that migrating makes."""
    with database.preparer.connect() as connection:
        return catalogs.shape(connection), catalogs.grants(connection)


def version(database: Database) -> str | None:
    """Where the database is."""
    return selfcheck.revision(database.preparer)


@pytest.fixture
def first(empty_database: Database) -> Database:
    """A database of the first version, with two firms' rows in it."""
    migrate(empty_database.url(SUPERUSER), revision=FIRST)
    open_firms(empty_database.preparer)
    return empty_database


def test_migrating_again_changes_nothing(scratch: Database) -> None:
    """Each start of a release may run it."""
    before = shape(scratch)
    assert migrate(scratch.url(SUPERUSER)) == head()
    assert shape(scratch) == before


def test_version_by_version_is_the_same_as_at_once(bare: Database, looked_at: Database) -> None:
    """Also where rows are there already, and they stay."""
    migrate(bare.url(SUPERUSER), revision=FIRST)
    open_firms(bare.preparer)
    assert version(bare) == FIRST
    assert migrate(bare.url(SUPERUSER)) == head()
    assert shape(bare) == shape(looked_at)
    with bare.preparer.connect() as connection:
        for table in FIRM_SCOPED:
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 2


def test_a_version_sees_every_firms_rows(first: Database) -> None:
    """Under forced row-level security an owner without a policy would change nothing, without an error."""
    with first.preparer.begin() as connection:
        connection.execute(text(f"SET LOCAL ROLE {Role.OWNER}"))
        changed = connection.execute(text("UPDATE documents SET name = name || '.'"))
        assert changed.rowcount == 2


def test_the_previous_release_works_on_while_a_version_is_applied(first: Database) -> None:
    """Members upload, change and search before, during and after; no statement of theirs fails."""
    stop, failures, rounds = threading.Event(), [], []
    engine = first.engine(Role.MEMBER_APP)

    def work(firm: UUID) -> None:
        while not stop.is_set():
            try:
                with firm_transaction(engine, firm) as connection:
                    _previous_release(connection, firm)
            except DBAPIError as error:
                failures.append(error)
                return
            rounds.append(firm)

    with first.preparer.connect() as connection:
        firms = connection.execute(text("SELECT DISTINCT firm_id FROM documents")).scalars().all()
    with ThreadPoolExecutor(len(firms)) as pool:
        working = [pool.submit(work, firm) for firm in firms]
        try:
            wait_until(lambda: len(rounds) >= 4 or failures, what="the work before it")
            migrate(first.url(SUPERUSER))
            done = len(rounds)
            wait_until(lambda: len(rounds) >= done + 4 or failures, what="the work after it")
        finally:
            stop.set()
        for each in working:
            each.result(timeout=20)
    assert failures == []
    assert leaks(as_the_firm(engine), own=firms[0], others=[firms[1]]) == []


def _previous_release(connection: Connection, firm: UUID) -> None:
    """Statements as the first version's processes make them: columns by name, none that came later."""
    document = connection.execute(
        text(
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type)"
            " VALUES (gen_random_uuid(), :f, :f, 'a.pdf', gen_random_uuid()::text, 'application/pdf') RETURNING id"
        ),
        {"f": firm},
    ).scalar_one()
    ticket = connection.execute(
        text(
            "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
            " extraction_epoch, object_key, content_type)"
            " VALUES (:f, :f, :d, 'document.ingest.requested', CAST(:d AS text), 1, 'o', 'c')"
            " ON CONFLICT (firm_id, idempotency_key) DO NOTHING RETURNING id"
        ),
        {"f": firm, "d": document},
    ).scalar_one()
    connection.execute(
        text("UPDATE documents SET processing_status = 'uploaded', ingest_ticket_id = :t WHERE id = :d"),
        {"t": ticket, "d": document},
    )
    connection.execute(
        text(
            "INSERT INTO ops.audit_event (firm_id, matter_id, document_id, event, actor)"
            " VALUES (:f, :f, :d, 'document.uploaded', 'a')"
        ),
        {"f": firm, "d": document},
    )
    connection.execute(text("SELECT * FROM app.search('lease', 10)")).all()


def test_of_two_migrators_one_waits(empty_database: Database, looked_at: Database) -> None:
    """And finds everything done."""
    said: list[str] = []
    url = empty_database.url(SUPERUSER)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(migrate, url, progress=said.append) for _ in range(2)]
        assert [each.result(timeout=60) for each in both] == [head(), head()]
    assert any("another migration is running" in line for line in said)


_MIGRATE = "import sys; from baton.db.migrate import migrate; migrate(sys.argv[1])"


def _waiting_migrator(database: Database) -> int | None:
    with database.preparer.connect() as connection:
        found = connection.execute(
            text(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'baton-migrate' AND wait_event_type = 'Lock'"
            )
        )
        return found.scalar_one_or_none()


def test_a_migrator_that_is_killed_leaves_nothing_behind(bare: Database, looked_at: Database) -> None:
    """In the middle of the first version; the next one finishes it."""
    with bare.preparer.connect() as holding:
        holding.execute(text("CREATE SCHEMA record"))  # which the migrator then waits for
        process = subprocess.Popen([sys.executable, "-c", _MIGRATE, bare.url(SUPERUSER)], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: _waiting_migrator(bare), timeout=30, what="the migrator's wait")
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        holding.rollback()
    with bare.preparer.connect() as connection:
        assert catalogs.tables(connection) == set()
    assert migrate(bare.url(SUPERUSER)) == head()
    assert shape(bare) == shape(looked_at)


def test_a_migrator_whose_session_ends_says_so(empty_database: Database) -> None:
    """A server that restarts, an administrator that ends it: one line, and nothing half done."""
    with empty_database.preparer.connect() as holding, ThreadPoolExecutor(1) as pool:
        holding.execute(text("CREATE SCHEMA record"))
        running = pool.submit(migrate, empty_database.url(SUPERUSER))
        pid = wait_until(lambda: _waiting_migrator(empty_database), timeout=30, what="the migrator's wait")
        holding.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        with pytest.raises(MigrationFailed) as failed:
            running.result(timeout=30)
        holding.rollback()
    assert "\n" not in str(failed.value)
    assert version(empty_database) is None


def test_it_gives_way_to_live_work_and_comes_back(first: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never stands in front of others for longer than its lock time-out."""
    monkeypatch.setattr(migrating, "_LOCK_TIMEOUT", "100ms")
    with first.preparer.connect() as live:
        live.execute(text("LOCK TABLE app.alembic_version"))
        said: list[str] = []

        def hear(line: str) -> None:
            said.append(line)
            if "gave way" in line and live.in_transaction():
                live.rollback()

        assert migrate(first.url(SUPERUSER), progress=hear) == head()
    assert any("gave way to live work" in line for line in said)


def test_it_does_not_give_way_for_ever(first: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's lock that never ends is named as what is in the way; the version stays."""
    monkeypatch.setattr(migrating, "_LOCK_TIMEOUT", "20ms")
    monkeypatch.setattr(migrating, "_ATTEMPTS", 2)
    with first.preparer.connect() as live:
        live.execute(text("LOCK TABLE app.alembic_version"))
        with pytest.raises(MigrationFailed, match="lock timeout"):
            migrate(first.url(SUPERUSER))
        live.rollback()
    assert version(first) == FIRST


def test_a_version_that_fails_leaves_the_one_before(first: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is kept, its reason is one line, and work goes on with the old one."""
    before = shape(first)
    whole = frozen.statements

    def broken(name: str) -> Iterator[str]:
        yield from whole(name)
        yield "SELECT 1 / 0"

    with monkeypatch.context() as patched:
        patched.setattr(frozen, "statements", broken)
        with pytest.raises(MigrationFailed) as failed:
            migrate(first.url(SUPERUSER))
    assert str(failed.value) == "migration was rolled back: division by zero"
    assert version(first) == FIRST
    assert shape(first) == before
    with first.preparer.connect() as connection:
        firms = connection.execute(text("SELECT DISTINCT firm_id FROM documents")).scalars().all()
    with firm_transaction(first.engine(Role.MEMBER_APP), firms[0]) as connection:
        _previous_release(connection, firms[0])
    assert migrate(first.url(SUPERUSER)) == head()


@pytest.mark.parametrize(
    ("user", "code"),
    [(Role.RELAY.value, Exit.FAILED), ("nobody_we_know", Exit.UNAVAILABLE)],
    ids=["no rights", "not let in"],
)
def test_the_command_says_in_one_line_why_it_cannot(
    first: Database,
    user: str,
    code: Exit,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And ends with a code that means it: the migration failed, or no connection was made. The version stays."""
    monkeypatch.setenv("DATABASE_URL", first.url(user))
    assert told(lambda: group.main(["migrate"], standalone_mode=False)) == code
    told_last = capsys.readouterr().err.strip().splitlines()[-1]
    assert told_last.startswith("baton: ")
    assert version(first) == FIRST


@pytest.fixture(params=["chosen", "floor"])
def untouched(request: pytest.FixtureRequest, state_folder: Path) -> Iterator[Cluster]:
    """A server of its own, that knows nothing of Baton, with an administrator who is no superuser."""
    binaries = request.getfixturevalue("postgres_binaries")
    if request.param == "floor":
        require("postgres15")
        binaries = debian_binaries(15)
    with EmbeddedPostgres(state_folder / "server", binaries=binaries, durable=False) as server:
        cluster = Cluster(server)
        with cluster._admin.connect() as admin:
            admin.execute(text("CREATE ROLE administrator LOGIN CREATEROLE CREATEDB"))
        yield cluster
        cluster._admin.dispose()


def _own(cluster: Cluster, name: str) -> tuple[str, Engine]:
    url = cluster.server.url("administrator", "postgres")
    engine = connect(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return cluster.server.url("administrator", name), create_engine(
        cluster.server.url(SUPERUSER, name), poolclass=NullPool
    )


def test_an_administrator_who_is_no_superuser_can_migrate(untouched: Cluster) -> None:
    """As a managed service gives one: it may create roles and owns its database. Two databases at the same time, and
    each again: roles are shared by both.
    """
    (one, looking), (other, _) = _own(untouched, "one"), _own(untouched, "other")
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(migrate, (one, other))) == [head(), head()]
    assert migrate(one) == head()
    for role in LOGIN:
        for name in ("one", "other"):
            engine = connect(untouched.server.url(role, name), poolclass=NullPool)
            selfcheck.check(engine, role=role)
    firms = open_firms(looking)
    member = connect(untouched.server.url(Role.MEMBER_APP, "one"), poolclass=NullPool)
    assert leaks(as_the_firm(member), own=firms[0], others=[firms[1]]) == []
    with looking.connect() as connection:
        assert catalogs.not_the_owners(connection) == []
        assert catalogs.matched_twice(connection) == []
        assert catalogs.grants(connection) == catalogs.documented_grants()


def test_what_an_administrator_prepares_may_be_prepared_again(scratch: Database) -> None:
    """Every statement of it, by itself."""
    with scratch.preparer.begin() as connection:
        for statement in (*ddl.roles(), *ddl.database()):
            connection.exec_driver_sql(statement.replace("%", "%%"))
