"""What an agent's answer to an invocation means. Pure: a table from what came back to what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from baton.contract.errors import AnswerError
from baton.contract.invocations import parse_accepted

#: The same request will be refused again.
DEFINITE = frozenset({400, 409, 422})
#: The agent is not serving us at present; it did not take the run.
AWAY = frozenset({401, 403, 404, 429, 503})
_TAKEN = frozenset({200, 201, 202})


class Fate(StrEnum):
    """How far an invocation got."""

    UNSENT = "unsent"
    """No connection: not a byte of it reached the agent."""
    LOST = "lost"
    """Sent, at least in part, and no complete answer came back in time."""
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    fate: Fate
    status: int | None = None
    """HTTP status; ``None`` unless answered."""
    body: bytes = field(default=b"", repr=False)
    """At most as many bytes as an acceptance may have, and one."""
    retry_after: float | None = None
    """Seconds, where the agent said so."""
    reason: str = ""
    """For the log: a closed word or the type of an error."""
    seconds: float = 0.0
    """How long the call took."""


class Answer(StrEnum):
    """What may be concluded."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """For good: the same request will be refused again."""
    AWAY = "away"
    """Not taken, and may be tried later."""
    AMBIGUOUS = "ambiguous"
    """Perhaps taken: only the same run id may be tried again, until its deadline."""


def classify(reply: Reply, *, run_id: UUID, first: bool) -> Answer:
    """Conclude from the reply to an invocation of ``run_id``.

    :param first: no invocation of this run was begun before. An earlier one may have been taken, so a later refusal
        proves nothing about the run.
    """
    answer = _alone(reply, run_id=run_id)
    if answer is Answer.ACCEPTED or first:
        return answer
    return Answer.AMBIGUOUS


def _alone(reply: Reply, *, run_id: UUID) -> Answer:
    if reply.fate is Fate.UNSENT or reply.status in AWAY:
        return Answer.AWAY
    if reply.status in DEFINITE:
        return Answer.REFUSED
    if reply.status in _TAKEN:
        try:
            parse_accepted(reply.body, run_id=run_id)
        except AnswerError:
            return Answer.AMBIGUOUS
        return Answer.ACCEPTED
    return Answer.AMBIGUOUS
