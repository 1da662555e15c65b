"""Sessions that hold everybody up: long transactions, old snapshots, forgotten prepared ones, replication slots.

An old snapshot keeps every dead row of the outbox in the way of the relays' claims; its session is named by process id.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, text

from baton.reconcilers.doctor.findings import Finding, fault, or_ok, unknown, warning

#: A transaction of Baton's ends within seconds; a report or a dump may take minutes.
WARN_AFTER: Final = timedelta(minutes=1)
FAULT_AFTER: Final = timedelta(minutes=15)
#: Transactions that began since a snapshot was taken, where its age in time may not be seen.
_OLD_SNAPSHOT: Final = 100_000

_SEES_ALL: Final = text("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')")
_LONG: Final = text("""
SELECT pid, usename, application_name, state, clock_timestamp() - xact_start AS age, backend_xmin IS NOT NULL AS snapshot
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND xact_start < clock_timestamp() - :least
ORDER BY xact_start LIMIT 20
""")
_SNAPSHOTS: Final = text("""
SELECT pid, usename, application_name, age(backend_xmin) AS behind
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND age(backend_xmin) > :old
ORDER BY age(backend_xmin) DESC LIMIT 20
""")
_PREPARED: Final = text("""
SELECT gid, owner, clock_timestamp() - prepared AS age FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - :least ORDER BY prepared LIMIT 20
""")
_SLOTS: Final = text("""
SELECT slot_name, active, age(coalesce(xmin, catalog_xmin)) AS behind FROM pg_replication_slots
WHERE age(coalesce(xmin, catalog_xmin)) > :old ORDER BY 3 DESC LIMIT 20
""")
_BLOCKED: Final = text("""
SELECT pid, usename, application_name, pg_blocking_pids(pid) AS blockers, clock_timestamp() - state_change AS age
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND state_change < clock_timestamp() - :least
ORDER BY state_change LIMIT 20
""")
_LOCKED_FOR: Final = timedelta(seconds=5)


def sessions(connection: Connection) -> tuple[Finding, ...]:
    """Nobody's transaction is in everybody's way."""
    return or_ok(
        list(_sessions(connection)), "sessions", "no long transaction, no old snapshot, no long wait for a lock"
    )


def _sessions(connection: Connection) -> Iterator[Finding]:
    if connection.execute(_SEES_ALL).scalar_one():
        for row in connection.execute(_LONG, {"least": WARN_AFTER}):
            tell = fault if row.age > FAULT_AFTER else warning
            yield tell(
                "sessions",
                f"process {row.pid} ({_who(row)}) has had a transaction open for {_span(row.age)}, {row.state}",
                todo=f"ask whose it is; SELECT pg_terminate_backend({row.pid}) ends it",
            )
        for row in connection.execute(_BLOCKED, {"least": _LOCKED_FOR}):
            blockers = ", ".join(str(pid) for pid in row.blockers)
            yield warning(
                "sessions",
                f"process {row.pid} ({_who(row)}) has waited {_span(row.age)} for a lock of process {blockers}",
                todo=f"see what {blockers} does; SELECT pg_terminate_backend({blockers}) ends it",
            )
    else:
        yield unknown(
            "sessions",
            "how long others' transactions last cannot be seen",
            todo="GRANT pg_read_all_stats TO baton_observer, as a superuser, and connect as that role",
        )
        for row in connection.execute(_SNAPSHOTS, {"old": _OLD_SNAPSHOT}):
            yield warning(
                "sessions",
                f"process {row.pid} ({_who(row)}) keeps a snapshot {row.behind} transactions old",
                todo=f"ask whose it is; SELECT pg_terminate_backend({row.pid}) ends it",
            )
    for row in connection.execute(_PREPARED, {"least": WARN_AFTER}):
        yield fault(
            "sessions",
            f"prepared transaction {row.gid!r} of {row.owner} has stood for {_span(row.age)}",
            todo=f"ROLLBACK PREPARED '{row.gid}', or COMMIT PREPARED it",
        )
    for row in connection.execute(_SLOTS, {"old": _OLD_SNAPSHOT}):
        yield warning(
            "sessions",
            f"replication slot {row.slot_name} keeps rows {row.behind} transactions old"
            + ("" if row.active else ", and nobody reads it"),
            todo=f"see to its reader, or SELECT pg_drop_replication_slot('{row.slot_name}')",
        )


def _who(row: Any) -> str:
    return f"{row.usename}, {row.application_name or 'no name'}"


def _span(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
