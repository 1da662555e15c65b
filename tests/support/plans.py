"""What a statement touches: its plan and its buffers, as a workload's role and under a generic plan."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy import ClauseElement, Dialect, Executable
from sqlalchemy.dialects.postgresql import psycopg as dialect
from sqlalchemy.sql.compiler import SQLCompiler

from support.databases import Database

_DIALECT: Dialect = dialect.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Plan:
    """One execution."""

    buffers: int
    """Shared ones, found or read."""
    rows: int
    milliseconds: float
    planning: float
    """Milliseconds."""
    text: str
    """The whole plan as JSON."""

    def __add__(self, other: "Plan") -> "Plan":
        """Both, one after the other."""
        return Plan(
            self.buffers + other.buffers,
            self.rows + other.rows,
            self.milliseconds + other.milliseconds,
            self.planning + other.planning,
            f"{self.text}\n{other.text}",
        )


def explain(
    database: Database, role: str, statement: Executable, values: Mapping[str, Any], *, generic: bool = True
) -> Plan:
    """Carry out a statement, the second time of two.

    :param generic: with a plan that does not know the values; otherwise planned for them, as behind a pooler.
    """
    assert isinstance(statement, ClauseElement)
    compiled = cast("SQLCompiler", statement.compile(dialect=_DIALECT))
    text = str(compiled)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    given = {**compiled.params, **values}
    types = [compiled.binds[name].type.compile(dialect=_DIALECT) for name in names]
    with psycopg.connect(database.direct_url(role).replace("+psycopg", "")) as session:
        session.execute(f"SET plan_cache_mode = force_{'generic' if generic else 'custom'}_plan".encode())
        for number, name in enumerate(names, start=1):
            text = text.replace(f"%({name})s", f"${number}")
        declared = f"({', '.join(types)})" if types else ""
        session.execute(f"PREPARE asked {declared} AS {text.replace('%%', '%')}".encode())
        literals = sql.SQL(", ").join(sql.Literal(given[name]) for name in names)
        arguments = sql.SQL("({})").format(literals) if names else sql.SQL("")
        asked = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked{}").format(arguments)
        session.execute(asked)
        row = session.execute(asked).fetchone()
    assert row is not None
    root = row[0][0]["Plan"]
    return Plan(
        buffers=int(root["Shared Hit Blocks"]) + int(root["Shared Read Blocks"]),
        rows=int(root["Actual Rows"]),
        milliseconds=float(row[0][0]["Execution Time"]),
        planning=float(row[0][0]["Planning Time"]),
        text=json.dumps(root),
    )
