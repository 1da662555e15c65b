"""Errors of the settings.

SettingsError
"""

from __future__ import annotations

from collections.abc import Sequence


class SettingsError(Exception):
    """The environment does not make a valid set of settings.

    ``str()`` is one line per fault, ready for standard error; no line holds a secret. A program
    prints it and ends with ``Exit.SETTINGS``.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)
