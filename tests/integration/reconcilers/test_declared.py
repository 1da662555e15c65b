"""Suspensions and windows that somebody declares, and takes back by declaring them no longer."""

from datetime import UTC, datetime, timedelta

from baton.db.access import Role
from baton.reconcilers import windows
from baton.reconcilers.results import Guard
from baton.reconcilers.windows import Declared
from support.databases import Database

NOW = datetime.now(UTC)
SUSPENDED = Declared(Guard.SUSPENDED, "moving house", until=None)
WINDOW = Declared(Guard.WINDOW, "upgrade", start=NOW - timedelta(hours=1), until=NOW + timedelta(hours=1))


def test_what_is_declared_stands_until_it_is_declared_no_longer(database: Database) -> None:
    """Saying the same again changes nothing; saying less lifts the rest."""
    with database.engine(Role.RECONCILER).begin() as connection:
        assert windows.declare(connection, [SUSPENDED, WINDOW], set_by="me") == 2
        assert windows.declare(connection, [WINDOW, SUSPENDED], set_by="me") == 0
        held = windows.held(connection)
        assert held is not None
        assert (held.guard, held.reason, held.set_by) == (Guard.SUSPENDED, "moving house", "me")
        assert windows.declare(connection, [WINDOW], set_by="me") == 1
        held = windows.held(connection)
        assert held is not None
        assert held.guard is Guard.WINDOW
        assert windows.declare(connection, [], set_by="me") == 1
        assert windows.held(connection) is None


def test_another_reason_or_end_is_another_suspension(database: Database) -> None:
    """The old one is lifted, the new one stands."""
    with database.engine(Role.RECONCILER).begin() as connection:
        windows.declare(connection, [SUSPENDED], set_by="me")
        until = NOW + timedelta(days=1)
        assert windows.declare(connection, [Declared(Guard.SUSPENDED, "moving house", until=until)], set_by="me") == 2
        held = windows.held(connection)
        assert held is not None
        assert held.until == until


def test_what_others_set_stays(database: Database) -> None:
    """A person's suspension is nobody else's to lift."""
    with database.engine(Role.RECONCILER).begin() as connection:
        windows.suspend(connection, reason="audit", set_by="a person")
        windows.declare(connection, [], set_by="me")
        held = windows.held(connection)
        assert held is not None
        assert held.set_by == "a person"


def test_what_is_over_is_not_written(database: Database) -> None:
    """And what ended by itself is not lifted once more."""
    past = Declared(Guard.WINDOW, "upgrade", start=NOW - timedelta(hours=3), until=NOW - timedelta(hours=2))
    with database.engine(Role.RECONCILER).begin() as connection:
        assert windows.declare(connection, [past], set_by="me") == 0
        windows.declare(connection, [WINDOW], set_by="me")
    database.move_clock(7200)
    with database.engine(Role.RECONCILER).begin() as connection:
        assert windows.declare(connection, [WINDOW], set_by="me") == 0
