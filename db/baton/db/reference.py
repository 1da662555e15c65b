"""The documented matrix of roles and tables, generated from the grants.

``python -m baton.db.reference docs/security.md`` writes it into the page; a check holds the page to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from baton.db.access import FIRM_SCOPED, LOGIN, MATRIX, Grant, Role
from baton.settings.reference import rewritten

BLOCK: Final = "tables"
_SHOWN: Final = (Role.MEMBER, *(role for role in LOGIN if role in MATRIX), Role.SEARCH)


def matrix() -> str:
    """One table for each role, as Markdown."""
    parts = []
    for role in _SHOWN:
        parts.append(f"\n### `{role}`\n\n| table | rows it sees | may |\n|---|---|---|\n")
        parts.extend(
            f"| `{table}` | {_rows(role, table)} | {_words(grant)} |\n" for table, grant in MATRIX[role].items()
        )
    return "".join(parts) + "\n"


def _rows(role: Role, table: str) -> str:
    if table not in FIRM_SCOPED:
        return "all (of no firm)"
    match role:
        case Role.MEMBER:
            return "one firm's"
        case Role.SUPPORT:
            return "none"
        case _:
            return "every firm's"


def _words(grant: Grant) -> str:
    words = [
        name for name, held in (("read", grant.select), ("insert", grant.insert), ("delete", grant.delete)) if held
    ]
    if grant.update:
        words.append("update " + ", ".join(f"`{column}`" for column in grant.update))
    return "; ".join(words)


def main(arguments: list[str]) -> int:
    """Write the matrix into the page named, or to standard output."""
    if arguments:
        page = Path(arguments[0])
        page.write_text(rewritten(page.read_text(encoding="utf-8"), block=BLOCK, body=matrix()), encoding="utf-8")
    else:
        sys.stdout.write(matrix())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
