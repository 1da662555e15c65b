"""Whose failure it is decides whether an attempt is spent and whether receiving goes on."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DataError, IntegrityError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from baton.aws.errors import BucketMissing, FaultKind, ObjectMissing, QueueMissing, RequestRefused, StoreUnavailable
from baton.consumers.faults import Blame, blame


def _operational(orig: Exception) -> OperationalError:
    return OperationalError("SELECT 1", {}, orig)


def _cut_off(orig: Exception) -> InternalError:
    """The server ended the session."""
    return InternalError("UPDATE x", {}, orig, connection_invalidated=True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (_operational(psycopg.OperationalError("connection refused")), Blame.DATABASE),
        (_operational(errors.AdminShutdown()), Blame.DATABASE),
        (_operational(errors.TooManyConnections()), Blame.DATABASE),
        (_operational(errors.DiskFull()), Blame.DATABASE),
        (InternalError("UPDATE x", {}, errors.ReadOnlySqlTransaction()), Blame.DATABASE),
        # Behind a pooler, of a commit whose server was ended.
        (InternalError("", {}, psycopg.InternalError("received 2 results")), Blame.DATABASE),
        (PoolTimeout(), Blame.DATABASE),
        (_operational(errors.DeadlockDetected()), Blame.CONTENTION),
        (_operational(errors.SerializationFailure()), Blame.CONTENTION),
        (_operational(errors.LockNotAvailable()), Blame.CONTENTION),
        (_operational(errors.QueryCanceled()), Blame.WORK),
        (_cut_off(errors.IdleInTransactionSessionTimeout()), Blame.WORK),
        (_cut_off(errors.TransactionTimeout()), Blame.WORK),
        (_cut_off(errors.AdminShutdown()), Blame.DATABASE),
        (IntegrityError("INSERT", {}, errors.UniqueViolation()), Blame.WORK),
        (DataError("INSERT", {}, psycopg.DataError("text holds NUL")), Blame.WORK),
        (StoreUnavailable("s3", kind=FaultKind.TIMEOUT), Blame.SERVICE),
        (QueueMissing("sqs"), Blame.SERVICE),
        (BucketMissing("s3"), Blame.SERVICE),
        (ObjectMissing("s3"), Blame.WORK),
        (RequestRefused("sqs"), Blame.WORK),
        (ValueError("a bug"), Blame.WORK),
        (MemoryError(), Blame.WORK),
    ],
    ids=lambda value: type(getattr(value, "orig", value)).__name__ if isinstance(value, BaseException) else str(value),
)
def test_a_failure_is_blamed_on_whom_it_belongs_to(error: Exception, expected: Blame) -> None:
    """Servers that are away, other transactions, and the work itself are told apart."""
    assert blame(error) is expected
