"""How the tables are kept: vacuum's settings, dead rows, bloat, missing or broken indexes, age of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, Table, text

from baton.db.tables import documents, metadata, outbox
from baton.reconcilers.doctor.findings import Finding, fault, listed, or_ok, warning

#: Tables whose dead rows are in the way of live work.
_HOT: Final = (documents, outbox)
#: Dead rows are tolerated up to a base and a share of the table; the outbox is vacuumed by count alone.
_DEAD_BASE: Final = 1_000_000
_DEAD_SHARE: Final = 0.2
#: Where autovacuum begins to work against wrap-around whatever the load, by Postgres's default.
_OLD: Final = 1_000_000_000
_BLOATED_BYTES: Final = 64 * 2**20
#: Bytes of an index per entry, above which most of it is empty; an entry of ours takes 40 to 120.
_BYTES_PER_ENTRY: Final = 400

_STATS: Final = text("""
SELECT s.n_dead_tup, s.n_live_tup, greatest(s.last_vacuum, s.last_autovacuum) AS vacuumed,
       coalesce(c.reloptions, '{}') AS options, age(c.relfrozenxid) AS age
FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE c.oid = to_regclass(:tab)
""")
_INDEXES: Final = text("""
SELECT n.nspname || '.' || c.relname AS name, i.indisvalid AND i.indisready AS valid,
       pg_relation_size(c.oid) AS bytes, c.reltuples, pg_get_indexdef(i.indexrelid) LIKE '% USING btree %' AS tree
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY(:schemas)
""")
_AUTOVACUUM: Final = text("SELECT current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on'")


def storage(connection: Connection) -> tuple[Finding, ...]:
    """Tables and indexes are as declared and kept clean."""
    found = [*_tables(connection), *_indexes(connection)]
    return or_ok(found, "storage", "vacuum keeps up, and every index is there and sound")


def _tables(connection: Connection) -> Iterator[Finding]:
    if not connection.execute(_AUTOVACUUM).scalar_one():
        yield fault("storage", "autovacuum is off", todo="set autovacuum and track_counts to on, and reload")
    for table in _HOT:
        row = connection.execute(_STATS, {"tab": table.fullname}).one_or_none()
        if row is None:
            yield fault("storage", f"table {table.fullname} is missing", todo="restore it, or run 'baton migrate'")
            continue
        yield from _settings(table, row)
        if row.n_dead_tup > _DEAD_BASE + _DEAD_SHARE * row.n_live_tup:
            yield warning(
                "storage",
                f"{table.fullname} has {row.n_dead_tup} dead rows to {row.n_live_tup} live ones,"
                f" last vacuumed {row.vacuumed or 'never'}",
                todo=f"look for old snapshots (see sessions), then VACUUM (INDEX_CLEANUP ON) {table.fullname}",
            )
        if row.age > _OLD:
            yield fault(
                "storage",
                f"{table.fullname} holds transactions {row.age} old: the server stops at two thousand million",
                todo=f"VACUUM (FREEZE) {table.fullname}; end what holds it back (see sessions)",
            )


def _settings(table: Table, row: Any) -> Iterator[Finding]:
    declared = {f"{name}={value}" for name, value in table.dialect_options["postgresql"]["with"].items()}
    missing = sorted(declared - set(row.options))
    if missing:
        yield warning(
            "storage",
            f"{table.fullname} lacks the settings {', '.join(missing)}",
            todo=f"ALTER TABLE {table.fullname} SET ({', '.join(missing)})",
        )


def _indexes(connection: Connection) -> Iterator[Finding]:
    declared = {
        f"{table.schema or 'public'}.{index.name}" for table in metadata.tables.values() for index in table.indexes
    }
    schemas = sorted({table.schema or "public" for table in metadata.tables.values()})
    there = {row.name: row for row in connection.execute(_INDEXES, {"schemas": schemas})}
    missing = sorted(declared - there.keys())
    if missing:
        yield fault(
            "storage",
            f"missing indexes: {listed(missing)}; what they serve reads whole tables",
            todo="create them as the versions do, with CONCURRENTLY",
        )
    broken = sorted(name for name, row in there.items() if not row.valid)
    if broken:
        yield fault(
            "storage", f"invalid indexes: {listed(broken)}", todo=f"REINDEX INDEX CONCURRENTLY {broken[0]}, and so on"
        )
    for name, row in sorted(there.items()):
        if row.tree and row.bytes > _BLOATED_BYTES and row.bytes > _BYTES_PER_ENTRY * max(row.reltuples, 1):
            yield warning(
                "storage",
                f"index {name} takes {row.bytes // 2**20} MiB for {max(int(row.reltuples), 0)} entries",
                todo=f"REINDEX INDEX CONCURRENTLY {name}",
            )
