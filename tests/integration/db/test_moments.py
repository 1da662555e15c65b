"""Moments and lengths mean the same to Postgres and to Python, whatever the zone of the server is."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from baton.db.access import Role
from support.databases import Database

#: Noon of the day after the night in which summer time began.
AFTER = datetime(2027, 3, 28, 10, tzinfo=UTC)


def test_a_day_has_24_hours_and_an_hour_is_no_minute_longer(database: Database) -> None:
    """Four days before, by Postgres, are four days before, by Python; and so is what lies between two moments."""
    with database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {database.name} SET timezone = 'Europe/Berlin'")
    with database.engine(Role.OBSERVER).connect() as connection:
        assert connection.exec_driver_sql("SHOW timezone").scalar_one() == "Europe/Berlin"
        for length in (timedelta(days=4), timedelta(hours=30), timedelta(seconds=-1, microseconds=5)):
            before, now, between = connection.execute(
                text(
                    "SELECT CAST(:now AS timestamptz) - :length, CAST(:now AS timestamptz), CAST(:length AS interval)"
                ),
                {"now": AFTER, "length": length},
            ).one()
            assert (now, before, between) == (AFTER, AFTER - length, length)
            assert now - before == length
            assert now - timedelta(days=4) == AFTER - timedelta(days=4)
