"""Lengths of time are sent in seconds: to Postgres a day is one of the calendar."""

from datetime import timedelta

import psycopg
import pytest

from baton.db.moments import reading


@pytest.mark.parametrize(
    ("length", "written"),
    [
        (timedelta(days=4), b"345600.000000 s"),
        (timedelta(0), b"0.000000 s"),
        (timedelta(microseconds=1_500_000), b"1.500000 s"),
        (timedelta(seconds=-1, microseconds=5), b"-0.999995 s"),
        (timedelta(days=-2), b"-172800.000000 s"),
    ],
)
def test_a_length_is_written_in_seconds(length: timedelta, written: bytes) -> None:
    """Negative ones, too, and to the microsecond."""
    transformer = psycopg.adapt.Transformer(reading())
    assert bytes(transformer.get_dumper(length, psycopg.adapt.PyFormat.AUTO).dump(length) or b"") == written
