"""Roles, grants and policies against the documented matrix, and the versions of database and program.

Every role is looked at, not only the one that is connected: the catalog may be asked about anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Final, TypeAlias

from sqlalchemy import Connection, text

from baton.db import access
from baton.db.access import Grant, Role
from baton.db.revisions import MINIMUM_SERVER, head
from baton.db.routines import CLOCK_BODY
from baton.reconcilers.doctor.findings import Finding, fault, listed, ok, or_ok, warning

_MIGRATE: Final = "run 'baton migrate' as an administrator"

_ROLES: Final = text("SELECT rolname, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = ANY(:names)")
_TABLES: Final = text("""
SELECT asked.role, asked.tab, asked.privilege
FROM unnest(CAST(:roles AS text[]), CAST(:tables AS text[]), CAST(:privileges AS text[])) AS asked(role, tab, privilege)
WHERE to_regclass(asked.tab) IS NULL
   OR has_table_privilege(CAST(asked.role AS name), to_regclass(asked.tab), asked.privilege) <> :held
""")
_COLUMNS: Final = text("""
SELECT asked.role, asked.tab, asked.col
FROM unnest(CAST(:roles AS text[]), CAST(:tables AS text[]), CAST(:columns AS text[])) AS asked(role, tab, col)
WHERE to_regclass(asked.tab) IS NOT NULL
  AND NOT has_column_privilege(CAST(asked.role AS name), to_regclass(asked.tab), asked.col, 'UPDATE')
""")
_FURTHER: Final = text("""
SELECT asked.role, asked.tab, asked.privilege, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM unnest(CAST(:roles AS text[]), CAST(:tables AS text[]), CAST(:privileges AS text[])) AS asked(role, tab, privilege)
JOIN pg_attribute a ON a.attrelid = to_regclass(asked.tab) AND a.attnum > 0 AND NOT a.attisdropped
WHERE has_column_privilege(CAST(asked.role AS name), a.attrelid, a.attnum, asked.privilege)
  AND NOT has_table_privilege(CAST(asked.role AS name), a.attrelid, asked.privilege)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
""")
_UNFORCED: Final = text("""
SELECT named.tab FROM unnest(CAST(:tables AS text[])) AS named(tab)
LEFT JOIN pg_class c ON c.oid = to_regclass(named.tab)
WHERE NOT coalesce(c.relrowsecurity AND c.relforcerowsecurity, false)
""")
_POLICIES: Final = text("""
SELECT named.tab, p.polname, ARRAY(SELECT CASE r WHEN 0 THEN 'public' ELSE pg_get_userbyid(r)::text END
                                   FROM unnest(p.polroles) r ORDER BY 1) AS roles
FROM unnest(CAST(:tables AS text[])) AS named(tab) JOIN pg_policy p ON p.polrelid = to_regclass(named.tab)
""")
_MIGRATED: Final = text("SELECT to_regclass('app.alembic_version') IS NOT NULL")
_CLOCK: Final = text("SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('app.clock()')")
#: As the self-check of every process decides it.
_TEST_DATABASE: Final = text(
    "SELECT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
    " WHERE d.datname = current_database() AND s.setrole = 0 AND 'baton.test_database=on' = ANY (s.setconfig))"
)

#: Role, table, and a privilege or a column.
_Asked: TypeAlias = tuple[str, str, str]
#: What a table privilege can be. To update is granted by columns alone, which are asked one by one.
_PRIVILEGES: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
#: What may be granted by columns.
_BY_COLUMN: Final = ("SELECT", "INSERT", "UPDATE")


def versions(connection: Connection) -> Iterator[Finding]:
    """Server, database and program fit each other, and the clock is the database's own."""
    server = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if server < MINIMUM_SERVER:
        yield fault("version", f"Postgres {server // 10000} is too old", todo="upgrade the server to 15 or newer")
    if not connection.execute(_MIGRATED).scalar_one():
        yield fault("version", "the database was never migrated", todo=_MIGRATE)
        return
    at = str(connection.execute(text("SELECT version_num FROM app.alembic_version")).scalar_one())
    if at < head():
        yield fault("version", f"the database is at version {at}, this program needs {head()}", todo=_MIGRATE)
    elif at > head():
        oldest = str(connection.execute(text("SELECT min_app_version FROM app.release")).scalar_one())
        yield warning(
            "version",
            f"the database is at version {at}, newer than this program's {head()}; it allows {oldest} or newer",
            todo="upgrade this program when the others are",
        )
    else:
        yield ok("version", f"Postgres {server // 10000}, database version {at}, program {version('baton')}")
    source = " ".join(str(connection.execute(_CLOCK).scalar_one()).split())
    if source != CLOCK_BODY and not connection.execute(_TEST_DATABASE).scalar_one():
        yield fault(
            "clock",
            "app.clock() was replaced: every deadline is wrong",
            todo=f"CREATE OR REPLACE FUNCTION app.clock() … AS $$ {CLOCK_BODY} $$, as its owner",
        )


def roles(connection: Connection) -> tuple[Finding, ...]:
    """Every role is there, bound by row-level security, and has the documented rights and no more."""
    found = list(_roles(connection))
    existing = {row.rolname for row in connection.execute(_ROLES, {"names": [role.value for role in Role]})}
    found += _grants(connection, existing)
    return or_ok(found, "roles", f"{len(existing)} roles with the documented rights and no more")


