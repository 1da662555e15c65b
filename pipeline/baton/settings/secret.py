"""A text that must not show up in a log line, a repr or a traceback."""

from __future__ import annotations

from typing import Final


class Secret:
    """Holds a password, token or URL with credentials; shows only stars.

    Comparable and hashable by value, so that a settings object stays a plain value. Pickling is
    refused: a secret crosses to another process by its environment, never inside a payload.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value: Final = value

    def reveal(self) -> str:
        """The text itself; call it only where it is handed to a driver or a header."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is not to be pickled")
