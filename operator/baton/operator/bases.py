"""What redrives stand on: one reconciler's database, and whether anything may be repaired there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from sqlalchemy import Connection, Engine

from baton.operator.failures import Conflict, NotOwned
from baton.operator.specs import Wanted
from baton.operator.standing import engine_for
from baton.reconcilers import owner, windows
from baton.reconcilers.explain import ground_of
from baton.reconcilers.planning import Ground
from baton.reconcilers.windows import Held
from baton.settings.model import Settings
from baton.settings.secret import Secret

#: One for the turn, one to spare.
_CONNECTIONS: Final = 2


class HeldBack(Exception):
    """Repairs are held back now."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.reason)
        self.held = held


@dataclass(frozen=True, slots=True)
class Base:
    """The reconciler's database, for one spec and one secret."""

    reconciler: Wanted
    url: Secret
    settings: Settings
    engine: Engine

    @classmethod
    def opened(cls, reconciler: Wanted, url: Secret, *, ambient: Settings) -> Self:
        """Make the engine; nothing is asked yet.

        :raises SpecInvalid: values of the spec do not go together.
        """
        settings = reconciler.settings(database=url, aws=ambient.aws, ambient=ambient)
        return cls(reconciler, url, settings, engine_for(settings, url, connections=_CONNECTIONS))

    def allowed(self, connection: Connection) -> None:
        """See that something may be repaired now.

        :raises Conflict: another resource works on the database.
        :raises NotOwned: none does.
        :raises HeldBack: a suspension or a window.
        """
        holder = owner.current(connection)
        if holder is None:
            raise NotOwned("the reconciler has not begun to work on its database")
        if holder != self.reconciler.key.owner:
            raise Conflict(holder)
        held = windows.held(connection)
        if held is not None:
            raise HeldBack(held)

    def ground(self, connection: Connection) -> Ground:
        """What is known before any document is looked at."""
        return ground_of(connection, settings=self.settings)

    def ground_to_repair(self, connection: Connection) -> Ground:
        """The same, in the transaction of a batch, once it is seen that it may be made."""
        self.allowed(connection)
        return self.ground(connection)
