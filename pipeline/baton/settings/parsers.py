"""Readers from a variable's text to its value.

Each raises ``ValueError`` with a message that completes the sentence "NAME: …" and never repeats
a secret. They are made by small factories so that a field states its own bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from baton.settings.secret import Secret

Chosen = TypeVar("Chosen", bound=StrEnum)
Number = TypeVar("Number", int, float)

_SECONDS: Final = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_BYTES: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_QUANTITY: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)", re.ASCII)
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,75}(\.fifo)?", re.ASCII)
#: Of a database's URL, as SQLAlchemy reads it: the password ends at its first @.
_CREDENTIALS: Final = re.compile(r"^[^:/]*(?::[^@]*)?@")
#: The rest of it: a host, perhaps a port, perhaps a database.
_SERVER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:/]{0,253})(?::\d{1,5})?(?:/.*)?")
#: What may stand behind its ``?``: libpq's own options. The driver takes others, too, and one of them switches
#: transactions off; of libpq's own are missing which would make another kind of connection, or write keys to a file.
_POSTGRES_OPTIONS: Final = frozenset(
    [
        "application_name",
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "dbname",
        "fallback_application_name",
        "gssdelegation",
        "gssencmode",
        "gsslib",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "load_balance_hosts",
        "max_protocol_version",
        "min_protocol_version",
        "oauth_client_id",
        "oauth_client_secret",
        "oauth_issuer",
        "oauth_scope",
        "options",
        "passfile",
        "password",
        "port",
        "require_auth",
        "requirepeer",
        "scram_client_key",
        "scram_server_key",
        "service",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcertmode",
        "sslcompression",
        "sslcrl",
        "sslcrldir",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "sslsni",
        "target_session_attrs",
        "tcp_user_timeout",
        "user",
    ]
)
_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_LONGEST_TEXT: Final = 1024


def text(raw: str) -> str:
    """Any text without control characters, of at most 1,024 characters."""
    if not raw.isprintable():
        raise ValueError("holds characters that cannot be printed")
    if len(raw) > _LONGEST_TEXT:
        raise ValueError(f"is longer than {_LONGEST_TEXT:,} characters")
    return raw


def secret(raw: str) -> Secret:
    """Any text that can stand in a header, kept out of sight."""
    if not raw.isprintable() or not raw.isascii():
        raise ValueError("holds characters other than printable ASCII (a stray line break?)")
    return Secret(raw)


def flag(raw: str) -> bool:
    """``true``/``false``, ``yes``/``no``, ``on``/``off``, ``1``/``0``."""
    lowered = raw.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError(f"{_shown(raw)} is neither true nor false")


def one_of(choices: type[Chosen]) -> Callable[[str], Chosen]:
    """One value of a closed set, in any case."""

    def parse(raw: str) -> Chosen:
        try:
            return choices(raw.lower())
        except ValueError:
            known = ", ".join(choices)
            raise ValueError(f"{_shown(raw)} is not one of {known}") from None

    return parse


def integer(minimum: int, maximum: int) -> Callable[[str], int]:
    """A whole number within bounds, both included."""

    def parse(raw: str) -> int:
        if re.fullmatch(r"-?\d{1,18}", raw, re.ASCII) is None:
            raise ValueError(f"{_shown(raw)} is not a whole number")
        return _within(int(raw), minimum, maximum)

    return parse


def ratio(raw: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(raw)
    except ValueError:
        raise ValueError(f"{_shown(raw)} is not a number") from None
    return _within(value, 0.0, 1.0)


def number(minimum: float, maximum: float) -> Callable[[str], float]:
    """A number within bounds, both included."""

    def parse(raw: str) -> float:
        if re.fullmatch(r"\d{1,15}(\.\d{1,6})?", raw, re.ASCII) is None:
            raise ValueError(f"{_shown(raw)} is not a number")
        return _within(float(raw), minimum, maximum)

    return parse


def durations(raw: str) -> tuple[tuple[str, float], ...]:
    """Durations by name: ``name=5m``, separated by commas."""
    found: dict[str, float] = {}
    for entry in raw.split(","):
        name, separator, value = (part.strip() for part in entry.partition("="))
        if not separator or re.fullmatch(r"[a-z][a-z_]{0,40}", name, re.ASCII) is None:
            raise ValueError(f"{_shown(entry.strip())} is not of the form name=5m")
        if name in found:
            raise ValueError(f"{name} stands there twice")
        found[name] = seconds(0, 2_592_000)(value)
    return tuple(found.items())


def seconds(minimum: float, maximum: float) -> Callable[[str], float]:
    """A duration: plain seconds, or with ``ms``, ``s``, ``m``, ``h``, ``d`` behind the number."""

    def parse(raw: str) -> float:
        return _within(_quantity(raw, _SECONDS, "a duration such as 30, 30s or 5m"), minimum, maximum)

    return parse


def whole_seconds(minimum: int, maximum: int) -> Callable[[str], int]:
    """A duration that SQS takes in whole seconds."""

    def parse(raw: str) -> int:
        value = _quantity(raw, _SECONDS, "a duration such as 30, 30s or 5m")
        if value != int(value):
            raise ValueError(f"{_shown(raw)} is not a whole number of seconds")
        return _within(int(value), minimum, maximum)

    return parse


def size(minimum: int, maximum: int) -> Callable[[str], int]:
    """A size: plain bytes, or with ``KiB``, ``MiB``, ``GiB`` behind the number."""

    def parse(raw: str) -> int:
        return _within(int(_quantity(raw, _BYTES, "a size such as 65536 or 64MiB")), minimum, maximum)

    return parse


def port(raw: str) -> int:
    """A TCP port; 0 lets the system choose a free one."""
    if raw.startswith("tcp://"):
        # Kubernetes writes NAME_PORT=tcp://… for every Service of the namespace.
        raise ValueError("was set by a Kubernetes service link; turn enableServiceLinks off or rename the Service")
    return integer(0, 65_535)(raw)


def http_url(raw: str) -> str:
    """An absolute http or https URL without credentials; a trailing slash is dropped."""
    try:
        parts = urlsplit(raw)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if not valid or not raw.isprintable() or " " in raw:
        raise ValueError("is not an http or https URL")
    if "@" in parts.netloc:
        raise ValueError("must not hold credentials")
    return raw.rstrip("/")


def postgres_url(raw: str) -> Secret:
    """A ``postgresql://`` URL, kept out of sight and spelled for SQLAlchemy with psycopg 3.

    Nothing of the text is repeated in a fault: where the URL is malformed, any piece of it may be
    the password.
    """
    scheme, separator, rest = raw.partition("://")
    if separator and scheme in {"postgres", "postgresql", "postgresql+psycopg"} and rest:
        if not raw.isprintable() or " " in raw:
            raise ValueError("holds spaces or characters that cannot be printed")
        address, _, query = rest.partition("?")
        server = _CREDENTIALS.sub("", address)
        if "@" in server:  # drivers would take the password's end for the host, and name it in their errors
            raise ValueError("holds an @ too many: in a password it is written %40")
        if _SERVER.fullmatch(server) is None or any(len(label) > 63 for label in server.partition("/")[0].split(".")):
            raise ValueError("names no host and port that there can be")
        options = parse_qsl(query, keep_blank_values=True)
        if any(name not in _POSTGRES_OPTIONS or (name == "port" and not value.isdecimal()) for name, value in options):
            raise ValueError("has an option behind the ? that is none of Postgres'")
        return Secret(f"postgresql+psycopg://{rest}")
    raise ValueError("is not a URL of the form postgresql://user:password@host:port/database")


def queue(raw: str) -> str:
    """The name of an SQS queue, or its URL."""
    if raw.startswith(("http://", "https://")):
        url = http_url(raw)
        if _QUEUE_NAME.fullmatch(urlsplit(url).path.rpartition("/")[2]) is None:
            raise ValueError("is a URL that does not end in a queue's name")
        return url
    if _QUEUE_NAME.fullmatch(raw) is None:
        raise ValueError("is not a queue name (letters, digits, - and _, at most 80) nor a URL")
    return raw


def bucket(raw: str) -> str:
    """The name of an S3 bucket."""
    if _BUCKET_NAME.fullmatch(raw) is None or ".." in raw:
        raise ValueError("is not a bucket name (3 to 63 lower-case letters, digits, . and -)")
    return raw


def scanner_address(raw: str) -> str:
    """Where a scanner listens: ``unix:/path`` or ``tcp:host:port``."""
    kind, _, rest = raw.partition(":")
    if kind == "unix" and rest.startswith("/"):
        return raw
    if kind == "tcp":
        host, _, number = rest.rpartition(":")
        if host and number.isdecimal() and 0 < int(number) < 65_536:
            return raw
    raise ValueError("is not of the form unix:/path or tcp:host:port")


def _quantity(raw: str, units: dict[str, float] | dict[str, int], wanted: str) -> float:
    match = _QUANTITY.fullmatch(raw)
    if match is None or match[2] not in units:
        raise ValueError(f"{_shown(raw)} is not {wanted}")
    return float(match[1]) * units[match[2]]


def _within(value: Number, minimum: Number, maximum: Number) -> Number:
    if not minimum <= value <= maximum:
        raise ValueError(f"{value} is not between {minimum} and {maximum}")
    return value


def _shown(raw: str) -> str:
    """The text as given, short enough for one line."""
    return repr(raw if len(raw) <= 40 else raw[:37] + "…")
