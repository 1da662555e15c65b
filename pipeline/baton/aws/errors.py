"""Errors of queues and object store.

AwsError
├── Unavailable             the service as a whole; back off, count it against nobody
│   ├── QueueUnavailable
│   └── StoreUnavailable
├── Missing
│   ├── QueueMissing
│   ├── BucketMissing
│   └── ObjectMissing
├── ObjectExists            a conditional put found something there
├── ObjectTooLarge
├── ObjectAltered           the bytes that arrived are not those that were announced; nothing is kept of them
├── KeyRefused              an object key that no part of Baton would make
├── RequestRefused          this request's own fault; sending it again cannot help
└── CredentialsTooShort     a presigned URL would die before its time

Texts hold names, codes and the service's own words, never content, so they may be logged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class FaultKind(StrEnum):
    """Why a service as a whole did not do what it was asked."""

    TRANSPORT = "transport"
    """No connection, or one that broke."""
    TIMEOUT = "timeout"
    """No answer in time; the request may have been carried out."""
    THROTTLED = "throttled"
    DENIED = "denied"
    """Wrong, missing or expired credentials, or a policy that forbids it."""
    SERVER = "server"
    """An answer of the 5xx kind, or one that made no sense."""


class AwsError(Exception):
    """Whatever queues or object store could not do; ``str()`` is safe to log."""

    loggable: ClassVar[bool] = True

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The service's or the SDK's own name of the fault; may be empty."""


class Unavailable(AwsError):
    """The service as a whole: back off and try again later; nobody's attempt is spent."""

    def __init__(self, message: str, *, kind: FaultKind, code: str = "") -> None:
        super().__init__(message, code=code)
        self.kind = kind


class QueueUnavailable(Unavailable):
    """The queue service."""


class StoreUnavailable(Unavailable):
    """The object store."""


class Missing(AwsError):
    """What was asked for does not exist."""


class QueueMissing(Missing):
    """No such queue: never created, or deleted while in use. ``Queue.ensure`` makes it again."""


class BucketMissing(Missing):
    """No such bucket. ``Store.ensure`` makes it again."""


class ObjectMissing(Missing):
    """The bucket is there, the object is not."""


class ObjectExists(AwsError):
    """A put that allows no overwriting found an object of that key."""


class ObjectTooLarge(AwsError):
    """The object is larger than the caller allows."""


class ObjectAltered(AwsError):
    """The store was given other bytes than the SHA-256 that came with them; it keeps what was there before."""


class KeyRefused(AwsError, ValueError):
    """A text that is no object key of ours."""


class RequestRefused(AwsError):
    """The request itself is at fault."""


class CredentialsTooShort(AwsError):
    """The signing credentials expire before the URL would."""
