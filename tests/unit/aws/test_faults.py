"""Every error of the SDK gets the meaning that decides who pays for it."""

import http.client

import pytest
from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ProtocolError

from baton.aws.errors import (
    AwsError,
    BucketMissing,
    FaultKind,
    ObjectAltered,
    ObjectExists,
    ObjectMissing,
    QueueMissing,
    QueueUnavailable,
    RequestRefused,
    StoreUnavailable,
    Unavailable,
)
from baton.aws.faults import Service, translated, understood


def answer(code: str, status: int = 400, message: str = "words") -> sdk.ClientError:
    """An error answer as the SDK raises it."""
    return sdk.ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "Call",
    )


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, FaultKind.THROTTLED),
        ("RequestThrottled", 403, FaultKind.THROTTLED),
        ("SlowDown", 503, FaultKind.THROTTLED),
        ("Strange", 429, FaultKind.THROTTLED),
        ("AccessDenied", 403, FaultKind.DENIED),
        ("ExpiredToken", 400, FaultKind.DENIED),
        ("InvalidClientTokenId", 403, FaultKind.DENIED),
        ("KmsAccessDenied", 400, FaultKind.DENIED),
        ("Strange", 401, FaultKind.DENIED),
        ("InternalError", 500, FaultKind.SERVER),
        ("ServiceUnavailable", 503, FaultKind.SERVER),
        ("Strange", 502, FaultKind.SERVER),
        ("", 0, FaultKind.SERVER),
        ("AWS.SimpleQueueService.QueueDeletedRecently", 400, FaultKind.SERVER),
    ],
)
def test_the_service_as_a_whole_is_told_by_kind(code: str, status: int, kind: FaultKind) -> None:
    """Throttling, credentials and 5xx are nobody's own fault."""
    error = understood(answer(code, status), service=Service.SQS, call="SendMessageBatch")
    assert isinstance(error, QueueUnavailable)
    assert error.kind is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sdk.ReadTimeoutError(endpoint_url="http://x"), FaultKind.TIMEOUT),
        (sdk.ConnectTimeoutError(endpoint_url="http://x"), FaultKind.TRANSPORT),
        (sdk.EndpointConnectionError(endpoint_url="http://x"), FaultKind.TRANSPORT),
        (sdk.ConnectionClosedError(endpoint_url="http://x"), FaultKind.TRANSPORT),
        (sdk.NoCredentialsError(), FaultKind.DENIED),
        (ResponseParserError("<html>"), FaultKind.SERVER),
        (KeyError("MessageId"), FaultKind.SERVER),
        (http.client.IncompleteRead(b""), FaultKind.TRANSPORT),
        (ProtocolError("broken"), FaultKind.TRANSPORT),
        (TimeoutError(), FaultKind.TIMEOUT),
        (ConnectionResetError(), FaultKind.TRANSPORT),
    ],
)
def test_silence_and_nonsense_are_told_apart(error: Exception, kind: FaultKind) -> None:
    """Only a time-out after sending may mean that the request was carried out."""
    with pytest.raises(Unavailable) as raised, translated(Service.S3, "HeadObject"):
        raise error
    assert isinstance(raised.value, StoreUnavailable)
    assert raised.value.kind is kind


@pytest.mark.parametrize(
    ("service", "code", "status", "expected"),
    [
        (Service.SQS, "AWS.SimpleQueueService.NonExistentQueue", 400, QueueMissing),
        (Service.SQS, "QueueDoesNotExist", 400, QueueMissing),
        (Service.SQS, "InvalidMessageContents", 400, RequestRefused),
        (Service.SQS, "Strange", 422, RequestRefused),
        (Service.S3, "NoSuchKey", 404, ObjectMissing),
        (Service.S3, "404", 404, ObjectMissing),
        (Service.S3, "NoSuchBucket", 404, BucketMissing),
        (Service.S3, "PreconditionFailed", 412, ObjectExists),
        (Service.S3, "BadDigest", 400, ObjectAltered),
        (Service.S3, "XAmzContentSHA256Mismatch", 400, ObjectAltered),
        (Service.S3, "OperationAborted", 409, StoreUnavailable),
        (Service.S3, "403", 403, StoreUnavailable),
    ],
)
def test_what_is_missing_or_refused_has_its_own_type(
    service: Service, code: str, status: int, expected: type[AwsError]
) -> None:
    """Absence, conflict and the request's own fault are not failures of the service."""
    error = understood(answer(code, status), service=service, call="Call")
    assert type(error) is expected
    assert error.code == code


def test_the_text_is_one_short_line() -> None:
    """Whatever the service says, the text can stand in a log line."""
    text = str(understood(answer("Strange", message="a\nb" * 1000), service=Service.SQS, call="Call"))
    assert "\n" not in text
    assert len(text) < 400
    assert text.startswith("sqs Call: Strange: a b")


@given(code=st.text(max_size=50), status=st.integers(-1, 1000), message=st.text(max_size=50))
def test_every_answer_has_a_meaning(code: str, status: int, message: str) -> None:
    """No code, status or text makes the reading itself fail."""
    for service in Service:
        assert isinstance(understood(answer(code, status, message), service=service, call="Call"), AwsError)


def test_a_mistake_of_ours_is_not_hidden() -> None:
    """What is no error of the SDK passes through."""
    with pytest.raises(TypeError), translated(Service.SQS, "Call"):
        raise TypeError
