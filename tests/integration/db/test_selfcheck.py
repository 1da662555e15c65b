"""What a process refuses to start on, and that it says so in words that can be acted on."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.pool import NullPool

from baton.db import access, selfcheck
from baton.db.access import LOGIN, Role
from baton.db.errors import StartupRefusal
from baton.db.migrate import migrate
from baton.db.revisions import head
from baton.telemetry import fields, instruments
from support.databases import Cluster, Database
from support.waiting import wait_until


def refusal(engine: Engine, role: Role, *, version: str | None = None) -> list[str]:
    """The faults that are found; none means that the process may start."""
    try:
        selfcheck.check(engine, role=role, application_version=version)
    except StartupRefusal as refused:
        return list(refused.faults)
    return []


def prepare(database: Database, *statements: str) -> None:
    """Damage the database as its preparer."""
    with database.preparer.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.fixture
def login(either: Cluster) -> "Callable[[str], str]":
    """Make a login role by name, afresh; roles belong to the whole server."""

    def made(options: str) -> str:
        name = "somebody"
        with either._admin.connect() as admin:
            admin.execute(text(f"DROP ROLE IF EXISTS {name}"))
            admin.execute(text(f"CREATE ROLE {name} LOGIN {options}"))
        return name

    return made


@pytest.mark.parametrize("role", LOGIN)
def test_every_workload_may_start_on_a_migrated_database(looked_at: Database, role: Role) -> None:
    """As its own login, on either version."""
    assert refusal(looked_at.engine(role), role) == []


def test_a_superuser_is_refused(looked_at: Database) -> None:
    """And it is said as whom to connect instead."""
    (fault,) = refusal(looked_at.preparer, Role.RELAY)
    assert "superuser postgres" in fault
    assert "connect as baton_relay" in fault


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("IN ROLE baton_relay BYPASSRLS", "BYPASSRLS"),
        ("IN ROLE baton_relay, postgres NOINHERIT", "may become postgres"),
        ("IN ROLE baton_extractor", "works as baton_relay"),
        ("", "works as baton_relay"),
    ],
    ids=["bypassrls", "could become superuser", "somebody else's", "nobody's"],
)
def test_a_login_that_is_not_the_workloads_is_refused(
    scratch: Database, login: Callable[[str], str], options: str, said: str
) -> None:
    """Whatever it can do besides."""
    faults = refusal(scratch.engine(login(options)), Role.RELAY)
    assert any(said in fault for fault in faults)


def test_a_login_of_two_workloads_is_refused(scratch: Database, login: Callable[[str], str]) -> None:
    """It would see what either of two policies shows."""
    engine = scratch.engine(login("IN ROLE baton_relay, baton_member"))
    assert any("firm_isolation_policy, system_policy" in fault for fault in refusal(engine, Role.RELAY))


def test_a_login_that_holds_the_role_may_start(scratch: Database, login: Callable[[str], str]) -> None:
    """A person's or a rotated login of another name does, where it has the rights and no more."""
    assert refusal(scratch.engine(login("IN ROLE baton_relay")), Role.RELAY) == []


