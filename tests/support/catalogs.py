"""What a database's own catalogs say about tables, rights and keys; each function lists what breaks its rule.

Partitions and what extensions bring are not the product's, and are left out.
"""

from sqlalchemy import Connection, text

from baton.db import access
from baton.db.access import Role

_OURS = "n.nspname = ANY (:schemas)"


def _rows(connection: Connection, statement: str, **values: object) -> list[str]:
    found = connection.execute(text(statement), {"schemas": list(access.SCHEMAS), **values})
    return [" ".join(str(part) for part in row) for row in found]


def firm_tables(connection: Connection) -> set[str]:
    """Tables with a column ``firm_id``, named as the matrix names them."""
    return set(
        _rows(
            connection,
            "SELECT CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'firm_id' AND NOT a.attisdropped"
            f" WHERE {_OURS} AND c.relkind IN ('r', 'p')",
        )
    )


def tables(connection: Connection) -> set[str]:
    """All tables, named as the matrix names them."""
    return set(
        _rows(
            connection,
            "SELECT CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END"
            f" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {_OURS} AND c.relkind IN ('r', 'p')",
        )
    )


def unforced(connection: Connection) -> list[str]:
    """Tables with a firm's rows that do not force row-level security."""
    return _rows(
        connection,
        "SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'firm_id' AND NOT a.attisdropped"
        f" WHERE {_OURS} AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1",
    )


def matched_twice(connection: Connection) -> list[str]:
    """Roles that match more than one permissive policy of a table, by rights that they hold without doing anything."""
    return _rows(
        connection,
        "SELECT p.polrelid::regclass, r.rolname, array_agg(p.polname ORDER BY p.polname)"
        " FROM pg_policy p JOIN pg_roles r ON NOT r.rolsuper AND EXISTS"
        "  (SELECT FROM unnest(p.polroles) named WHERE named = 0 OR pg_has_role(r.oid, named, 'USAGE'))"
        " WHERE p.polpermissive AND r.rolname LIKE 'baton%' GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2",
    )


