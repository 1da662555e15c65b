"""Exit codes that every Baton program shares; 64 and up follow sysexits.h."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a program's end means to the shell, the container runtime and scripts."""

    OK = 0
    FAILED = 1
    """The work was tried and did not succeed."""
    SETTINGS = 2
    """Wrong usage or wrong settings; starting again without a change cannot help."""
    UNAVAILABLE = 69
    """Something the program needs does not answer (database, queue, storage)."""
    SOFTWARE = 70
    """A fault of Baton's own."""
    TEMPORARY = 75
    """Nothing was done; trying again later may succeed."""
    REFUSED = 77
    """The database refuses this role, version or operation."""
