"""What a loop remembers between passes: in Postgres where it repairs, so that replicas share it, else in the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert

from baton.db.tables import reconcile_state

T = TypeVar("T")

_VALUE: Final = select(reconcile_state.c.value).where(reconcile_state.c.name == bindparam("asked"))
_LOCKED_VALUE: Final = _VALUE.with_for_update(key_share=True, skip_locked=True)
_NEW: Final = insert(reconcile_state).values(name=bindparam("name"), value=bindparam("value"))
_BEGIN: Final = _NEW.on_conflict_do_nothing(index_elements=["name"])
_KEEP: Final = _NEW.on_conflict_do_update(
    index_elements=["name"], set_={"value": _NEW.excluded.value, "updated_at": func.app.clock()}
)


def member(value: Mapping[str, Any], name: str, read: Callable[[Any], T]) -> T | None:
    """One member of what is remembered; ``None`` where there is none, or none that can be read.

    These rows may be edited by hand, to move a cursor or to forget one: what makes no sense begins anew, and fails no pass.
    """
    try:
        return read(value[name])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def moment(written: Any) -> datetime:
    """Read a moment as it is written down here.

    :raises ValueError: it is none, or says no offset.
    """
    read = datetime.fromisoformat(written)
    if read.tzinfo is None:
        raise ValueError("a moment without an offset")
    return read


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class Memory(Protocol):
    """Values by name; each is a small JSON object."""

    def recall(self, connection: Connection, name: str, *, alone: bool = False) -> Mapping[str, Any] | None:
        """The value, empty where there is none.

        :param alone: keep others from it until the transaction ends; ``None`` where somebody else has it now.
        """
        ...

    def keep(self, connection: Connection, name: str, value: Mapping[str, Any]) -> None:
        """Remember the value, if the transaction commits."""
        ...


class Shared:
    """In Postgres."""

    def recall(self, connection: Connection, name: str, *, alone: bool = False) -> Mapping[str, Any] | None:
        """The value."""
        if not alone:
            return _object(connection.execute(_VALUE, {"asked": name}).scalar_one_or_none())
        connection.execute(_BEGIN, {"name": name, "value": {}})
        found = connection.execute(_LOCKED_VALUE, {"asked": name}).one_or_none()
        return None if found is None else _object(found.value)

    def keep(self, connection: Connection, name: str, value: Mapping[str, Any]) -> None:
        """Remember the value."""
        connection.execute(_KEEP, {"name": name, "value": dict(value)})


class Private:
    """In this process, for a role that cannot write."""

    def __init__(self) -> None:
        self._values: dict[str, Mapping[str, Any]] = {}

    def recall(self, connection: Connection, name: str, *, alone: bool = False) -> Mapping[str, Any] | None:
        """The value."""
        del connection, alone
        return self._values.get(name, {})

    def keep(self, connection: Connection, name: str, value: Mapping[str, Any]) -> None:
        """Remember the value."""
        del connection
        self._values[name] = value
