"""Where an operator works: every firm's documents, seen as a role that cannot write, or repaired as the one that may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine, text

from baton.cli.desks import account
from baton.db import selfcheck
from baton.db.access import Role
from baton.db.connect import database_engine
from baton.settings.loading import load
from baton.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Station:
    """One database, whole."""

    settings: Settings
    engine: Engine
    actor: str
    """Who works here, for the ledgers."""


@contextmanager
def open_station(*, writes: bool = False, connections: int = 2, checked: bool = True) -> Iterator[Station]:
    """Connect as the observer, or as the reconciler.

    :param writes: the reconciler is needed; otherwise either of the two will do.
    :param connections: used at once, at most.
    :param checked: whether a database that is not fit is refused; an examination wants to tell of it instead.
    :raises SettingsError: the environment is wrong.
    :raises StartupRefusal: the role sees more or less than it should.
    """
    settings = load(required=("DATABASE_URL",))
    if settings.database.url is None:
        raise ValueError("DATABASE_URL is not set")
    engine = database_engine(
        settings.database.url.reveal(),
        application="baton-cli",
        pool_size=connections,
        connect_timeout=settings.database.connect_timeout,
    )
    try:
        if checked:
            selfcheck.check(engine, role=Role.RECONCILER if writes else _reader(engine))
        yield Station(settings=settings, engine=engine, actor=settings.person.actor or account())
    finally:
        engine.dispose()


def _reader(engine: Engine) -> Role:
    """Whoever may repair may look; everybody else is measured by the observer."""
    with engine.connect() as connection:
        user = connection.execute(text("SELECT current_user")).scalar_one()
    return Role.RECONCILER if user == Role.RECONCILER.value else Role.OBSERVER
