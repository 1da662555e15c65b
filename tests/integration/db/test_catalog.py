"""The rules that every table keeps, read from the catalogs of a migrated database; on either version."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, text

from baton.db import access, routines
from baton.db.access import FIRM_SCOPED, MATRIX, Role
from integration.db.conftest import run
from support import catalogs
from support.databases import Database


@pytest.fixture(scope="module")
def catalog(looked_at: Database) -> Iterator[Connection]:
    """What is looked at here."""
    with looked_at.preparer.connect() as connection:
        yield connection


@pytest.fixture
def damaged(looked_at: Database) -> Iterator[Connection]:
    """A transaction in which anything may be damaged; it is undone."""
    with looked_at.preparer.connect() as connection:
        yield connection
        connection.rollback()


def test_the_registry_names_every_table_of_a_firm(catalog: Connection) -> None:
    """A new table with a firm's rows cannot be forgotten."""
    assert catalogs.firm_tables(catalog) == set(FIRM_SCOPED)


def test_row_level_security_is_forced_on_all_of_them(catalog: Connection) -> None:
    """For the owner too."""
    assert catalogs.unforced(catalog) == []


def test_policies_name_exactly_the_roles_that_have_rights(catalog: Connection) -> None:
    """One policy each, and none for the role that is to see nothing."""
    assert catalogs.policies(catalog) == {
        (table, name, tuple(sorted(role.value for role in roles)))
        for table in FIRM_SCOPED
        for name, (roles, _) in access.policies(table).items()
    }
    for role, granted in MATRIX.items():
        for table in set(granted) & set(FIRM_SCOPED):
            matching = [name for name, (roles, _) in access.policies(table).items() if role in roles]
            assert len(matching) == (0 if role is Role.SUPPORT else 1), (role, table)


def test_no_role_matches_two_policies(catalog: Connection) -> None:
    """They are OR'ed, and the OR costs the index."""
    assert catalogs.matched_twice(catalog) == []


def test_a_firms_rows_point_at_the_same_firms(catalog: Connection) -> None:
    """Foreign keys ignore row-level security."""
    assert catalogs.firmless_foreign_keys(catalog) == []


def test_no_unique_key_tells_one_firm_what_another_has(catalog: Connection) -> None:
    """A violation is an answer."""
    assert catalogs.firmless_unique_keys(catalog) == []


def test_rights_are_those_of_the_matrix_and_no_more(catalog: Connection) -> None:
    """Columns too; nothing for the public, nowhere TRUNCATE, and DELETE only where it is documented."""
    assert catalogs.grants(catalog) == catalogs.documented_grants()
    assert catalogs.tables(catalog) >= {table for granted in MATRIX.values() for table in granted}