def policies(connection: Connection) -> tuple[Finding, ...]:
    """Row-level security is forced on every firm's table, with the documented policies and no others."""
    tables = list(access.FIRM_SCOPED)
    unforced = list(connection.scalars(_UNFORCED, {"tables": tables}))
    found = []
    if unforced:
        found.append(
            fault(
                "policies",
                f"row-level security is not forced on {listed(unforced)}: firms may see each other's rows",
                todo="ALTER TABLE … ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, as the owner",
            )
        )
    there = {(row.tab, row.polname): list(row.roles) for row in connection.execute(_POLICIES, {"tables": tables})}
    wanted = {
        (table, name): sorted(role.value for role in named)
        for table in tables
        for name, (named, _condition) in access.policies(table).items()
    }
    for table, name in sorted(wanted.keys() - there.keys()):
        found.append(
            fault(
                "policies",
                f"policy {name} of {table} is missing: its roles see no rows, and no error says so",
                todo=f"create it again as version 0001 does, for {', '.join(wanted[table, name])}",
            )
        )
    for table, name in sorted(there.keys() - wanted.keys()):
        found.append(
            fault(
                "policies",
                f"policy {name} of {table} is none of Baton's: policies add up, so it shows more than it should",
                todo=f"DROP POLICY {name} ON {table}, as the owner",
            )
        )
    for table, name in sorted(there.keys() & wanted.keys()):
        if sorted(there[table, name]) != wanted[table, name]:
            found.append(
                fault(
                    "policies",
                    f"policy {name} of {table} is for {', '.join(there[table, name])}",
                    todo=f"ALTER POLICY {name} ON {table} TO {', '.join(wanted[table, name])}",
                )
            )
    return or_ok(found, "policies", f"row-level security forced on {len(tables)} tables, {len(wanted)} policies")


def _roles(connection: Connection) -> Iterator[Finding]:
    there = {row.rolname: row for row in connection.execute(_ROLES, {"names": [role.value for role in Role]})}
    missing = [role.value for role in Role if role.value not in there]
    if missing:
        yield fault("roles", f"missing: {listed(missing)}", todo=_MIGRATE)
    for name, row in there.items():
        if row.rolsuper or row.rolbypassrls:
            power = "a superuser" if row.rolsuper else "free of row-level security"
            yield fault("roles", f"{name} is {power}", todo=f"ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS")
        if row.rolcanlogin and Role(name) not in access.LOGIN:
            yield warning("roles", f"{name} may log in and should not", todo=f"ALTER ROLE {name} NOLOGIN")


def _grants(connection: Connection, existing: set[str]) -> Iterator[Finding]:
    held: list[_Asked] = []
    not_held: list[_Asked] = []
    columns: list[_Asked] = []
    for role in Role:
        # the member's door has a member's rights by becoming one, and the owner's are not granted
        granted = access.MATRIX.get(Role.MEMBER if role is Role.MEMBER_APP else role)
        if role.value not in existing or granted is None:
            continue
        for table in _every_table():
            grant = granted.get(table)
            for privilege in _PRIVILEGES:
                (held if _has(grant, privilege) else not_held).append((role.value, table, privilege))
            columns += [(role.value, table, column) for column in (grant.update if grant else ())]
    missing = [
        f"{privilege} on {table} for {role}" for role, table, privilege in _differing(connection, held, should=True)
    ]
    asked = {"roles": _of(columns, 0), "tables": _of(columns, 1), "columns": _of(columns, 2)}
    missing += [f"UPDATE ({row.col}) on {row.tab} for {row.role}" for row in connection.execute(_COLUMNS, asked)]
    if missing:
        yield fault("roles", f"missing rights: {listed(missing)}", todo="GRANT them again, as the owner")
    extra = [
        f"{privilege} on {table} for {role}"
        for role, table, privilege in _differing(connection, not_held, should=False)
    ]
    extra += _further(connection, [each for each in not_held if each[2] in _BY_COLUMN], granted=set(columns))
    if extra:
        yield fault("roles", f"more rights than documented: {listed(extra)}", todo="REVOKE them, as the owner")


def _every_table() -> tuple[str, ...]:
    return tuple(dict.fromkeys(table for tables in access.MATRIX.values() for table in tables))


def _has(grant: Grant | None, privilege: str) -> bool:
    if grant is None:
        return False
    return {"SELECT": grant.select, "INSERT": grant.insert, "DELETE": grant.delete}.get(privilege, False)


def _differing(connection: Connection, asked: list[_Asked], *, should: bool) -> list[_Asked]:
    values = {"roles": _of(asked, 0), "tables": _of(asked, 1), "privileges": _of(asked, 2), "held": should}
    return [(row.role, row.tab, row.privilege) for row in connection.execute(_TABLES, values)]


def _further(connection: Connection, asked: list[_Asked], *, granted: set[_Asked]) -> Iterator[str]:
    """Columns that may be used in a way in which their table may not, besides those whose update is granted."""
    values = {"roles": _of(asked, 0), "tables": _of(asked, 1), "privileges": _of(asked, 2)}
    for row in connection.execute(_FURTHER, values):
        known = {column for role, table, column in granted if (role, table, "UPDATE") == tuple(row)[:3]}
        more = [column for column in row.columns if column not in known]
        if more:
            yield f"{row.privilege} ({', '.join(more)}) on {row.tab} for {row.role}"


def _of(rows: list[_Asked], column: int) -> list[str]:
    return [row[column] for row in rows]
