"""The ways in which the agent can be told to go wrong, so that the pipeline's answer to each can be tried.

Nothing here is random: a rule says what happens, to which invocations and how often.
"""

import threading
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self
from uuid import UUID

from pydantic import Field, ValidationError, model_validator

from baton.contract.invocations import Invocation, describe
from baton.contract.model import ContractModel
from baton.contract.purposes import Purpose


class Misbehaviour(StrEnum):
    """One way to go wrong: with the answer to an invocation, or with the artifact."""

    REFUSE = "refuse"
    """Answer `status` (4xx or 503), take no work."""
    SERVER_ERROR = "server_error"
    """Answer `status` (5xx), take no work."""
    SLOW_ANSWER = "slow_answer"
    """Take the work, answer after `seconds`."""
    DROP_CONNECTION = "drop_connection"
    """Take the work, close the connection without an answer."""
    WRONG_BODY = "wrong_body"
    """Take the work, answer 200 with something that is no acceptance."""
    WRONG_RUN_ID = "wrong_run_id"
    """Take the work, accept another run."""

    LATE = "late"
    """Deliver after `seconds`, past the deadline if need be."""
    TWICE = "twice"
    """Deliver, and deliver again."""
    NEVER = "never"
    """Deliver nothing."""
    WRONG_DIGEST = "wrong_digest"
    """Deliver with a digest of something else."""
    WRONG_SCHEMA = "wrong_schema"
    """Deliver under a schema that nobody asked for."""
    OTHER_RUN = "other_run"
    """Deliver an artifact that names another run."""
    UNKNOWN_EFFECT = "unknown_effect"
    """Deliver an effect that the schema does not have."""
    NAMES_DOCUMENT = "names_document"
    """Deliver an effect that says which document it is about."""
    NOT_JSON = "not_json"
    """Deliver something that is not JSON."""
    HUGE = "huge"
    """Deliver more bytes than were allowed."""


ANSWERING: Final = frozenset(
    {
        Misbehaviour.REFUSE,
        Misbehaviour.SERVER_ERROR,
        Misbehaviour.SLOW_ANSWER,
        Misbehaviour.DROP_CONNECTION,
        Misbehaviour.WRONG_BODY,
        Misbehaviour.WRONG_RUN_ID,
    }
)
"""Those that go wrong with the answer; they are asked at every POST, the others once, when work begins."""

WORKLESS: Final = frozenset({Misbehaviour.REFUSE, Misbehaviour.SERVER_ERROR})
"""Those that take no work."""

_TIMED: Final = frozenset({Misbehaviour.LATE, Misbehaviour.SLOW_ANSWER})


class Rule(ContractModel):
    """What happens to the invocations that match all members that are set."""

    act: Misbehaviour
    seconds: float = Field(default=0.0, ge=0.0, le=86_400.0)
    """For `late` and `slow_answer`, which need it."""
    status: int | None = None
    """For `refuse` (409 by default) and `server_error` (500 by default)."""
    run_id: UUID | None = None
    purpose: Purpose | None = None
    file_name: str | None = None
    times: int | None = Field(default=None, ge=1)
    """How many times the rule holds; None is always."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.act in _TIMED) != (self.seconds > 0):
            raise ValueError("seconds belong to late and slow_answer")
        if self.status is not None:
            refusal = self.act is Misbehaviour.REFUSE and (400 <= self.status <= 499 or self.status == 503)
            error = self.act is Misbehaviour.SERVER_ERROR and 500 <= self.status <= 599
            if not (refusal or error):
                raise ValueError("a status that does not fit the act")
        return self

    def matches(self, invocation: Invocation) -> bool:
        """Whether the rule is meant for an invocation."""
        return (
            self.run_id in (None, invocation.run_id)
            and self.purpose in (None, invocation.purpose)
            and self.file_name in (None, invocation.context.file_name)
        )


class Script:
    """The rules in force, the first match winning; safe to change while the server runs."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = list(rules)
        self._left: list[int | None] = [rule.times for rule in self._rules]

    def add(self, rule: Rule) -> None:
        """Put a rule behind those in force."""
        with self._lock:
            self._rules.append(rule)
            self._left.append(rule.times)

    def clear(self) -> None:
        """Behave."""
        with self._lock:
            self._rules.clear()
            self._left.clear()

    def for_answer(self, invocation: Invocation) -> Rule | None:
        """The rule for this POST's answer; counts as one of its times."""
        return self._take(invocation, answering=True)

    def for_work(self, invocation: Invocation) -> Rule | None:
        """The rule for the work that begins now; counts as one of its times."""
        return self._take(invocation, answering=False)

    def _take(self, invocation: Invocation, *, answering: bool) -> Rule | None:
        with self._lock:
            for index, rule in enumerate(self._rules):
                left = self._left[index]
                if (rule.act in ANSWERING) is answering and left != 0 and rule.matches(invocation):
                    if left is not None:
                        self._left[index] = left - 1
                    return rule
        return None


def parse_rule(body: bytes) -> Rule:
    """A rule from the body of a request. Raises ValueError that says what is wrong with it."""
    try:
        return Rule.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(describe(error)) from None
