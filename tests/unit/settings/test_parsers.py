"""Readers take what they promise, and refuse the rest with one plain sentence."""

import pickle

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.settings import parsers
from baton.settings.loading import every_setting
from baton.settings.secret import Secret


@given(st.text(max_size=200))
def test_no_text_makes_a_reader_do_anything_but_refuse(raw: str) -> None:
    """Whatever a variable holds, its reader gives a value or a ValueError of one short line."""
    for each in every_setting():
        try:
            each.parse(raw)
        except ValueError as fault:
            assert "\n" not in str(fault)  # noqa: PT017 - both ways are right
            assert len(str(fault)) < 200  # noqa: PT017


@pytest.mark.parametrize("raw", ["x" * 1025, "a\tb", "a\x00b"])
def test_what_is_no_text_of_one_line_is_refused(raw: str) -> None:
    """It may end up in a ledger, where nothing is ever shortened."""
    with pytest.raises(ValueError, match=r"longer|printed"):
        parsers.text(raw)
    assert parsers.text("x" * 1024)


@pytest.mark.parametrize(
    ("raw", "value"), [("30", 30.0), ("30s", 30.0), ("1.5 m", 90.0), ("250ms", 0.25), ("2h", 7200.0), ("1d", 86400.0)]
)
def test_durations(raw: str, value: float) -> None:
    """A duration is plain seconds or carries its unit."""
    assert parsers.seconds(0, 100_000)(raw) == value


@pytest.mark.parametrize("raw", ["", "-1", "1e3", "5 weeks", "inf", "nan", "٣", "200000"])
def test_what_is_no_duration_is_refused(raw: str) -> None:
    """Signs, exponents, unknown units, other digits and values out of bounds are refused."""
    with pytest.raises(ValueError, match=r"duration|between"):
        parsers.seconds(0, 100_000)(raw)


@pytest.mark.parametrize("raw", ["1.5", "x", "--1", "99999999999999999999", ""])
def test_what_is_no_whole_number_is_refused(raw: str) -> None:
    """Only digits within the bounds are a whole number."""
    with pytest.raises(ValueError, match=r"whole number|between"):
        parsers.integer(0, 10)(raw)


def test_sizes_have_binary_units() -> None:
    """1 KiB is 1,024 bytes."""
    assert parsers.size(0, 2**40)("1KiB") == 1024
    assert parsers.size(0, 2**40)("3GiB") == 3 * 2**30


@pytest.mark.parametrize(
    "raw",
    [
        "baton-ingest.fifo",
        "x",
        "http://127.0.0.1:4566/000000000000/baton",
        "https://sqs.eu-west-1.amazonaws.com/1/q.fifo",
    ],
)
def test_a_queue_is_a_name_or_a_url(raw: str) -> None:
    """Both spellings are taken as they are."""
    assert parsers.queue(raw) == raw


@pytest.mark.parametrize("raw", ["a b", "x" * 81, "q.fifo.fifo", "https://host/", "ftp://h/q", "q.FIFO"])
def test_what_is_no_queue_is_refused(raw: str) -> None:
    """Names that SQS would refuse are refused before it is asked."""
    with pytest.raises(ValueError, match=r"queue|URL"):
        parsers.queue(raw)


@pytest.mark.parametrize(
    "raw", ["http://user:pw@host", "file:///etc", "http://", "http://h:99999", "host:80", "http://a b"]
)
def test_what_is_no_http_url_is_refused(raw: str) -> None:
    """Addresses without a host, of another scheme or with credentials are refused."""
    with pytest.raises(ValueError, match=r"URL|credentials"):
        parsers.http_url(raw)


@pytest.mark.parametrize("rest", ["user@tenant:p%40ss@db/x", "user@tenant@db/x", "u:p@db/x?user=a@b"])
def test_a_postgres_url_may_hold_an_at_where_it_misleads_nobody(rest: str) -> None:
    """In the user's name, in the query, and escaped in the password."""
    assert parsers.postgres_url(f"postgresql://{rest}").reveal() == f"postgresql+psycopg://{rest}"


@pytest.mark.parametrize(
    "rest",
    [
        "u:hunter2@h:1/d?autocommit=1",
        "u:hunter2@h:1/d?sslmode=require&row_factory=x",
        "u:hunter2@h:1/d?replication=database",
        "u:hunter2@h:1/d?sslkeylogfile=/tmp/keys",
        "u:hunter2@h:1/d?nonsense",
        "u:hunter2@h/d?port=abc",
        "u:hunter2@[::1/d",
        "u:hunter2@h:port/d",
        "u:hunter2@h:1,i:2/d",
        f"u:hunter2@{'a' * 64}/d",
    ],
)
def test_a_postgres_url_that_no_driver_should_see_is_refused(rest: str) -> None:
    """An option that would switch transactions off, above all; and nothing of it is repeated."""
    with pytest.raises(ValueError, match=r"option|host") as refused:
        parsers.postgres_url(f"postgresql://{rest}")
    assert not any(word in str(refused.value) for word in ("hunter2", "nonsense", "aaa"))


def test_every_option_of_the_driver_that_is_harmless_may_stand_in_a_postgres_url() -> None:
    """As the installed libpq names them."""
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()} - {"replication", "sslkeylogfile"}
    for name in known:
        value = "5432" if name == "port" else "x"
        rest = f"[::1]:5432/d?{name}={value}&host=a:1&host=b"
        assert parsers.postgres_url(f"postgresql://{rest}").reveal() == f"postgresql+psycopg://{rest}"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgres_becomes_the_drivers(scheme: str) -> None:
    """The URL comes out for SQLAlchemy with psycopg 3."""
    assert parsers.postgres_url(f"{scheme}://u:p@h:1/d?sslmode=require").reveal() == (
        "postgresql+psycopg://u:p@h:1/d?sslmode=require"
    )


def test_a_secret_shows_stars_everywhere() -> None:
    """Neither repr, str, format, nor a pickle gives a secret away."""
    secret = Secret("hunter2")
    shown = f"{secret} {secret!r} {secret:>20} %s" % secret
    assert "hunter2" not in shown
    assert secret.reveal() == "hunter2"
    assert secret == Secret("hunter2")
    assert len({secret, Secret("hunter2"), Secret("other")}) == 2
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_durations_by_name() -> None:
    """Several durations stand in one variable, each with its name."""
    assert parsers.durations("request_stalled=10m, run_lapsed = 90") == (("request_stalled", 600), ("run_lapsed", 90))


@pytest.mark.parametrize("raw", ["", "5m", "a=", "=5m", "a=5m,a=6m", "A=5m", "a=-1", "a=5m,", "a=40d"])
def test_what_is_no_list_of_durations_is_refused(raw: str) -> None:
    """A name that stands twice, a value that is none, or a stray comma is a fault."""
    with pytest.raises(ValueError, match=r"."):
        parsers.durations(raw)


def test_a_number_may_have_a_fraction() -> None:
    """Rates are numbers; a sign, a word or too much is refused."""
    assert parsers.number(0, 10)("2.5") == 2.5
    for raw in ("-1", "11", "many", "1e1", "nan"):
        with pytest.raises(ValueError, match=r"."):
            parsers.number(0, 10)(raw)
