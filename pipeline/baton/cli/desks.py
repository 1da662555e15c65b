"""Where a person at the command line works: one firm's documents, seen and changed as its member."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

import click
from sqlalchemy import Connection, Engine

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.cli.identities import firm_id
from baton.db import selfcheck
from baton.db.access import Role
from baton.db.connect import database_engine, firm_transaction
from baton.settings.loading import load
from baton.settings.model import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: Of every command about documents.
FIRM: Final = click.option("--firm", metavar="FIRM", help="Id or name of the firm; else BATON_FIRM.")
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Machine-readable, on standard output.")


def documents_argument(command: Decorated) -> Decorated:
    """One or more documents, by id."""
    return click.argument("documents", metavar="DOCUMENT…", nargs=-1, required=True, type=click.UUID)(command)


@dataclass(frozen=True, slots=True)
class Desk:
    """One firm's documents."""

    settings: Settings
    engine: Engine
    firm: UUID
    actor: str
    """Who works here, for the audit trail."""

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that sees this firm and no other."""
        with firm_transaction(self.engine, self.firm) as connection:
            yield connection

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The bucket, made where it is missing and may be made."""
        clients = Clients(self.settings.aws)
        try:
            store = Store(clients, self.settings.bucket, create=self.settings.queues.create)
            store.ensure()
            yield store
        finally:
            clients.close()


@contextmanager
def open_desk(firm: str | None, *, connections: int = 2) -> Iterator[Desk]:
    """Connect as the firm's member.

    :param firm: id or name; ``None`` takes the settings'.
    :param connections: used at once, at most.
    :raises SettingsError: the environment is wrong.
    :raises StartupRefusal: the role sees more or less than a member does.
    """
    settings = load(required=("DATABASE_URL",))
    # a name that was given and is blank is a variable that was not set: never another firm's
    named = settings.person.firm if firm is None else firm
    if not named or not named.strip():
        raise click.UsageError("say for which firm: --firm, or BATON_FIRM")
    if settings.database.url is None:
        raise ValueError("DATABASE_URL is not set")
    with ExitStack() as opened:
        engine = database_engine(
            settings.database.url.reveal(),
            application="baton-cli",
            pool_size=connections,
            connect_timeout=settings.database.connect_timeout,
        )
        opened.callback(engine.dispose)
        selfcheck.check(engine, role=Role.MEMBER_APP)
        yield Desk(settings=settings, engine=engine, firm=firm_id(named), actor=settings.person.actor or account())


def account() -> str:
    """Whose account runs the program."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's account without a name
        return f"uid {os.getuid()}"
