"""Which tables each role really used, read from the server's own log of statements.

The log names the role that logged in. A transaction that became the firm's member (`SET LOCAL ROLE`) counts as the
member's until it ends or becomes itself again.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Engine, text

from baton.db import access
from baton.db.access import Role

_PREFIX = "@@%u|%c@@ "
_ENTRY = re.compile(
    r"^@@(?P<user>[^|]*)\|(?P<session>[^@]*)@@ LOG:  (?:statement|execute [^:]*): (?P<sql>.*)$", re.DOTALL
)
_TABLES = sorted(set(access.FIRM_SCOPED) | {table for grants in access.MATRIX.values() for table in grants})
_VERBS = ("insert", "update", "delete", "select")


def log_statements(engine: Engine) -> None:
    """Have the server log every statement from now on; `engine` is a superuser's."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"ALTER SYSTEM SET log_line_prefix = '{_PREFIX}'"))
        connection.execute(text("ALTER SYSTEM SET log_statement = 'all'"))
        connection.execute(text("SELECT pg_reload_conf()"))


@dataclass
class Used:
    """Per role, which verbs it used on which tables."""

    verbs: dict[str, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def tables(self, role: str, *verbs: str) -> set[str]:
        """The tables on which the role used one of the verbs (any, when none is named)."""
        wanted = set(verbs or _VERBS)
        return {table for table, used in self.verbs[role].items() if used & wanted}

    def beyond(self, role: str) -> list[str]:
        """What the role used and the documented matrix does not grant."""
        grants = access.MATRIX[Role(role)]
        return [
            f"{role}: {verb} {table}"
            for table, verbs in sorted(self.verbs[role].items())
            for verb in sorted(verbs)
            if table not in grants or not _granted(grants[table], verb)
        ]


def read_log(lines: Iterable[str]) -> Used:
    """Read a server's log."""
    used = Used()
    member: set[str] = set()
    for user, session, sql in _entries(lines):
        head = " ".join(sql.split()).upper()
        if head.startswith(f"SET LOCAL ROLE {Role.MEMBER}".upper()):
            member.add(session)
        elif head.startswith(("SET LOCAL ROLE NONE", "COMMIT", "ROLLBACK")):
            member.discard(session)
        role = Role.MEMBER.value if session in member or user == Role.MEMBER_APP else user
        for verb, table in _uses(sql):
            used.verbs[role][table].add(verb)
    return used


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    entry = ""
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            found = _ENTRY.match(entry)
            if found is not None:
                yield found["user"], found["session"], found["sql"]
            entry = line
        else:
            entry += line


def _uses(sql: str) -> Iterator[tuple[str, str]]:
    flat = re.sub(r"'(?:[^']|'')*'", "''", " ".join(sql.replace('"', "").split()))
    for table in _TABLES:
        name = rf"(?:public\.)?{re.escape(table)}(?![\w.])"
        if re.search(rf"\bINSERT INTO {name}", flat, re.IGNORECASE):
            yield "insert", table
        if re.search(rf"\bUPDATE (?:ONLY )?{name}", flat, re.IGNORECASE):
            yield "update", table
        if re.search(rf"\bDELETE FROM {name}", flat, re.IGNORECASE):
            yield "delete", table
        if re.search(rf"(?<!DELETE )\b(?:FROM|JOIN) {name}|\bFROM [^()]*, {name}", flat, re.IGNORECASE):
            yield "select", table


def _granted(grant: access.Grant, verb: str) -> bool:
    return {
        "select": grant.select,
        "insert": grant.insert,
        "update": bool(grant.update),
        "delete": grant.delete,
    }[verb]