@pytest.mark.parametrize(
    ("damage", "role", "said"),
    [
        ("REVOKE INSERT ON ops.audit_event FROM baton_extractor", Role.EXTRACTOR, "lacks INSERT on ops.audit_event"),
        (
            "REVOKE UPDATE (parked_at, not_before) ON ops.document_ingest_outbox FROM baton_relay",
            Role.RELAY,
            "lacks UPDATE (parked_at, not_before) on ops.document_ingest_outbox",
        ),
        ("REVOKE USAGE ON SCHEMA record FROM baton_registrar", Role.REGISTRAR, "lacks USAGE on schema record"),
        ("REVOKE USAGE ON SCHEMA app FROM baton_relay", Role.RELAY, "cannot read the version"),
        ("REVOKE SELECT ON app.release FROM baton_relay", Role.RELAY, "cannot read the version"),
        ("REVOKE EXECUTE ON FUNCTION app.clock() FROM baton_settler", Role.SETTLER, "lacks EXECUTE on app.clock"),
        ("DROP POLICY system_policy ON documents", Role.REGISTRAR, "no policy of documents names baton_registrar"),
        (
            "ALTER POLICY system_policy ON ops.document_ingest_outbox TO baton_extractor",
            Role.RELAY,
            "no policy of ops.document_ingest_outbox names baton_relay",
        ),
        (
            "ALTER TABLE agents.agent_run NO FORCE ROW LEVEL SECURITY",
            Role.SETTLER,
            "row-level security is not forced on agents.agent_run",
        ),
        (
            "ALTER TABLE inbox.item DISABLE ROW LEVEL SECURITY",
            Role.MEMBER_APP,
            "row-level security is not forced on inbox.item",
        ),
        ("CREATE POLICY open ON documents USING (true)", Role.SUPPORT, "must see no rows"),
        ("CREATE POLICY open ON documents USING (true)", Role.EXTRACTOR, "matches open, system_policy of documents"),
        ("ALTER TABLE documents DISABLE TRIGGER guard", Role.RELAY, "trigger guard of documents is off or gone"),
        ("DROP TRIGGER append_only ON ops.audit_event", Role.SETTLER, "trigger append_only of ops.audit_event"),
        ("UPDATE app.release SET min_app_version = '99.1'", Role.RELAY, "allows version 99.1 or newer"),
        ("DELETE FROM app.release", Role.RELAY, "app.release is empty"),
        ("DELETE FROM app.alembic_version", Role.RELAY, "run 'baton migrate'"),
        ("UPDATE app.alembic_version SET version_num = '0001'", Role.RELAY, "is at version 0001"),
        (
            (
                "CREATE OR REPLACE FUNCTION app.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
                " AS $$ SELECT clock_timestamp() + interval '1 hour' $$"
            ),
            Role.RELAY,
            "app.clock() was replaced",
        ),
    ],
)
def test_a_damaged_database_is_refused(database: Database, damage: str, role: Role, said: str) -> None:
    """Each fault is named, in one line, and nothing else is said to be wrong."""
    prepare(database, damage)
    (fault,) = refusal(database.engine(role), role)
    assert said in fault
    assert "\n" not in fault


@pytest.mark.parametrize("role", access.STAFF_MEMBERS)
def test_a_workload_misses_each_right_of_its_own(database: Database, role: Role) -> None:
    """Whichever is taken away is named, and once it is there again nothing is wrong."""
    engine = database.engine(role)
    for table, right in rights(role):
        prepare(database, f"REVOKE {right} ON {table} FROM {role}")
        (fault,) = refusal(engine, role)
        assert f"lacks {right} on {table}" in fault or "cannot read the version" in fault
        prepare(database, f"GRANT {right} ON {table} TO {role}")
    assert refusal(engine, role) == []


@pytest.mark.parametrize("role", access.STAFF_MEMBERS)
def test_a_workload_needs_no_right_of_anothers(database: Database, role: Role) -> None:
    """It may start where all rights of all the others are taken away."""
    others = [each for each in LOGIN if each is not role]
    prepare(database, *(f"REVOKE {right} ON {table} FROM {each}" for each in others for table, right in rights(each)))
    assert refusal(database.engine(role), role) == []


def rights(role: Role) -> list[tuple[str, str]]:
    """A role's tables, and each thing that it may do with them."""
    return [(table, right) for table in access.MATRIX.get(role, ()) for right in access.grants(role, table)]


def test_every_fault_has_its_line(database: Database) -> None:
    """An operator mends them all before the next try."""
    prepare(
        database,
        "REVOKE INSERT ON agents.agent_effect FROM baton_settler",
        "DROP POLICY system_policy ON agents.agent_run",
        "UPDATE app.release SET min_app_version = '2'",
    )
    assert len(refusal(database.engine(Role.SETTLER), Role.SETTLER)) == 3


def test_the_door_to_the_firms_member_must_be_open(either: Cluster, scratch: Database) -> None:
    """Without it a registrar would fail at its first apply. Put back at once: roles are shared."""
    try:
        prepare(scratch, "REVOKE baton_member_door FROM baton_registrar")
        (fault,) = refusal(scratch.engine(Role.REGISTRAR), Role.REGISTRAR)
    finally:
        prepare(scratch, "GRANT baton_member_door TO baton_registrar")
    assert "may not become baton_member" in fault


