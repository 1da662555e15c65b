"""What a process asks before it begins: is this the database, and the role, that it was built for?

Refused: a superuser or a role that bypasses row-level security or may become such a one (policies would not apply), a
role that is not the workload's own or is more than that, a missing policy (rows would be invisible without an error) or
grant, a guard that is off, a database older than the program, a database that no longer allows a program this old, a replaced clock.

Only catalogs are asked, which everybody may read: a role without any right still gets an answer.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from sqlalchemy import BindParameter, Connection, Engine, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import Text

from baton.db import access
from baton.db.access import Role
from baton.db.errors import StartupRefusal
from baton.db.revisions import MINIMUM_SERVER, head
from baton.db.routines import CLOCK_BODY, GUARDED
from baton.telemetry import fields, metrics

_log = logging.getLogger(__name__)

#: Seconds between two lines about one and the same wait.
_SAY_AGAIN = 60.0

_ROLE = text("SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
_POWERS = text(
    "SELECT rolname FROM pg_roles WHERE (rolsuper OR rolbypassrls) AND rolname <> current_user"
    " AND pg_has_role(current_user, oid, 'MEMBER') ORDER BY 1"
)
_HOLDS = text("SELECT pg_has_role(current_user, oid, 'USAGE') FROM pg_roles WHERE rolname = :role")
#: 'SET' is of 16 and newer, where membership alone no longer allows to become the other.
_BECOMES = text(
    "SELECT pg_has_role(current_user, oid, CASE WHEN current_setting('server_version_num')::int >= 160000"
    " THEN 'SET' ELSE 'MEMBER' END) FROM pg_roles WHERE rolname = :role"
)
_MIGRATED = text(
    "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'app' AND c.relname = 'alembic_version')"
)
_READABLE = text(
    "SELECT has_schema_privilege(n.oid, 'USAGE') AND bool_and(has_table_privilege(c.oid, 'SELECT'))"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'app' AND c.relname IN ('alembic_version', 'release') GROUP BY n.oid"
)


def _texts(*names: str) -> list[BindParameter[Any]]:
    return [bindparam(name, type_=ARRAY(Text)) for name in names]


_SCHEMAS = text(
    "SELECT w.name FROM unnest(:schemas) AS w (name) LEFT JOIN pg_namespace n ON n.nspname = w.name"
    " WHERE coalesce(has_schema_privilege(n.oid, 'USAGE'), false) IS FALSE ORDER BY 1"
).bindparams(*_texts("schemas"))
_PRIVILEGES = text(
    "SELECT w.place, w.privilege FROM unnest(:places, :schemas, :names, :privileges)"
    " WITH ORDINALITY AS w (place, schema, name, privilege, position)"
    " LEFT JOIN pg_class c ON c.relname = w.name AND c.relnamespace ="
    " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = w.schema)"
    " WHERE coalesce(has_table_privilege(c.oid, w.privilege), false) IS FALSE ORDER BY w.position"
).bindparams(*_texts("places", "schemas", "names", "privileges"))
_COLUMNS = text(
    "SELECT w.place, w.updated FROM unnest(:places, :schemas, :names, :columns)"
    " WITH ORDINALITY AS w (place, schema, name, updated, position)"
    " LEFT JOIN pg_class c ON c.relname = w.name AND c.relnamespace ="
    " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = w.schema)"
    " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = w.updated"
    " WHERE coalesce(has_column_privilege(c.oid, a.attnum, 'UPDATE'), false) IS FALSE ORDER BY w.position"
).bindparams(*_texts("places", "schemas", "names", "columns"))
#: Membership counts as Postgres counts it when it applies policies: inherited rights, not the door to them.
_POLICIES = text(
    "SELECT w.place, coalesce(c.relrowsecurity AND c.relforcerowsecurity, false) AS forced,"
    " ARRAY(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive AND EXISTS"
    "   (SELECT FROM unnest(p.polroles) r WHERE r = 0 OR pg_has_role(current_user, r, 'USAGE')) ORDER BY 1) AS policies"
    " FROM unnest(:places, :schemas, :names) WITH ORDINALITY AS w (place, schema, name, position)"
    " LEFT JOIN pg_class c ON c.relname = w.name AND c.relnamespace ="
    " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = w.schema)"
    " ORDER BY w.position"
).bindparams(*_texts("places", "schemas", "names"))
_FUNCTIONS = text(
    "SELECT w.name FROM unnest(:names) AS w (name) LEFT JOIN pg_proc p ON p.proname = w.name AND p.pronamespace ="
    " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = 'app')"
    " WHERE coalesce(has_function_privilege(p.oid, 'EXECUTE'), false) IS FALSE ORDER BY 1"
).bindparams(*_texts("names"))
_UNGUARDED = text(
    "SELECT w.place, w.guard FROM unnest(:places, :schemas, :names, :guards)"
    " WITH ORDINALITY AS w (place, schema, name, guard, position)"
    " LEFT JOIN pg_class c ON c.relname = w.name AND c.relnamespace ="
    " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = w.schema)"
    " WHERE NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = w.guard"
    " AND t.tgenabled IN ('O', 'A')) ORDER BY w.position"
).bindparams(*_texts("places", "schemas", "names", "guards"))
_CLOCK = text(
    "SELECT prosrc FROM pg_proc WHERE proname = 'clock' AND pronamespace ="
    " (SELECT oid FROM pg_namespace WHERE nspname = 'app')"
)
#: A database for which a preparer has set this parameter (``ALTER DATABASE … SET``, its owner's right) may have a clock
#: that tests move. What a session or a role sets for itself does not count.
_TEST_DATABASE = text(
    "SELECT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
    " WHERE d.datname = current_database() AND s.setrole = 0 AND 'baton.test_database=on' = ANY (s.setconfig))"
)


def check(engine: Engine, *, role: Role, application_version: str | None = None) -> None:
    """Refuse to go on against a database that is not fit for ``role``.

    :param application_version: ``None`` means the installed one.
    :raises StartupRefusal: with one line per fault.
    """
    with engine.connect() as connection:
        faults = list(_faults(connection, role, application_version or version("baton")))
    if faults:
        raise StartupRefusal(faults)


def revision(engine: Engine) -> str | None:
    """The version of the database, or ``None`` where it was never migrated."""
    with engine.connect() as connection:
        return _revision(connection)


def wait_for_revision(engine: Engine, *, stop: threading.Event, every: float = 1.0) -> bool:
    """Wait until the database has the version that this program needs; ``False`` where ``stop`` was set before.

    What it waits for is logged at once, whenever it changes, and once a minute.
    """
    said, say_again = "", 0.0
    while not stop.is_set():
        try:
            found = revision(engine)
        except DBAPIError as error:
            awaited = f"the database does not answer: {_first_line(error)}"
        else:
            if found is not None and found >= head():
                metrics.MIGRATION_PENDING.set(0)
                return True
            metrics.MIGRATION_PENDING.set(1)
            awaited = f"the database is at version {found}, this program needs {head()}: run 'baton migrate'"
        if awaited != said or time.monotonic() >= say_again:
            _log.warning("waiting for the database", extra=fields.of(detail=awaited))
            said, say_again = awaited, time.monotonic() + _SAY_AGAIN
        stop.wait(every)
    return False


def _first_line(error: DBAPIError) -> str:
    """What the server or the connection said; asking for the version names no content that could be repeated here."""
    return next(iter(str(error.orig).strip().splitlines()), type(error.orig).__name__)


def _faults(connection: Connection, role: Role, own_version: str) -> Iterator[str]:
    server = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if server < MINIMUM_SERVER:
        yield f"Postgres {server // 10000} is too old: 15 or newer is needed"
    stranger = list(_wrong_login(connection, role))
    yield from stranger
    if not connection.execute(_MIGRATED).scalar_one():
        yield "the database was never migrated: run 'baton migrate'"
        return
    if not connection.execute(_READABLE).scalar_one():
        if not stranger:  # whoever is somebody else's role lacks this too, and it would say nothing new
            yield f"role {role} cannot read the version of the database: grant it SELECT on app.alembic_version and app.release"
        return
    found = _revision(connection)
    if found is None or found < head():
        yield f"the database is at version {found}, this program needs {head()}: run 'baton migrate'"
        return
    oldest = connection.execute(text("SELECT min_app_version FROM app.release")).scalar_one_or_none()
    if oldest is None:
        yield "app.release is empty: put the oldest version back that this database allows"
    elif _ordered(own_version) < _ordered(oldest):
        yield f"the database allows version {oldest} or newer, this is {own_version}: upgrade this program"
    if stranger:
        return
    yield from _missing_rights(connection, role)
    yield from _wrong_policies(connection, role)
    values = {**_named([table for table, _ in GUARDED]), "guards": [name for _, name in GUARDED]}
    for table, guard in connection.execute(_UNGUARDED, values):
        yield f"trigger {guard} of {table} is off or gone: anything could be written there"
    clock = connection.execute(_CLOCK).scalar_one_or_none() or ""
    if " ".join(clock.split()) != CLOCK_BODY and not connection.execute(_TEST_DATABASE).scalar_one():
        yield f"app.clock() was replaced, every deadline would be wrong: put back its body, {CLOCK_BODY}"


def _wrong_login(connection: Connection, role: Role) -> Iterator[str]:
    """Whose rights the session has, where it is not the workload's."""
    user, superuser, bypasses = connection.execute(_ROLE).one()
    if superuser:
        yield f"connected as the superuser {user}: row-level security would not apply; connect as {role}"
        return
    if bypasses:
        yield f"role {user} has BYPASSRLS: row-level security would not apply to it; connect as {role}"
    powers = connection.execute(_POWERS).scalars().all()
    if powers:
        yield f"role {user} may become {', '.join(powers)}, to which row-level security does not apply: revoke it"
    if not connection.execute(_HOLDS, {"role": role.value}).scalar_one_or_none():
        yield f"connected as {user}: this process works as {role}; connect as that"


