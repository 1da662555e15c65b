"""Which failures are the surroundings' and which are the message's own."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from baton.aws.errors import BucketMissing, QueueMissing, Unavailable

#: SQLSTATE classes of a server that is away, ending, full, or read-only after a failover.
_AWAY = ("08", "53", "57P", "25006")
#: Ended by a limit on how long a transaction may go without a statement, or last: what came between was the work's own.
_TOO_LONG = ("25P03", "25P04")
#: What another transaction did to this one: deadlock, serialization, a lock not had in time.
_IN_THE_WAY = ("40", "55P03")


class Blame(StrEnum):
    """Whose failure it is."""

    DATABASE = "database"
    """Postgres as a whole: nothing is received until it answers again."""
    SERVICE = "service"
    """Queue or object store as a whole."""
    CONTENTION = "contention"
    """Another transaction stood in the way; trying again is the cure."""
    WORK = "work"
    """This message's own: an attempt is spent."""


def blame(error: BaseException) -> Blame:
    """Whose failure ``error`` is. Only :attr:`Blame.WORK` spends an attempt."""
    if isinstance(error, PoolTimeout):
        return Blame.DATABASE
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None)
        if state in _TOO_LONG:  # the connection is gone with it, and yet the server is not away
            return Blame.WORK
        if error.connection_invalidated or state is None or state.startswith(_AWAY):
            return Blame.DATABASE if _is_operational(error) else Blame.WORK
        return Blame.CONTENTION if state.startswith(_IN_THE_WAY) else Blame.WORK
    if isinstance(error, Unavailable | QueueMissing | BucketMissing):
        return Blame.SERVICE
    return Blame.WORK


def _is_operational(error: DBAPIError) -> bool:
    # A value that the driver cannot even send (a NUL in a text) has no SQLSTATE either, and is the work's own fault.
    names = {kind.__name__ for kind in type(error.orig).__mro__}
    return error.connection_invalidated or bool(names & {"OperationalError", "InterfaceError", "InternalError"})
