"""What the pipeline asks of an agent, and the only answer that accepts it."""

import re
from enum import StrEnum
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints, ValidationError

from baton.contract import limits, strictjson
from baton.contract.errors import (
    AnswerForAnotherRun,
    AnswerMalformed,
    DeliveryMissing,
    InvocationInvalid,
    InvocationNotJson,
)
from baton.contract.model import ContractModel
from baton.contract.purposes import SCHEMA_OF, Purpose, SchemaName
from baton.contract.wording import GivenName, clean_line

ONCE_HEADER: Final = "If-None-Match"
"""The header, with the value `*`, that lets an artifact be written once; a second PUT answers 412."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_UUID: Final = re.compile(r"\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?", re.IGNORECASE)


def looks_like_id(text: str) -> bool:
    """Whether a string is a UUID, the form of every id of the platform. Ids are not for agents to name."""
    return _UUID.fullmatch(text.strip()) is not None


def _reference(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = clean_line(value, limit=limits.MAX_REFERENCE)
    return None if not text or looks_like_id(text) else text


Url = Annotated[str, StringConstraints(max_length=limits.MAX_URL, pattern=r"^https?://[!-~]+$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DocumentReference = Annotated[str | None, BeforeValidator(_reference)]
"""A number that people use for a document. What is an id, or nothing, becomes None rather than an error."""


class InputKind(StrEnum):
    """What an input pointer leads to."""

    TEXT = "text"
    """The extracted text, page by page (see `baton.contract.pages`) or plain."""
    OBJECT = "object"
    """The file as it was uploaded."""


class InputPointer(ContractModel):
    """Where the agent may read one input. `url` is a presigned GET and therefore a secret."""

    kind: InputKind
    url: Url = Field(repr=False)
    content_type: GivenName
    sha256: Sha256 | None = None
    """Of the bytes behind the URL, in lower-case hex; None when it is not known."""


class Candidate(ContractModel):
    """A document of the same matter that a link may point to."""

    document_ref: DocumentReference = None
    """A number that people use for it (an exhibit's, a register's); None where it has none. Never its id."""
    name: GivenName


class InvocationContext(ContractModel):
    """What is known about the document without reading it. No content."""

    file_name: GivenName | None = None
    content_type: GivenName | None = None
    page_count: int | None = Field(default=None, ge=0, le=limits.MAX_PAGE_NUMBER)
    our_side: tuple[GivenName, ...] = Field(default=(), max_length=limits.MAX_OUR_SIDE)
    """Names of the parties that the firm acts for in this matter."""
    candidates: tuple[Candidate, ...] = Field(default=(), max_length=limits.MAX_CANDIDATES)


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("a header that cannot be sent")
        if len(value) > limits.MAX_HEADER_VALUE:
            raise ValueError("a header value that is too long")
    lowered = {name.lower(): value for name, value in headers.items()}
    if len(lowered) != len(headers):
        raise ValueError("a header that is given twice")
    if lowered.get(ONCE_HEADER.lower()) != "*":
        raise ValueError(f"{ONCE_HEADER}: * is missing")
    return headers


class ResultDelivery(ContractModel):
    """Where, how and until when the result is delivered. `url` is a presigned PUT and therefore a secret."""

    url: Url = Field(repr=False)
    method: Literal["PUT"] = "PUT"
    headers: Annotated[dict[str, str], AfterValidator(_sendable)] = Field(repr=False, max_length=limits.MAX_HEADERS)
    """To be sent word for word: they are part of the signature."""
    schema_name: SchemaName = Field(alias="schema")
    deadline: AwareDatetime
    """RFC 3339, with an offset. What arrives later is ignored."""
    max_bytes: int = Field(default=limits.DEFAULT_ARTIFACT_BYTES, ge=1024, le=limits.MAX_ARTIFACT_BYTES)


class Invocation(ContractModel):
    """One request for one result. Building one raises pydantic's ValidationError where a bound is broken."""

    run_id: UUID
    purpose: Purpose
    inputs: tuple[InputPointer, ...] = Field(min_length=1, max_length=limits.MAX_INPUTS)
    context: InvocationContext = InvocationContext()
    result_delivery: ResultDelivery

    def body(self) -> bytes:
        """The bytes to POST: JSON without members that are None."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()


class Accepted(ContractModel):
    """The answer to a valid invocation, the first time and every time after."""

    run_id: UUID
    status: Literal["accepted"]

    def body(self) -> bytes:
        """The bytes to answer with."""
        return self.model_dump_json().encode()


def parse_invocation(body: bytes) -> Invocation:
    """Read an invocation as an agent must.

    Raises InvocationNotJson (400), DeliveryMissing or InvocationInvalid (422), and nothing else.
    """
    if len(body) > limits.MAX_INVOCATION_BYTES:
        raise InvocationNotJson(f"more than {limits.MAX_INVOCATION_BYTES} bytes")
    try:
        value = strictjson.loads(body)
    except strictjson.NotStrictJson as error:
        raise InvocationNotJson(str(error)) from None
    if not isinstance(value, dict):
        raise InvocationNotJson("not an object")
    if value.get("result_delivery") is None:
        raise DeliveryMissing("no result_delivery")
    try:
        invocation = Invocation.model_validate_json(body)
    except ValidationError as error:
        raise InvocationInvalid(describe(error)) from None
    if invocation.result_delivery.schema_name is not SCHEMA_OF[invocation.purpose]:
        raise InvocationInvalid("result_delivery.schema: not the schema of this purpose")
    return invocation


def parse_accepted(body: bytes, *, run_id: UUID) -> Accepted:
    """Read an agent's answer to the invocation of `run_id`.

    Raises AnswerMalformed or AnswerForAnotherRun, and nothing else.
    """
    if len(body) > limits.MAX_ACCEPTED_BYTES:
        raise AnswerMalformed(f"more than {limits.MAX_ACCEPTED_BYTES} bytes")
    try:
        strictjson.loads(body)
        accepted = Accepted.model_validate_json(body)
    except strictjson.NotStrictJson as error:
        raise AnswerMalformed(str(error)) from None
    except ValidationError as error:
        raise AnswerMalformed(describe(error)) from None
    if accepted.run_id != run_id:
        raise AnswerForAnotherRun("run_id: another run")
    return accepted


def describe(error: ValidationError) -> str:
    """The first fault of a validation as `where: what kind`; positions and kinds only, no values."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # The name of a member that should not be there is the sender's own text.
    known = first["loc"][:-1] if first["type"] == "extra_forbidden" else first["loc"]
    where = ".".join(part if isinstance(part, str) else f"[{part}]" for part in known)
    more = error.error_count() - 1
    return f"{where[:200] or 'value'}: {first['type']}" + (f" and {more} more" if more else "")
