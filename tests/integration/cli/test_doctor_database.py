"""What the doctor says of the database itself: versions, clock, roles, sessions, storage."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import psycopg
import pytest

from baton.db.access import Role
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.postgres import EmbeddedPostgres
from baton.outbox.sessions import own_session
from baton.reconcilers.doctor import clocks, rights, sessions, storage
from baton.reconcilers.doctor.findings import Level
from support.databases import Cluster
from support.examining import findings_of, prepare
from support.operators import Operator
from support.waiting import wait_until


@contextmanager
def _held(operator: Operator, *statements: str, role: str = "postgres") -> Iterator[psycopg.Connection]:
    """A session that has said these, and then goes on holding what it holds."""
    driver = own_session(operator.database.engine(role))
    try:
        for statement in statements:
            driver.execute(statement.encode())
        yield driver
    finally:
        driver.close()


# versions and clock


def test_a_database_newer_than_the_program_is_told_and_no_fault(operator: Operator) -> None:
    """In a roll-out it is so for a while."""
    prepare(operator, "UPDATE app.alembic_version SET version_num = '9999'")
    assert findings_of(operator, check="version") == []
    (finding,) = findings_of(operator, level="warning", check="version")
    assert "newer than this program's" in finding["what"]


def test_a_server_that_is_too_old_is_told(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor is raised here, rather than the server lowered."""
    monkeypatch.setattr(rights, "MINIMUM_SERVER", 10**7)
    (finding,) = findings_of(operator, check="version")
    assert "too old" in finding["what"]


def test_a_database_that_was_never_migrated_is_told_so(operator: Operator) -> None:
    """In so many words, and with the command that does it."""
    prepare(operator, "ALTER TABLE app.alembic_version RENAME TO other")
    (finding,) = findings_of(operator, check="version")
    assert (finding["what"], "baton migrate" in finding["todo"]) == ("the database was never migrated", True)


def test_a_clock_that_was_replaced_is_told(operator: Operator) -> None:
    """Every deadline hangs on it; a database that says it is a test's may move it."""
    operator.database.move_clock(3600)
    name = operator.database.name
    prepare(operator, f"ALTER DATABASE {name} SET baton.test_database = 'on'")
    assert findings_of(operator, check="clock") == []
    prepare(operator, f"ALTER DATABASE {name} RESET baton.test_database")
    (finding,) = findings_of(operator, check="clock")
    assert "app.clock() was replaced" in finding["what"]


@pytest.mark.parametrize(("seconds", "words"), [(-60, "60 s ahead of"), (60, "60 s behind"), (-2, None)])
def test_clocks_that_are_apart_are_told(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, seconds: int, words: str | None
) -> None:
    """By how much, and which is ahead; a moment is nothing."""

    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=seconds)

    monkeypatch.setattr(clocks, "datetime", Moved)
    told = [each["what"] for each in findings_of(operator, level="warning", check="clock")]
    assert told == ([] if words is None else [f"the database's clock is {words} this machine's"])


# roles


@pytest.mark.parametrize(
    ("given", "taken", "level", "words"),
    [
        ("SUPERUSER", "NOSUPERUSER", "fault", "baton_support is a superuser"),
        ("BYPASSRLS", "NOBYPASSRLS", "fault", "baton_support is free of row-level security"),
    ],
)
def test_a_role_with_power_is_told(operator: Operator, given: str, taken: str, level: str, words: str) -> None:
    """Whichever power it is: firms would see each other."""
    prepare(operator, f"ALTER ROLE baton_support {given}")
    try:
        told = [each["what"] for each in findings_of(operator, level=level, check="roles")]
    finally:
        prepare(operator, f"ALTER ROLE baton_support {taken}")
    assert words in told


def test_a_role_that_may_log_in_and_should_not_is_told(operator: Operator) -> None:
    """A member is what a login becomes, never a login."""
    prepare(operator, "ALTER ROLE baton_member LOGIN")
    try:
        (finding,) = findings_of(operator, level="warning", check="roles")
    finally:
        prepare(operator, "ALTER ROLE baton_member NOLOGIN")
    assert "baton_member may log in" in finding["what"]


def test_a_role_that_is_gone_is_told(operator: Operator) -> None:
    """By name."""
    prepare(operator, "ALTER ROLE baton_support RENAME TO baton_other")
    try:
        (finding,) = findings_of(operator, check="roles")
    finally:
        prepare(operator, "ALTER ROLE baton_other RENAME TO baton_support")
    assert finding["what"] == "missing: baton_support"


# sessions


