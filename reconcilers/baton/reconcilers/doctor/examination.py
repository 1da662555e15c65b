"""The whole examination: every look in turn; one that fails says so and stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from baton.aws.clients import Clients
from baton.reconcilers.doctor import clocks, queues, rights, sessions, storage, traffic
from baton.reconcilers.doctor.findings import Finding, fault, or_ok, unknown, warning
from baton.settings.loading import near_misses
from baton.settings.model import Settings

#: Looks at the database, each in a transaction of its own.
_DATABASE: Mapping[str, Callable[[Connection], Iterable[Finding]]] = {
    "version": rights.versions,
    "roles": rights.roles,
    "policies": rights.policies,
    "clock": lambda connection: [clocks.clock(connection)],
    "sessions": sessions.sessions,
    "storage": storage.storage,
    "relay": traffic.relays,
    "consumers": traffic.consumers,
    "dead-letters": traffic.letters,
    "breaker": traffic.held_back,
}


def examine(engine: Engine, settings: Settings, clients: Clients) -> Iterator[Finding]:
    """Look at everything, and tell each finding as soon as there is one. Writes nothing, anywhere.

    :param engine: of the observer or the reconciler.
    """
    yield from _settings()
    yield from _database(engine)
    yield from queues.queues(clients, settings)
    yield from queues.bucket(clients, settings)


def _settings() -> tuple[Finding, ...]:
    found = [
        warning("settings", f"{name} is none of Baton's settings", todo=f"if {meant} was meant, correct it")
        for name, meant in near_misses()
    ]
    return or_ok(found, "settings", "nothing misspelt in the environment")


def _database(engine: Engine) -> Iterator[Finding]:
    for name, look in _DATABASE.items():
        try:
            with engine.connect() as connection:
                found = list(look(connection))
        except (DBAPIError, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or error.connection_invalidated or _away(error):
                yield fault("database", f"does not answer: {_words(error)}", todo="see to Postgres and DATABASE_URL")
                return
            yield unknown(name, f"could not be looked at: {_words(error)}", todo="connect as baton_observer")
        except Exception as error:  # noqa: BLE001 - rows that make no sense are what a doctor is asked about
            yield unknown(
                name, f"makes no sense: {_words(error)}", todo="look for rows that were edited or deleted by hand"
            )
        else:
            yield from found


def _away(error: DBAPIError) -> bool:
    """A connection was never made: the server had no chance to give a state."""
    return getattr(error.orig, "sqlstate", None) is None


def _words(error: Exception) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
