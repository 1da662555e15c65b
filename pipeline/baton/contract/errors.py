"""What can be wrong with a message of the contract.

    ContractError
    ├── InvocationError                 the agent refuses the invocation
    │   ├── InvocationNotJson               400
    │   ├── InvocationInvalid               422
    │   └── DeliveryMissing                 422, no result_delivery
    ├── AnswerError                     the pipeline cannot take the answer as an acceptance
    │   ├── AnswerMalformed
    │   └── AnswerForAnotherRun
    ├── PagesInvalid                    the page text cannot be read
    └── ArtifactError                   the artifact is rejected
        ├── ArtifactTooLarge
        ├── ArtifactNotJson
        ├── ArtifactMalformed               JSON, but not the four members of an artifact
        ├── ArtifactNamesDocument
        ├── ArtifactWrongSchema
        ├── ArtifactWrongRun
        ├── ArtifactWrongDigest
        └── EffectError
            ├── UnknownEffect
            └── InvalidEffect

Each class has a machine `code` and a `message` that may be shown to a lawyer as it stands. `detail` is for engineers:
it says where and what kind, never a value that came from the document.
"""

from typing import ClassVar


class ContractError(Exception):
    """A message that breaks the contract."""

    code: ClassVar[str] = "contract"
    message: ClassVar[str] = "The answer of the registration agent could not be used."

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"{self.code}: {detail}" if detail else self.code)
        self.detail = detail


class InvocationError(ContractError):
    """An invocation that an agent refuses; `status` is the HTTP status it answers with."""

    code = "invocation"
    message = "The request to the registration agent was not valid."
    status: ClassVar[int] = 422


class InvocationNotJson(InvocationError):
    """The body is not one JSON object of the allowed size, depth and numbers."""

    code = "invocation_not_json"
    status = 400


class InvocationInvalid(InvocationError):
    """A member is missing, unknown or out of bounds."""

    code = "invocation_invalid"


class DeliveryMissing(InvocationError):
    """There is no `result_delivery`, so the result could go nowhere."""

    code = "delivery_missing"
    message = "The request to the registration agent did not say where the result should go."


class AnswerError(ContractError):
    """An answer that cannot be taken as an acceptance of the run."""

    code = "answer"
    message = "The registration agent gave an answer that could not be understood."


class AnswerMalformed(AnswerError):
    """The body is not exactly a run id and the status `accepted`."""

    code = "answer_malformed"


class AnswerForAnotherRun(AnswerError):
    """The answer accepts another run than the one that was asked for."""

    code = "answer_for_another_run"


class PagesInvalid(ContractError):
    """The page text says it is page JSON, but is not."""

    code = "pages_invalid"
    message = "The text of the document could not be read by the registration agent."


class ArtifactError(ContractError):
    """An artifact that is rejected as a whole; nothing of it is applied."""

    code = "artifact"


class ArtifactTooLarge(ArtifactError):
    """More bytes than the invocation allowed."""

    code = "artifact_too_large"
    message = "The registration agent returned a result that is too large to accept."


class ArtifactNotJson(ArtifactError):
    """Not strict JSON: broken, duplicate names, NaN, too deep, numbers that do not survive, broken characters."""

    code = "artifact_not_json"
    message = "The registration agent returned a result that could not be read."


class ArtifactMalformed(ArtifactError):
    """Readable, but not an object of exactly `schema`, `run_id`, `effects` and `digest`."""

    code = "artifact_malformed"
    message = "The registration agent returned a result that is not in the agreed form."


class ArtifactNamesDocument(ArtifactError):
    """A member tries to say which document, matter or firm the result is about."""

    code = "artifact_names_document"
    message = "The registration agent tried to choose which record to change, which it may not do."


class ArtifactWrongSchema(ArtifactError):
    """Another schema than the one the run asked for."""

    code = "artifact_wrong_schema"
    message = "The registration agent returned a different kind of result than it was asked for."


class ArtifactWrongRun(ArtifactError):
    """The artifact belongs to another run."""

    code = "artifact_wrong_run"
    message = "The registration agent returned a result that belongs to a different request."


class ArtifactWrongDigest(ArtifactError):
    """The digest is not that of the effects: damaged on the way, or altered."""

    code = "artifact_wrong_digest"
    message = "The result of the registration agent was damaged on the way and was not used."


class EffectError(ArtifactError):
    """An effect that cannot be applied."""

    code = "effect"
    message = "The registration agent asked for a change that could not be understood."


class UnknownEffect(EffectError):
    """An effect, or an intent in it, of a kind that the schema does not have."""

    code = "unknown_effect"
    message = "The registration agent asked for a change that this system does not know."


class InvalidEffect(EffectError):
    """A known effect with a member that is missing, unknown or out of bounds."""

    code = "invalid_effect"
    message = "The registration agent asked for a change that is not complete or not allowed."