def test_a_transaction_that_is_open_for_too_long_is_a_fault(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is something to see to."""
    monkeypatch.setattr(sessions, "WARN_AFTER", timedelta(0))
    with _held(operator, "BEGIN", "SELECT 1", role=Role.SUPPORT) as driver:
        process = f"process {driver.info.backend_pid} "
        assert [each for each in findings_of(operator, level="warning", check="sessions") if process in each["what"]]
        monkeypatch.setattr(sessions, "FAULT_AFTER", timedelta(0))
        assert [each for each in findings_of(operator, check="sessions") if process in each["what"]]


def test_a_wait_for_a_lock_is_told_with_who_holds_it(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both by process id."""
    monkeypatch.setattr(sessions, "_LOCKED_FOR", timedelta(0))
    lock = "SELECT pg_advisory_lock(7)"
    with _held(operator, lock) as holder, _held(operator) as waiting, _held(operator) as looking:
        asking = threading.Thread(target=waiting.execute, args=(lock.encode(),))
        asking.start()
        pid, blocker = waiting.info.backend_pid, holder.info.backend_pid
        blocked = "SELECT pg_blocking_pids(%s)"
        wait_until(lambda: looking.execute(blocked, [pid]).fetchone() == ([blocker],), 30, what="it waits")
        told = [each["what"] for each in findings_of(operator, level="warning", check="sessions")]
        holder.execute("SELECT pg_advisory_unlock(7)")
        asking.join(30)
    assert [each for each in told if f"process {pid} " in each and f"lock of process {blocker}" in each], told


def test_an_old_snapshot_is_told_though_others_times_cannot_be_seen(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how many transactions it is old, which whoever is asked may see."""
    monkeypatch.setattr(sessions, "_OLD_SNAPSHOT", 0)
    with _held(operator, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1", role=Role.RECONCILER) as driver:
        prepare(operator, "CREATE TABLE public.passing ()", "DROP TABLE public.passing")
        findings = operator.run("doctor", "--json", role=Role.RECONCILER).json["findings"]
        pid = driver.info.backend_pid
    told = [each["what"] for each in findings if (each["check"], each["level"]) == ("sessions", "warning")]
    assert [each for each in told if f"process {pid} " in each and "transactions old" in each], told


def test_what_is_left_behind_without_a_session_is_told(
    state_folder: Path, postgres_binaries: PostgresBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prepared transaction that nobody ended, and a replication slot that nobody reads: on a server that allows them."""
    monkeypatch.setattr(sessions, "WARN_AFTER", timedelta(0))
    monkeypatch.setattr(sessions, "_OLD_SNAPSHOT", -1)
    allowed = {"max_prepared_transactions": "2", "wal_level": "logical"}
    with EmbeddedPostgres(
        state_folder / "postgres", binaries=postgres_binaries, durable=False, settings=allowed
    ) as server:
        database = Cluster(server).create()
        with own_session(database.engine("postgres")) as driver:
            driver.execute("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')")
            driver.execute("BEGIN")
            driver.execute("CREATE TABLE public.half ()")
            driver.execute("PREPARE TRANSACTION 'left'")
        with database.engine(Role.OBSERVER).connect() as connection:
            told = {each.what: each for each in sessions.sessions(connection)}
        database.engine(Role.OBSERVER).dispose()
        database.preparer.dispose()
    (prepared,) = [each for what, each in told.items() if what.startswith("prepared transaction 'left' of postgres")]
    assert (prepared.level, prepared.todo) == (Level.FAULT, "ROLLBACK PREPARED 'left', or COMMIT PREPARED it")
    (slot,) = [each for what, each in told.items() if what.startswith("replication slot forgotten keeps rows")]
    assert (slot.level, slot.what.endswith(", and nobody reads it")) == (Level.WARNING, True)


# storage


@pytest.mark.parametrize(
    ("constants", "level", "words"),
    [
        ({"_OLD": -1}, "fault", "documents holds transactions"),
        ({"_DEAD_BASE": -1, "_DEAD_SHARE": 0.0}, "warning", "dead rows"),
        ({"_BLOATED_BYTES": -1, "_BYTES_PER_ENTRY": -1}, "warning", "index public.documents_pkey takes"),
    ],
)
def test_what_vacuum_did_not_keep_up_with_is_told(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, constants: dict[str, float], level: str, words: str
) -> None:
    """Old transactions, dead rows, an index that is mostly empty: bounds are lowered here, where there is little of it."""
    for name, value in constants.items():
        monkeypatch.setattr(storage, name, value)
    told = [each["what"] for each in findings_of(operator, level=level, check="storage")]
    assert [each for each in told if words in each], told


@pytest.mark.parametrize("setting", ["track_counts"])
def test_autovacuum_that_cannot_work_is_told(operator: Operator, setting: str) -> None:
    """Without its counts it does nothing, whatever else is set."""
    prepare(operator, f"ALTER DATABASE {operator.database.name} SET {setting} = off")
    (finding,) = findings_of(operator, check="storage")
    assert finding["what"] == "autovacuum is off"


def test_an_index_that_is_invalid_is_told(operator: Operator) -> None:
    """As a concurrent build that failed leaves it."""
    prepare(operator, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ops.o_open'::regclass")
    (finding,) = findings_of(operator, check="storage")
    assert finding["what"] == "invalid indexes: ops.o_open"


def test_a_table_that_is_missing_is_told(operator: Operator) -> None:
    """And so are its indexes."""
    prepare(operator, "ALTER TABLE ops.document_ingest_outbox RENAME TO other")
    told = [each["what"] for each in findings_of(operator, check="storage")]
    assert "table ops.document_ingest_outbox is missing" in told
