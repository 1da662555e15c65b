"""How far this machine's clock is from the database's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, text

from baton.reconcilers.doctor.findings import Finding, ok, warning

#: Seconds. Only the database's clock decides; signatures towards AWS fail at five minutes.
_FAR: Final = 5.0


def clock(connection: Connection) -> Finding:
    """The two agree."""
    before = datetime.now(UTC)
    theirs: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    after = datetime.now(UTC)
    apart = (theirs - before - (after - before) / 2).total_seconds()
    if abs(apart) <= _FAR:
        return ok("clock", f"the database's clock and this machine's are {abs(apart):.1f} s apart")
    return warning(
        "clock",
        f"the database's clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} this machine's",
        todo="set both by NTP; requests to AWS are refused from 300 s on",
    )