def _missing_rights(connection: Connection, role: Role) -> Iterator[str]:
    """What the matrix gives to the role and the database does not."""
    matrix = access.MATRIX[Role.MEMBER if role is Role.MEMBER_APP else role]
    schemas = sorted({"app", *(_schema(table) for table in matrix)})
    missing = connection.execute(_SCHEMAS, {"schemas": schemas}).scalars().all()
    if missing:
        yield f"role {role} lacks USAGE on schema {', '.join(missing)}"
    wanted = [(table, name) for table, grant in matrix.items() for name in _privileges(grant)]
    columns = [(table, column) for table, grant in matrix.items() for column in grant.update]
    lacking: dict[str, list[str]] = defaultdict(list)
    for table, name in connection.execute(
        _PRIVILEGES, {**_named(table for table, _ in wanted), "privileges": [name for _, name in wanted]}
    ):
        lacking[table].append(name)
    updates: dict[str, list[str]] = defaultdict(list)
    for table, column in connection.execute(
        _COLUMNS, {**_named(table for table, _ in columns), "columns": [column for _, column in columns]}
    ):
        updates[table].append(column)
    for table, names in updates.items():
        lacking[table].append(f"UPDATE ({', '.join(names)})")
    for table in matrix:
        if table in lacking:
            yield f"role {role} lacks {', '.join(lacking[table])} on {table}"
    functions = ["clock", "firm_id", "is_staff_or_false", *(["search"] if role is Role.MEMBER_APP else [])]
    missing = connection.execute(_FUNCTIONS, {"names": functions}).scalars().all()
    if missing:
        yield f"role {role} lacks EXECUTE on {', '.join(f'app.{name}' for name in missing)}"
    if role is Role.REGISTRAR and not connection.execute(_BECOMES, {"role": Role.MEMBER.value}).scalar_one_or_none():
        yield f"role {role} may not become {Role.MEMBER}, which writes what it applies: grant it {Role.MEMBER_DOOR}"


