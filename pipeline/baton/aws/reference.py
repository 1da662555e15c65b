"""The documented matrix of workloads and AWS actions, generated from the permissions.

``python -m baton.aws.reference docs/security.md`` writes it into the page; a check holds the page to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from baton.aws.permissions import SETUP, WORK, rows
from baton.settings.reference import rewritten

BLOCK: Final = "actions"
_HEAD: Final = "| workload | on | may |\n|---|---|---|\n"


def matrix() -> str:
    """Day by day, then what creating what is missing adds, as Markdown."""
    parts = ["\n", _HEAD]
    parts += [f"| {workload} | {place} | {actions} |\n" for workload, place, actions in rows(WORK)]
    parts += ["\nOn top, where `BATON_CREATE_QUEUES` is on and something is missing:\n\n", _HEAD]
    parts += [f"| {workload} | {place} | {actions} |\n" for workload, place, actions in rows(SETUP)]
    return "".join(parts) + "\n"


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
