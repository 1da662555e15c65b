"""Rows as JSON: ids, moments and closed words in the one form in which everybody who prints them has them."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID


def encoded(value: object) -> Any:
    """What JSON has no form for, for ``json.dumps(default=…)``; times are UTC.

    :raises TypeError: it has no place in JSON.
    """
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no place in JSON")
