"""Renders the whole declared database as statements, in order.

A migration never calls this: it is frozen text. A test builds one database from here and one by
migrating, and compares their catalogs.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from baton.db import access, routines
from baton.db.access import Role
from baton.db.tables import metadata

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def roles() -> Iterator[str]:
    """Roles, memberships and settings, each statement safe to repeat and to race.

    Roles belong to the whole cluster: two databases may be set up at the same time.
    """
    for role in Role:
        login = "LOGIN" if role in access.LOGIN else "NOLOGIN"
        inherit = "NOINHERIT" if role in access.NOINHERIT else "INHERIT"
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN "
            f"CREATE ROLE {role} {login} {inherit} NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE; END IF; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
    memberships = [(Role.STAFF, role) for role in access.STAFF_MEMBERS]
    memberships += [(Role.MEMBER, Role.MEMBER_APP), (Role.SEARCH, Role.OWNER)]
    # The door keeps the registrar from *having* a member's rights while it may still *become* one, on 15 as on 16+.
    memberships += [(Role.MEMBER, Role.MEMBER_DOOR), (Role.MEMBER_DOOR, Role.REGISTRAR)]
    for group, member in memberships:
        yield (
            "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = "
            f"'{group}'::regrole AND m.member = '{member}'::regrole) THEN GRANT {group} TO {member}; END IF; "
            "EXCEPTION WHEN unique_violation THEN NULL; END $$"
        )
    # Whose transaction holds everybody up is otherwise a superuser's to see. A managed server may refuse: doctor says so.
    yield (
        f"DO $$ BEGIN GRANT pg_read_all_stats TO {Role.OBSERVER}; "
        "EXCEPTION WHEN insufficient_privilege OR unique_violation THEN NULL; END $$"
    )
    for role, settings in access.ROLE_SETTINGS.items():
        for name, value in settings.items():
            wanted = f"{name}={value}".replace("'", "''")
            yield (
                "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_db_role_setting WHERE setdatabase = 0 AND setrole = "
                f"'{role}'::regrole AND '{wanted}' = ANY (setconfig)) THEN "
                f"ALTER ROLE {role} SET {name} = {_setting(name, value)}; END IF; END $$"
            )


def _setting(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"


def structure() -> Iterator[str]:
    """Schemas, functions, tables, indexes, triggers; to be run as the owner, with ``app`` there already."""
    for schema in access.SCHEMAS:
        if schema not in ("public", "app"):
            yield f"CREATE SCHEMA {schema}"
    functions = list(routines.FUNCTIONS)
    before = (routines.CLOCK, routines.FIRM_ID, routines.IS_STAFF)
    yield from before
    for table in metadata.sorted_tables:
        yield from _table(table)
    yield from (function for function in functions if function not in before)
    yield from routines.TRIGGERS


def _table(table: Table) -> Iterator[str]:
    yield str(CreateTable(table).compile(dialect=_DIALECT)).strip()
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield str(CreateIndex(index).compile(dialect=_DIALECT))


def additions(names: tuple[str, ...]) -> Iterator[str]:
    """Tables with their indexes and grants, for a version that adds them; ``names`` with their schema."""
    for name in names:
        yield from _table(metadata.tables[name])
    for role, tables in access.MATRIX.items():
        for name in names:
            if name in tables:
                yield f"GRANT {', '.join(access.grants(role, name))} ON {name} TO {role}"


def security() -> Iterator[str]:
    """Row-level security, policies and grants; to be run as the owner."""
    for table in access.FIRM_SCOPED:
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        for name, (named, condition) in access.policies(table).items():
            yield (
                f"CREATE POLICY {name} ON {table} TO {', '.join(named)} USING ({condition}) WITH CHECK ({condition})"
            )
    for role, tables in access.MATRIX.items():
        for table in tables:
            yield f"GRANT {', '.join(access.grants(role, table))} ON {table} TO {role}"
    everyone = ", ".join((*access.LOGIN, Role.MEMBER, Role.SEARCH))
    for schema in access.SCHEMAS:
        yield f"GRANT USAGE ON SCHEMA {schema} TO {everyone}"
    yield "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC"
    yield f"GRANT EXECUTE ON FUNCTION app.clock(), app.firm_id(), app.is_staff_or_false() TO {everyone}"
    yield f"GRANT EXECUTE ON FUNCTION app.search(text, integer) TO {Role.MEMBER}"
    # a new owner must be allowed to create in the schema, at that moment only
    yield f"GRANT CREATE ON SCHEMA app TO {Role.SEARCH}"
    yield f"ALTER FUNCTION app.search(text, integer) OWNER TO {Role.SEARCH}"
    yield f"REVOKE CREATE ON SCHEMA app FROM {Role.SEARCH}"


def seed() -> Iterator[str]:
    """Rows that a new database begins with."""
    yield "INSERT INTO ops.dispatch_guard DEFAULT VALUES"
    yield "INSERT INTO app.release (min_app_version) VALUES ('0.1.0')"


def database() -> Iterator[str]:
    """What an administrator prepares in a database before the owner can work in it; safe to repeat."""
    # Whoever created the owner is on 16 and newer a member that may grant it, and may not become it: 'SET' asks for that.
    yield (
        "DO $$ BEGIN IF NOT pg_has_role(current_user, "
        f"'{Role.OWNER}', CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) "
        f"THEN EXECUTE format('GRANT {Role.OWNER} TO %I', current_user); END IF; END $$"
    )
    yield f"DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {Role.OWNER}', current_database()); END $$"
    yield f"GRANT CREATE, USAGE ON SCHEMA public TO {Role.OWNER}"
    yield "CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public"
    yield f"CREATE SCHEMA IF NOT EXISTS app AUTHORIZATION {Role.OWNER}"


def whole() -> Iterator[str]:
    """Everything that is run as the owner, for an empty database."""
    yield from structure()
    yield from security()
    yield from seed()