def policies(connection: Connection) -> set[tuple[str, str, tuple[str, ...]]]:
    """Every policy as (table, name, roles that it names), public for all."""
    found = connection.execute(
        text(
            "SELECT CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END, p.polname,"
            " ARRAY(SELECT coalesce(r.rolname::text, 'public') FROM unnest(p.polroles) named"
            "       LEFT JOIN pg_roles r ON r.oid = named ORDER BY 1)"
            " FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        )
    )
    return {(table, name, tuple(roles)) for table, name, roles in found}


def firmless_foreign_keys(connection: Connection) -> list[str]:
    """Foreign keys from one firm's table to another that do not carry the firm: they ignore row-level security."""
    return _rows(
        connection,
        "SELECT k.conrelid::regclass, k.conname FROM pg_constraint k"
        " JOIN pg_attribute f ON f.attrelid = k.conrelid AND f.attname = 'firm_id'"
        " JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attname = 'firm_id'"
        " WHERE k.contype = 'f' AND NOT EXISTS (SELECT FROM generate_subscripts(k.conkey, 1) i"
        "   WHERE k.conkey[i] = f.attnum AND k.confkey[i] = t.attnum) ORDER BY 1, 2",
    )


def firmless_unique_keys(connection: Connection) -> list[str]:
    """Unique indexes without the firm, of a firm's table; one made-up id alone (a surrogate key) tells nobody anything."""
    return _rows(
        connection,
        "SELECT i.indrelid::regclass, i.indexrelid::regclass FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " JOIN pg_attribute f ON f.attrelid = i.indrelid AND f.attname = 'firm_id' AND NOT f.attisdropped"
        f" WHERE {_OURS} AND i.indisunique AND NOT f.attnum = ANY (i.indkey)"
        " AND NOT (i.indisprimary AND i.indnkeyatts = 1 AND EXISTS (SELECT FROM pg_attribute a"
        "   WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.atttypid IN ('uuid'::regtype, 'int8'::regtype)))"
        " ORDER BY 1, 2",
    )


def grants(connection: Connection) -> set[tuple[str, str, str]]:
    """Every right on a table or one of its columns as (role, table, right), without its owner's."""
    found = connection.execute(
        text(
            "WITH ours AS (SELECT c.oid, c.relacl, c.relowner, CASE WHEN n.nspname = 'public' THEN c.relname::text"
            "   ELSE n.nspname || '.' || c.relname END AS name FROM pg_class c JOIN pg_namespace n"
            f"   ON n.oid = c.relnamespace WHERE {_OURS} AND c.relkind IN ('r', 'p', 'v', 'm', 'S'))"
            " SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE a.grantee::regrole::text END, ours.name, a.privilege_type"
            "   FROM ours, aclexplode(ours.relacl) a WHERE a.grantee <> ours.relowner"
            " UNION ALL SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE a.grantee::regrole::text END, ours.name,"
            "   a.privilege_type || ' (' || c.attname || ')'"
            "   FROM ours JOIN pg_attribute c ON c.attrelid = ours.oid, aclexplode(c.attacl) a"
            "   WHERE a.grantee <> ours.relowner"
        ),
        {"schemas": list(access.SCHEMAS)},
    )
    return {(role, table, right) for role, table, right in found}


def documented_grants() -> set[tuple[str, str, str]]:
    """The same as the matrix has it."""
    found: set[tuple[str, str, str]] = set()
    for role, granted in access.MATRIX.items():
        for table, grant in granted.items():
            for right, held in (("SELECT", grant.select), ("INSERT", grant.insert), ("DELETE", grant.delete)):
                if held:
                    found.add((role.value, table, right))
            found |= {(role.value, table, f"UPDATE ({column})") for column in grant.update}
    return found


def loose_functions(connection: Connection) -> list[str]:
    """Definer functions and trigger functions whose ``search_path`` is not pinned, or that the public may call."""
    return _rows(
        connection,
        "SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = ANY (:schemas) AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid"
        "   AND d.deptype = 'e') AND (((p.prosecdef OR p.prorettype = 'trigger'::regtype) AND NOT EXISTS"
        "   (SELECT FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%pg_temp'))"
        "   OR has_function_privilege('public', p.oid, 'EXECUTE')) ORDER BY 1",
    )


def definer_views(connection: Connection) -> list[str]:
    """Views that show what their owner may see, instead of what their reader may."""
    return _rows(
        connection,
        f"SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {_OURS}"
        " AND c.relkind IN ('v', 'm') AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false) ORDER BY 1",
    )


def enums(connection: Connection) -> list[str]:
    """Enum types: comparing them is not leakproof, so a policy would cost the index."""
    return _rows(
        connection,
        f"SELECT t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE {_OURS} AND t.typtype = 'e'",
    )


def not_the_owners(connection: Connection) -> list[str]:
    """Tables, sequences and functions of anybody but the owner; the search function is its own role's."""
    return _rows(
        connection,
        "SELECT c.oid::regclass::text, c.relowner::regrole::text FROM pg_class c JOIN pg_namespace n"
        f" ON n.oid = c.relnamespace WHERE {_OURS} AND c.relkind IN ('r', 'p', 'S', 'v') AND c.relowner <> CAST(:owner AS regrole)"
        " UNION ALL SELECT p.oid::regprocedure::text, p.proowner::regrole::text FROM pg_proc p JOIN pg_namespace n"
        f" ON n.oid = p.pronamespace WHERE {_OURS} AND p.proowner <> CAST(:owner AS regrole) AND p.proname <> 'search'"
        "   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1",
        owner=Role.OWNER.value,
    )


def shape(connection: Connection) -> dict[str, str]:
    """Everything that a migration makes, by name and as the server writes it down; two equal databases have equal shapes."""
    statements = {
        "column": "SELECT a.attrelid::regclass || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),"
        " a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid)) FROM pg_attribute a"
        " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
        " WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped",
        "table": "SELECT c.oid::regclass::text, concat_ws(' ', c.relkind, c.relrowsecurity, c.relforcerowsecurity,"
        " c.relowner::regrole, (SELECT array_agg(o ORDER BY o) FROM unnest(c.reloptions) o)) FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'S')",
        "constraint": "SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(k.oid) FROM pg_constraint k"
        " JOIN pg_namespace n ON n.oid = k.connamespace WHERE k.contype <> 'n'",
        "index": "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace",
        "trigger": "SELECT tgrelid::regclass || ' ' || tgname, pg_get_triggerdef(t.oid) || ' ' || tgenabled::text FROM pg_trigger t"
        " JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT tgisinternal",
        "function": "SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid) || p.proowner::regrole || coalesce(p.proacl::text, '')"
        " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') AND p.prokind = 'f'",
        "policy": "SELECT p.polrelid::regclass || ' ' || p.polname, concat_ws(' | ', p.polcmd, p.polpermissive,"
        " (SELECT array_agg(r::regrole::text ORDER BY 1) FROM unnest(p.polroles) r), pg_get_expr(p.polqual, p.polrelid),"
        " pg_get_expr(p.polwithcheck, p.polrelid)) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace",
        "schema": "SELECT n.nspname, concat_ws(' ', n.nspowner::regrole, (SELECT array_agg(a::text ORDER BY a::text)"
        " FROM unnest(n.nspacl) a)) FROM pg_namespace n",
    }
    found: dict[str, str] = {}
    for kind, statement in statements.items():
        joiner = "AND" if "WHERE" in statement.rpartition("JOIN pg_namespace")[2] or kind == "function" else "WHERE"
        rows = connection.execute(text(f"{statement} {joiner} {_OURS}"), {"schemas": list(access.SCHEMAS)})
        found |= {f"{kind} {name}": definition for name, definition in rows}
    return found
