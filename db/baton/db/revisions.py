"""The versions that this program knows, without the machinery that moves a database between them.

Every process asks at its start, and that machinery takes longer to import than the question to answer.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

#: As in server_version_num.
MINIMUM_SERVER: Final = 150000


@cache
def head() -> str:
    """The version that this program needs: the number that the last migration's file begins with."""
    versions = Path(__file__).parent / "migrations" / "versions"
    return max(found.stem.partition("_")[0] for found in versions.glob("[0-9]*_*.py"))
