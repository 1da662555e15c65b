"""Servers that settings give the demo in place of its own, and what they must allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from baton.db.access import Role
from baton.embedded.postgres import ExternalPostgres
from baton.settings.errors import SettingsError
from baton.settings.inheriting import starting_with
from baton.settings.loading import load
from baton.settings.secret import Secret

#: Whom the demo's processes log in as, and the demo itself.
ROLES: Final = (Role.MEMBER_APP, Role.RELAY, Role.EXTRACTOR, Role.REGISTRAR, Role.SETTLER, Role.RECONCILER)

_SQS: Final = "AWS_ENDPOINT_URL_SQS"
_S3: Final = "AWS_ENDPOINT_URL_S3"
#: Where they are repeated behind the question mark they would win over those before it, for every role.
_BEFORE_THE_MARK: Final = ("user", "password", "dbname")
_MAY: Final = text(
    "SELECT rolname, rolsuper OR (rolcreatedb AND rolcreaterole) AS may FROM pg_roles WHERE rolname = current_user"
)


@dataclass(frozen=True, slots=True)
class Given:
    """What the settings give; what they do not, the demo starts for itself."""

    database_url: Secret | None = None
    """Of an administrator."""
    aws: Mapping[str, str] | None = field(default=None, repr=False)
    """Everything that the environment says about AWS, credentials included."""


def given_servers(environ: Mapping[str, str] | None = None) -> Given:
    """What the environment gives.

    :param environ: the variables; ``None`` takes the environment of this process.
    :raises SettingsError: an address is wrong, or one of SQS and S3 is given without the other.
    """
    aws = starting_with("AWS_", "BATON_AWS_", "BATON_PRESIGN_", environ=environ)
    named = [name for name in (_SQS, _S3) if name in aws]
    settings = load({**starting_with("DATABASE_URL", environ=environ), **(aws if named else {})})
    if len(named) == 1:
        (missing,) = {_SQS, _S3} - set(named)
        raise SettingsError([f"{missing}: not set, and {named[0]} is; the demo takes both from settings, or neither"])
    url = settings.database.url
    if url is not None:
        _check_url(url.reveal())
    return Given(database_url=url, aws=aws if named else None)


def check_entrance(server: ExternalPostgres, engine: Engine, *, database: str) -> None:
    """Make sure that a database can be made and used, before anything is made.

    :param engine: the administrator's.
    :param database: the name of one that is not there yet.
    :raises SettingsError: the administrator may not make databases and roles, or a role is not let in.
    """
    with engine.connect() as connection:
        user, may = connection.execute(_MAY).one()
    if not may:
        raise SettingsError([f"DATABASE_URL: {user} must be allowed to create databases and roles (an administrator)"])
    refusals = {role: words for role in ROLES if (words := server.refusal(role, database)) is not None}
    if refusals:
        needed = "the server must let these roles in without a password (trust in its pg_hba.conf)"
        words = next(iter(refusals.values()))
        raise SettingsError([f"DATABASE_URL: {needed}: {', '.join(refusals)}; it says: {words}"])


def _check_url(url: str) -> None:
    try:
        twice = [name for name in _BEFORE_THE_MARK if name in make_url(url).query]
    except (ArgumentError, ValueError):
        # Its words may be a piece of the password.
        raise SettingsError(["DATABASE_URL: is not a URL that can be read"]) from None
    if twice:
        raise SettingsError([f"DATABASE_URL: {', '.join(twice)} must stand before the question mark"])
