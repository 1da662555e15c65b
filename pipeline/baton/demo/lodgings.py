"""What the demo makes for itself on servers that are somebody else's, and removes at its end. Nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from baton.aws.clients import Clients
from baton.aws.errors import AwsError, Missing
from baton.aws.objects import Store
from baton.aws.queues import configured
from baton.embedded.waiting import poll
from baton.settings.loading import load
from baton.settings.stores import Bucket, Queues

Say = Callable[[str], None]

_PATIENCE: Final = 10.0  # seconds in which the sessions of processes that were killed have ended
_AGAIN: Final = 0.2


@contextmanager
def own_database(administrator: Engine, name: str, *, keep: bool, say: Say) -> Iterator[None]:
    """A new, empty database for the length of a block.

    :param administrator: in autocommit, on another database.
    :param say: is told when the database cannot be removed.
    """
    try:
        with administrator.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"))
        yield
    finally:
        if not keep:
            surely(lambda: _drop(administrator, name, say=say))


@contextmanager
def own_places(environ: Mapping[str, str], bucket: Bucket, queues: Queues, *, keep: bool, say: Say) -> Iterator[None]:
    """A new bucket, and new queues with their dead-letter queues, for the length of a block.

    :param environ: leads to the servers.
    :param say: is told what cannot be removed.
    :raises AwsError: they cannot be made.
    """
    clients = Clients(load(environ).aws)
    store, made = Store(clients, bucket), configured(clients, queues)
    dead = [each.dead for each in made if each.dead is not None]
    removals = {
        f"bucket {store.name}": store.remove,
        **{f"queue {each.name}": each.delete for each in (*made, *dead)},
    }
    try:
        store.ensure()
        for each in made:
            each.ensure()
        yield
    finally:
        if not keep:
            surely(lambda: _remove(removals, say=say))
        clients.close()


def _drop(administrator: Engine, name: str, *, say: Say) -> None:
    failure: list[DBAPIError] = []

    def gone() -> bool:
        try:
            with administrator.connect() as connection:
                connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        except DBAPIError as error:
            failure.append(error)
            return False
        return True

    if not poll(gone, timeout=_PATIENCE, interval=_AGAIN):
        words = str(failure[-1].orig).strip().splitlines()[:1]
        say(f"database {name} could not be removed and stays: {''.join(words)}")


def _remove(removals: Mapping[str, Callable[[], None]], *, say: Say) -> None:
    for what, remove in removals.items():
        try:
            remove()
        except Missing:
            continue
        except AwsError as error:
            say(f"{what} could not be removed and stays: {error}")


def surely(remove: Callable[[], object]) -> None:
    """Remove, and begin again where the wish to end comes in the middle of it; it comes once."""
    try:
        remove()
    except KeyboardInterrupt:
        remove()
        raise