def _wrong_policies(connection: Connection, role: Role) -> Iterator[str]:
    """Firm-scoped tables where row-level security is off, or shows the role nothing or too much."""
    matrix = access.MATRIX[Role.MEMBER if role is Role.MEMBER_APP else role]
    scoped = [table for table in matrix if table in access.FIRM_SCOPED]
    for table, forced, policies in connection.execute(_POLICIES, _named(scoped)):
        if not forced:
            yield f"row-level security is not forced on {table}"
        if role is Role.SUPPORT:
            if policies:
                yield f"role {role} must see no rows, and policy {', '.join(policies)} of {table} shows it some"
        elif not policies:
            yield f"no policy of {table} names {role}: its rows would be invisible, without an error"
        elif len(policies) > 1:
            yield f"role {role} matches {', '.join(policies)} of {table}, it would see what either shows: revoke one"


def _named(tables: Iterator[str] | list[str]) -> dict[str, list[str]]:
    places = list(tables)
    return {
        "places": places,
        "schemas": [_schema(place) for place in places],
        "names": [place.rpartition(".")[2] for place in places],
    }


def _schema(table: str) -> str:
    return table.rpartition(".")[0] or "public"


def _privileges(grant: access.Grant) -> Iterator[str]:
    for name, held in (("SELECT", grant.select), ("INSERT", grant.insert), ("DELETE", grant.delete)):
        if held:
            yield name


def _revision(connection: Connection) -> str | None:
    if not connection.execute(_MIGRATED).scalar_one():
        return None
    found = connection.execute(text("SELECT version_num FROM app.alembic_version")).scalar_one_or_none()
    return None if found is None else str(found)


def _ordered(written: str) -> tuple[int, ...]:
    """``1.10.2`` as numbers; what follows them (``rc1``, ``.dev0``) does not count."""
    return tuple(int(part) for part in re.findall(r"\d+", written.split("+", maxsplit=1)[0])[:3])