@pytest.mark.parametrize("right", ["DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "UPDATE"])
def test_nobody_may_remove_tickets_or_rewrite_them_whole(catalog: Connection, right: str) -> None:
    """Columns are granted, one by one."""
    holders = catalog.execute(
        text(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'baton%' AND rolname <> 'baton_owner'"
            " AND has_table_privilege(oid, 'ops.document_ingest_outbox', :right)"
        ),
        {"right": right},
    )
    assert holders.scalars().all() == []


def test_only_the_relay_moves_dispatched_at(catalog: Connection) -> None:
    """By right; that it moves from NULL only is the trigger's."""
    holders = catalog.execute(
        text(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'baton%' AND rolname <> 'baton_owner'"
            " AND has_column_privilege(oid, 'ops.document_ingest_outbox', 'dispatched_at', 'UPDATE')"
        )
    )
    assert holders.scalars().all() == ["baton_relay"]


def test_functions_are_pinned_and_not_the_publics(catalog: Connection) -> None:
    """A definer's function with a caller's search_path would run the caller's code."""
    assert catalogs.loose_functions(catalog) == []


def test_no_view_shows_what_its_owner_sees(catalog: Connection) -> None:
    """``security_invoker`` or none."""
    assert catalogs.definer_views(catalog) == []


def test_closed_sets_are_text(catalog: Connection) -> None:
    """With a CHECK."""
    assert catalogs.enums(catalog) == []


def test_everything_is_the_owners(catalog: Connection) -> None:
    """Nothing is left with whoever happened to migrate."""
    assert catalogs.not_the_owners(catalog) == []


def test_no_login_is_more_than_a_login(catalog: Connection) -> None:
    """No superuser, no bypass, no creator of roles or databases, among all of Baton's roles."""
    powers = "rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication"
    found = catalog.execute(text(f"SELECT rolname FROM pg_roles WHERE rolname LIKE 'baton%' AND ({powers})"))
    assert found.scalars().all() == []
    logins = catalog.execute(text("SELECT rolname FROM pg_roles WHERE rolname LIKE 'baton%' AND rolcanlogin"))
    assert set(logins.scalars()) == {role.value for role in access.LOGIN}


def test_each_login_has_its_time_outs(catalog: Connection) -> None:
    """Settings of the role hold behind a pooler too."""
    found = catalog.execute(
        text(
            "SELECT r.rolname, s.setconfig FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole"
            " WHERE s.setdatabase = 0 AND r.rolname LIKE 'baton%'"
        )
    )
    settings = {role: set(config) for role, config in found}
    for role, wanted in access.ROLE_SETTINGS.items():
        assert settings[role] == {f"{name}={value}" for name, value in wanted.items()}


DAMAGE: dict[str, tuple[str, Callable[[Connection], bool]]] = {
    "a table of a firm that nobody registered": (
        "CREATE TABLE ops.forgotten (firm_id uuid)",
        lambda c: not (catalogs.firm_tables(c) - set(FIRM_SCOPED)) and not catalogs.unforced(c),
    ),
    "not forced": (
        "ALTER TABLE record.assertion NO FORCE ROW LEVEL SECURITY",
        lambda c: not catalogs.unforced(c),
    ),
    "a second policy": (
        "CREATE POLICY more ON documents TO baton_relay, baton_registrar USING (false)",
        lambda c: not catalogs.matched_twice(c),
    ),
    "a policy for everybody": (
        "CREATE POLICY more ON documents USING (true)",
        lambda c: not catalogs.matched_twice(c),
    ),
    "a second policy by membership": (
        "GRANT baton_member TO baton_relay",
        lambda c: not catalogs.matched_twice(c),
    ),
    "a foreign key without the firm": (
        "ALTER TABLE inbox.item ADD FOREIGN KEY (document_id) REFERENCES documents (id)",
        lambda c: not catalogs.firmless_foreign_keys(c),
    ),
    "a foreign key that crosses columns": (
        "ALTER TABLE inbox.item ADD FOREIGN KEY (document_id, firm_id) REFERENCES documents (firm_id, id)",
        lambda c: not catalogs.firmless_foreign_keys(c),
    ),
    "a unique key without the firm": (
        "CREATE UNIQUE INDEX ON documents (checksum_sha256)",
        lambda c: not catalogs.firmless_unique_keys(c),
    ),
    "a right more": (
        "GRANT UPDATE (name) ON documents TO baton_registrar",
        lambda c: catalogs.grants(c) == catalogs.documented_grants(),
    ),
    "a right for the public": (
        "GRANT SELECT ON app.release TO PUBLIC",
        lambda c: catalogs.grants(c) == catalogs.documented_grants(),
    ),
    "a right less": (
        "REVOKE INSERT ON ops.audit_event FROM baton_extractor",
        lambda c: catalogs.grants(c) == catalogs.documented_grants(),
    ),
    "a definer's function with the caller's path": (
        "ALTER FUNCTION app.guard_document() RESET search_path",
        lambda c: not catalogs.loose_functions(c),
    ),
    "a function of the public's": (
        "GRANT EXECUTE ON FUNCTION app.search(text, integer) TO PUBLIC",
        lambda c: not catalogs.loose_functions(c),
    ),
    "a definer's view": (
        "CREATE VIEW ops.seen AS SELECT * FROM documents",
        lambda c: not catalogs.definer_views(c),
    ),
    "an enum": ("CREATE TYPE ops.state AS ENUM ('a')", lambda c: not catalogs.enums(c)),
    "somebody else's table": ("CREATE TABLE ops.mine (id int)", lambda c: not catalogs.not_the_owners(c)),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_rule_sees_what_breaks_it(damaged: Connection, name: str) -> None:
    """A check that finds nothing anywhere would prove nothing."""
    damage, holds = DAMAGE[name]
    assert holds(damaged)
    run(damaged, damage)
    assert not holds(damaged)


def test_a_migrated_database_is_the_declared_one(looked_at: Database, declared: Database) -> None:
    """Column by column, down to grants, policies and the text of functions."""
    with looked_at.preparer.connect() as one, declared.preparer.connect() as other:
        migrated, made = catalogs.shape(one), catalogs.shape(other)
        assert catalogs.grants(one) == catalogs.grants(other)
    assert {name: migrated[name] for name in migrated if migrated[name] != made.get(name)} == {}
    assert set(migrated) == set(made)
    kinds = {name.partition(" ")[0] for name in migrated}
    assert kinds == {"column", "table", "constraint", "index", "trigger", "function", "policy", "schema"}


def test_the_seed_rows_are_there(looked_at: Database, declared: Database) -> None:
    """The guard in front of paid runs, and the release."""
    for database in (looked_at, declared):
        with database.preparer.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM ops.dispatch_guard")).scalar_one() == 1
            assert connection.execute(text("SELECT min_app_version FROM app.release")).scalar_one() == "0.1.0"


@pytest.mark.parametrize(
    ("function", "rendered"),
    [
        ("guard_document", routines.DOCUMENT_GUARD),
        ("guard_document_insert", routines.DOCUMENT_INITIAL),
        ("guard_run", routines.RUN_GUARD),
        ("guard_part", routines.PART_GUARD),
        ("guard_ticket", routines.TICKET_GUARD),
        ("refuse_rewrite", routines.APPEND_ONLY),
    ],
)
def test_the_guards_in_the_database_are_rendered_from_the_edges(
    catalog: Connection, function: str, rendered: str
) -> None:
    """Word for word."""
    body = catalog.execute(text("SELECT prosrc FROM pg_proc WHERE proname = :name"), {"name": function}).scalar_one()
    assert body.strip() in rendered