@pytest.mark.parametrize(
    ("own", "allowed"), [("0.9.9", False), ("0.10.0", True), ("0.10.0rc1", True), ("1.0+build", True)]
)
def test_versions_are_compared_as_numbers(database: Database, own: str, allowed: bool) -> None:
    """0.9 is older than 0.10."""
    prepare(database, "UPDATE app.release SET min_app_version = '0.10.0'")
    assert (refusal(database.engine(Role.RELAY), Role.RELAY, version=own) == []) is allowed


def test_a_newer_database_is_no_reason(database: Database) -> None:
    """Versions expand first: after a rollback of the program it starts on what the newer one migrated."""
    prepare(database, "UPDATE app.alembic_version SET version_num = '9999'")
    assert refusal(database.engine(Role.RELAY), Role.RELAY) == []


def test_only_whoever_owns_the_database_can_let_its_clock_be_moved(scratch: Database) -> None:
    """What a session sets for itself is no marker."""
    scratch.move_clock(60)
    options = {"options": "-c baton.test_database=on"}
    session = create_engine(scratch.url(Role.RELAY), poolclass=NullPool, connect_args=options)
    assert any("app.clock() was replaced" in fault for fault in refusal(session, Role.RELAY))
    prepare(scratch, f"ALTER DATABASE {scratch.name} SET baton.test_database = 'on'")
    assert refusal(scratch.engine(Role.RELAY), Role.RELAY) == []


def test_a_database_that_was_never_migrated_is_refused(bare: Database, looked_at: Database) -> None:
    """And it is said what to run."""
    (fault,) = refusal(bare.engine(Role.RELAY), Role.RELAY)
    assert "run 'baton migrate'" in fault
    assert selfcheck.revision(bare.engine(Role.RELAY)) is None
    assert selfcheck.revision(looked_at.engine(Role.RELAY)) == head()


def test_a_process_that_comes_first_waits_for_the_migration(empty_database: Database) -> None:
    """It goes on as soon as the version is there; meanwhile its metrics say what it waits for."""
    waiting, stop = empty_database.engine(Role.RELAY), threading.Event()
    with instruments.isolated(), ThreadPoolExecutor(1) as pool:
        waited = pool.submit(selfcheck.wait_for_revision, waiting, stop=stop, every=0.02)
        try:
            wait_until(lambda: instruments.reading("pramaan_database_migration_pending") == 1, what="the first look")
            assert not waited.done()
            migrate(empty_database.url("postgres"))
            assert waited.result(timeout=20)
            assert instruments.reading("pramaan_database_migration_pending") == 0
        finally:
            stop.set()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql+psycopg://nobody@127.0.0.1:1/nothing", "the database does not answer: connection failed"),
        (None, "at version None, this program needs"),
    ],
)
def test_what_is_waited_for_is_said_once(
    empty_database: Database, caplog: pytest.LogCaptureFixture, url: str | None, words: str
) -> None:
    """Whoever reads the log of a pod that is not ready sees why, and not once a second."""
    stop, looks = threading.Event(), []
    waiting = create_engine(url or empty_database.url(Role.RELAY), poolclass=NullPool)
    event.listen(waiting, "do_connect", lambda *_: looks.append(1))
    with caplog.at_level(logging.WARNING, selfcheck.__name__), ThreadPoolExecutor(1) as pool:
        waited = pool.submit(selfcheck.wait_for_revision, waiting, stop=stop, every=0.02)
        try:
            wait_until(lambda: len(looks) > 3, what="several looks")
        finally:
            stop.set()
        assert waited.result(timeout=20) is False
    (line,) = [each for each in caplog.records if each.name == selfcheck.__name__]
    assert words in str(vars(line)[fields.KEY]["detail"])


def test_waiting_ends_when_it_is_told_to(empty_database: Database) -> None:
    """A pod that is deleted while it waits goes at once."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waited = pool.submit(selfcheck.wait_for_revision, empty_database.engine(Role.RELAY), stop=stop, every=60)
        stop.set()
        assert waited.result(timeout=5) is False
