"""What kept a pass from being made, as a reason and a sentence: nothing of an error's own text, which may name anything."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from baton.aws.errors import AwsError
from baton.consumers.faults import Blame, blame
from baton.db.errors import StartupRefusal
from baton.operator.api import ApiError
from baton.operator.conditions import Failure
from baton.operator.credentials import SecretRefused
from baton.operator.specs import SpecInvalid
from baton.operator.vocabulary import Reason

#: How a server turns a login away. Before a session there is no SQLSTATE, only its words.
_NOT_LET_IN: Final = (
    "password authentication failed",
    "no pg_hba.conf entry",
    "authentication failed",
    "is not permitted to log in",
)
_UNKNOWN: Final = ('role "', "does not exist")


class Conflict(Exception):
    """Another resource works on the database."""

    def __init__(self, owner: str | None) -> None:
        super().__init__(f"another resource works on this database: {owner or 'it has just let go'}")


class NotOwned(Exception):
    """The reconciler does not work on its database, and nobody else does."""


class ReconcilerMissing(Exception):
    """A redrive names a reconciler that is not there."""


class ObserveOnly(Exception):
    """A redrive names a reconciler that may not repair."""


class Stopped(Exception):
    """A redrive was stopped in the database."""


_OWN_WORDS: Final[dict[type[Exception], Reason]] = {
    SpecInvalid: Reason.SPEC_INVALID,
    Conflict: Reason.CONFLICT,
    NotOwned: Reason.NOT_OWNED,
    ReconcilerMissing: Reason.RECONCILER_MISSING,
    ObserveOnly: Reason.OBSERVE_ONLY,
    Stopped: Reason.STOPPED,
}


def failure_of(error: BaseException) -> Failure:
    """The reason and sentence of an error."""
    if isinstance(error, SecretRefused):
        return Failure(error.reason, str(error))
    if isinstance(error, StartupRefusal):
        more = "" if len(error.faults) == 1 else f" (and {len(error.faults) - 1} more)"
        return Failure(Reason.DATABASE_UNFIT, _sentence(error.faults[0] + more))
    for kind, reason in _OWN_WORDS.items():
        if isinstance(error, kind):
            return Failure(reason, _sentence(str(error)))
    return _by_kind(error)


def _by_kind(error: BaseException) -> Failure:
    if isinstance(error, SQLAlchemyError):
        if isinstance(error, DBAPIError) and _is_login(error):
            return Failure(Reason.LOGIN_REFUSED, "The database does not let the login of the secret in.")
        if blame(error) is Blame.DATABASE:
            return Failure(Reason.DATABASE_UNREACHABLE, "The database does not answer.")
    if isinstance(error, AwsError):
        return Failure(Reason.SERVICES_UNREACHABLE, "Queues or bucket do not answer, or are not there.")
    if isinstance(error, ApiError):
        return Failure(Reason.PASS_FAILED, "The secrets could not be read: the API server does not answer.")
    return Failure(Reason.PASS_FAILED, "It failed; the operator's log says how.")


def _is_login(error: DBAPIError) -> bool:
    if (getattr(error.orig, "sqlstate", None) or "").startswith("28"):
        return True
    words = str(error.orig)
    return any(each in words for each in _NOT_LET_IN) or all(each in words for each in _UNKNOWN)


def _sentence(text: str) -> str:
    # a name, such as app.clock(), is written as it is
    if text.partition(" ")[0].isalpha():
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
