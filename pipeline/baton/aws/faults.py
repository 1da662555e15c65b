"""What an error of the SDK means: one table of codes, one function.

Codes are the ones that SQS and S3 document, the SDK's own retry tables included. An unknown code
of the 4xx kind is the request's own fault; anything else unknown is the service's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.client import HTTPException
from typing import Final

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from baton.aws.errors import (
    AwsError,
    BucketMissing,
    FaultKind,
    Missing,
    ObjectAltered,
    ObjectExists,
    ObjectMissing,
    QueueMissing,
    QueueUnavailable,
    RequestRefused,
    StoreUnavailable,
    Unavailable,
)


class Service(StrEnum):
    """The two services that Baton talks to."""

    SQS = "sqs"
    S3 = "s3"


THROTTLED: Final = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "AWS.SimpleQueueService.RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "OverLimit",
        "KmsThrottled",
        "KMS.ThrottlingException",
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "429",
    }
)
DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AllAccessDisabled",
        "AccountProblem",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "TokenRefreshRequired",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnauthorizedAccess",
        "UnrecognizedClientException",
        "KmsAccessDenied",
        "KmsDisabled",
        "KmsInvalidKeyUsage",
        "KmsInvalidState",
        "KmsNotFound",
        "KmsOptInRequired",
        "401",
        "403",
    }
)
SERVER: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "RequestTimeout",
        "RequestTimeoutException",
        "OperationAborted",
        "QueueDeletedRecently",
        "AWS.SimpleQueueService.QueueDeletedRecently",
    }
)
_NO_QUEUE: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_NO_OBJECT: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_NO_BUCKET: Final = frozenset({"NoSuchBucket"})
_CREDENTIALS: Final = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.TokenRetrievalError,
)
_SDK_ERRORS: Final = (sdk.BotoCoreError, sdk.ClientError, OSError, HTTPException, HTTPError)
# What the SDK's parsers raise when something that is not the service answers.
_NONSENSE: Final = (
    ResponseParserError,
    sdk.ChecksumError,
    sdk.FlexibleChecksumError,
    ValueError,
    LookupError,
)
_EXISTS: Final = frozenset({"PreconditionFailed", "412"})
_ALTERED: Final = frozenset({"BadDigest", "XAmzContentSHA256Mismatch"})


def kind_of(code: str) -> FaultKind | None:
    """What a code says about the service as a whole; ``None`` where it blames the request."""
    if code in THROTTLED:
        return FaultKind.THROTTLED
    if code in DENIED:
        return FaultKind.DENIED
    if code in SERVER:
        return FaultKind.SERVER
    return None


def understood(error: Exception, *, service: Service, call: str) -> AwsError:
    """The typed error that stands for ``error``; never raises.

    Args:
        error: what came out of the SDK.
        service: which service was asked.
        call: the action's name, for the text.
    """
    if isinstance(error, AwsError):
        return error
    if isinstance(error, sdk.ClientError):
        return _answered(error, service=service, call=call)
    code = type(error).__name__
    if isinstance(error, sdk.ParamValidationError):
        return RequestRefused(f"{service} {call}: {code}", code=code)
    return _unavailable(service, f"{service} {call}: {code}", kind=_silent_kind(error), code=code)


@contextmanager
def translated(service: Service, call: str) -> Iterator[None]:
    """Lets only ``AwsError`` out of a block that uses the SDK."""
    try:
        yield
    except AwsError:
        raise
    except (*_SDK_ERRORS, *_NONSENSE) as error:
        raise understood(error, service=service, call=call) from error


def _answered(error: sdk.ClientError, *, service: Service, call: str) -> AwsError:
    answer = error.response.get("Error", {})
    code = str(answer.get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    words = " ".join(str(answer.get("Message", "")).split())[:300]
    text = f"{service} {call}: {code or status}" + (f": {words}" if words else "")
    missing = _missing(code, text, service=service)
    if missing is not None:
        return missing
    if code in _EXISTS:
        return ObjectExists(text, code=code)
    if code in _ALTERED:
        return ObjectAltered(text, code=code)
    kind = kind_of(code)
    if kind is None and status in {401, 403}:
        kind = FaultKind.DENIED
    if kind is None and status == 429:
        kind = FaultKind.THROTTLED
    if kind is None and 400 <= status < 500:
        return RequestRefused(text, code=code)
    return _unavailable(service, text, kind=kind or FaultKind.SERVER, code=code)


def _missing(code: str, text: str, *, service: Service) -> Missing | None:
    if service is Service.SQS:
        return QueueMissing(text, code=code) if code in _NO_QUEUE else None
    if code in _NO_BUCKET:
        return BucketMissing(text, code=code)
    return ObjectMissing(text, code=code) if code in _NO_OBJECT else None


def _silent_kind(error: Exception) -> FaultKind:
    """The kind of an error that is no proper answer of the service."""
    if isinstance(error, sdk.ReadTimeoutError | TimeoutError):
        return FaultKind.TIMEOUT
    if isinstance(error, _CREDENTIALS):
        return FaultKind.DENIED
    # A connection that was never made is no time-out: nothing was sent.
    return FaultKind.SERVER if isinstance(error, _NONSENSE) else FaultKind.TRANSPORT


def _unavailable(service: Service, text: str, *, kind: FaultKind, code: str) -> Unavailable:
    made = QueueUnavailable if service is Service.SQS else StoreUnavailable
    return made(text, kind=kind, code=code)
