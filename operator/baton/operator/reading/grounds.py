"""What a question is answered from: the resource as the API server has it now, and its database, read only.

The login is that of the resource's own secret, in transactions that Postgres keeps from writing. So every replica can
answer, the leader or not, and nobody needs a password. Connections are made for one question and closed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from sqlalchemy import Engine, text

from baton.aws.clients import Clients
from baton.db import selfcheck
from baton.db.access import Role
from baton.db.connect import database_engine
from baton.operator import credentials
from baton.operator.api import Api, ApiAway, ApiMissing, ApiRefused, Body
from baton.operator.failures import failure_of
from baton.operator.reading.paths import Asked
from baton.operator.reading.refusals import Broken, Missing, Refused, Unavailable, Unfit
from baton.operator.specs import Wanted
from baton.operator.vocabulary import Plural, Reason
from baton.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Replica:
    """Which replica answers."""

    identity: str
    leads: Callable[[], bool]
    namespace: str | None
    """The only one that is looked after; ``None``: all are."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A database and what goes with it, for one question."""

    engine: Engine
    settings: Settings
    clients: Clients


def resource(api: Api, asked: Asked) -> Body:
    """The resource as it stands now.

    :raises Missing: there is none.
    :raises Unavailable: the API server does not say.
    """
    try:
        return api.resource(Plural.RECONCILERS, asked.namespace, asked.name)
    except ApiMissing:
        raise Missing("NotFound", "there is no such RegistrationReconciler here") from None
    except (ApiAway, ApiRefused):
        raise Unavailable("ApiServerAway", "the API server does not hand the resource out") from None


@contextmanager
def opened(api: Api, body: Body, *, ambient: Settings) -> Iterator[Ground]:
    """Open what a resource speaks of; whatever fails in it is told as the resource's conditions tell it.

    :raises Refused: with the reason of a condition.
    """
    with ExitStack() as ends:
        try:
            wanted = Wanted.of(body)
            found = credentials.read(api, wanted, ambient=ambient.aws)
            settings = wanted.settings(database=found.database, aws=found.aws, ambient=ambient)
            engine = database_engine(
                found.database.reveal(),
                application=f"baton-operator-reading/{version('baton')}",
                pool_size=1,
                connect_timeout=settings.database.connect_timeout,
            ).execution_options(postgresql_readonly=True)
            ends.callback(engine.dispose)
            selfcheck.check(engine, role=_reader(engine))
            clients = Clients(settings.aws)
            ends.callback(clients.close)
            yield Ground(engine, settings, clients)
        except Refused:
            raise
        except Exception as error:
            raise _refusal(error) from error


def _reader(engine: Engine) -> Role:
    """Whoever may repair may look; everybody else is measured by the observer."""
    with engine.connect() as connection:
        user = connection.execute(text("SELECT current_user")).scalar_one()
    return Role.RECONCILER if user == Role.RECONCILER.value else Role.OBSERVER


def _refusal(error: Exception) -> Refused:
    failure = failure_of(error)
    if failure.reason.needs_somebody:
        return Unfit(failure.reason, failure.message)
    if failure.reason is Reason.PASS_FAILED and not isinstance(error, ApiAway):
        return Broken("Failed", "it could not be answered; the operator's log says why")
    return Unavailable(failure.reason, failure.message)
