"""What a child process needs of this process's environment, whatever it is told besides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

_KEPT: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "TESSDATA_PREFIX",
    "PYTHONPATH",
    "COVERAGE_PROCESS_START",
)


def inherited(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Where programs, languages and libraries are found; no setting, and no secret.

    Args:
        environ: the variables; ``None`` takes the environment of this process.
    """
    source = os.environ if environ is None else environ
    return {name: source[name] for name in _KEPT if name in source}


def in_ci(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this runs for a build and not for a person: ``CI`` is set, and not to nothing, 0 or false."""
    source = os.environ if environ is None else environ
    return source.get("CI", "").strip().lower() not in {"", "0", "false"}


def starting_with(*prefixes: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables whose names begin so and that are set to something; for children that need them.

    Args:
        prefixes: beginnings of names.
        environ: the variables; ``None`` takes the environment of this process.
    """
    source = os.environ if environ is None else environ
    return {name: value for name, value in source.items() if name.startswith(prefixes) and value.strip()}
