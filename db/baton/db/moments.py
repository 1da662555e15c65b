"""How moments and lengths of time travel between Postgres and Python: the same ones there as here, whatever the server's
time zone is.

A moment is read as UTC: between two moments of one zone of local time Python counts what the clock on the wall shows, so
that a minute in which summer time begins would be more than an hour. A length is sent in seconds: a *day* is a day of the
calendar to Postgres, of 23 hours now and then.

Some moments Postgres has and Python has not: ``infinity``, and years before 1 or after 9999.

Somebody who edits a row by hand writes them in good faith ("until I say otherwise"). Read as an error, one such value
would hide every row that is read in the same statement, so it is read as the farthest moment that can still be counted
with: a year's arithmetic on it stays within what Python can say.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from psycopg import DataError, adapters
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.pq import Format

FARTHEST_PAST: Final = datetime(2, 1, 1, tzinfo=UTC)
FARTHEST_FUTURE: Final = datetime(9998, 1, 1, tzinfo=UTC)

_TYPE: Final = adapters.types["timestamptz"].oid
_LENGTH: Final = adapters.types["interval"].oid


def _driver(oid: int, context: AdaptContext | None) -> Callable[[Buffer], datetime]:
    """The driver's own reading, which is compiled where its binary is installed."""
    found = adapters.get_loader(_TYPE, Format.TEXT)
    if found is None:
        raise LookupError("the driver reads no moments")
    return found(oid, context).load


class _Moment(Loader):
    """The driver's own loader, in UTC; and the two farthest moments where it gives up."""

    format = Format.TEXT

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._read = _driver(oid, context)

    def load(self, data: Buffer) -> datetime:
        """Read one value; never fails for a value of Postgres's own."""
        try:
            return self._read(data).astimezone(UTC)
        except (DataError, OverflowError):
            written = bytes(data)
            past = written.startswith((b"-", b"0001")) or written.endswith(b"BC")
            return FARTHEST_PAST if past else FARTHEST_FUTURE


class _Length(Dumper):
    """A length of time in seconds, and never in days."""

    oid = _LENGTH

    def dump(self, obj: timedelta) -> Buffer:
        """Write one value."""
        whole, rest = divmod(abs(obj), timedelta(seconds=1))
        return f"{'-' if obj < timedelta(0) else ''}{whole}.{rest.microseconds:06} s".encode()


class _Reading:
    """What the driver takes for a connection's context: adapters, and no connection yet."""

    connection = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap(adapters)
        self.adapters.register_loader("timestamptz", _Moment)
        self.adapters.register_dumper(timedelta, _Length)


def reading() -> AdaptContext:
    """What a connection is opened with (the driver's ``context``), so that it reads every moment there is, and means the same by a length."""
    return _Reading()
