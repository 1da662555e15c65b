"""How a settings field declares its variable, reader, unit and meaning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

_KEY: Final = "baton.setting"


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One variable of the environment, as its field declares it."""

    variable: str
    parse: Callable[[str], object]
    meaning: str
    """One sentence for the reference page."""
    unit: str | None
    """``None``: a plain word, flag or count."""
    unset: str | None
    """What ``None`` as the value means; ``None`` here: the field always has a value."""
    default: object
    secret: bool


def setting(
    variable: str,
    parse: Callable[[str], object],
    *,
    default: object,
    meaning: str,
    unit: str | None = None,
    unset: str | None = None,
    secret: bool = False,
) -> Any:
    """A dataclass field that is filled from ``variable`` and otherwise has ``default``."""
    if (default is None) != (unset is not None):
        raise TypeError(f"{variable}: a default of None and the meaning of None go together")
    declared = Setting(variable, parse, meaning, unit, unset, default, secret)
    return dataclasses.field(default=default, metadata={_KEY: declared})


def declared(concern: type[object]) -> dict[str, Setting]:
    """The settings of one concern by field name, in the order they are written."""
    return {
        field.name: field.metadata[_KEY]
        for field in dataclasses.fields(concern)  # type: ignore[arg-type]
        if _KEY in field.metadata
    }
