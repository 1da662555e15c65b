"""What dispatch does with a request, decided from what stands in the database under the document's lock.

A closed set, and a function without side effects: the table of the registration flow is this module. Each decision is
carried out by exactly one action of :mod:`baton.runs.dispatch`.
"""

from __future__ import annotations

from enum import StrEnum

from baton.db.states import Outcome
from baton.runs.rows import Run


class Phase(StrEnum):
    """Where the aspect that a run is for stands: a document's registration, or a part of its understanding."""

    ASKED = "asked"
    """Queued, or a part that is requested: no run yet."""
    RUNNING = "running"
    """Registering, or a part that is running: a run may win."""
    OTHER = "other"
    """Nothing to dispatch: concluded, failed, never asked for."""


class Decision(StrEnum):
    """What is done; every request ends in exactly one of these."""

    DELETED = "deleted"
    STALE = "stale"
    """The request is of another pass or attempt."""
    MOVED_ON = "moved_on"
    MINT = "mint"
    """No run yet: make one and invoke it, if the budget allows."""
    INVOKE_AGAIN = "invoke_again"
    """The run was perhaps never taken: the same run id again, so that no second work begins."""
    STAND_DOWN = "stand_down"
    """The agent has it and is inside its deadline. Kept, the message would block its own artifact's ticket."""
    TAKE_OVER = "take_over"
    """The run lapsed: settle it as superseded and make another."""
    LEAVE_TO_APPLY = "leave_to_apply"
    """The run is settled; its artifact's ticket has the next move."""


#: How the request's ticket is closed by the decisions that do nothing else.
CLOSING: dict[Decision, Outcome] = {
    Decision.DELETED: Outcome.DOCUMENT_DELETED,
    Decision.STALE: Outcome.STALE,
    Decision.MOVED_ON: Outcome.ALREADY_DONE,
    Decision.STAND_DOWN: Outcome.STOOD_DOWN,
    Decision.LEAVE_TO_APPLY: Outcome.ALREADY_DONE,
}


def decide(*, live: bool, current: bool, phase: Phase, run: Run | None) -> Decision:  # noqa: PLR0911 - one line per row of the table
    """Choose by what was read under the document's lock.

    :param live: the document is not deleted.
    :param current: the ticket is about the present pass and attempt.
    :param run: the run that may win, read under its own lock; ``None`` where there is none. A run that was withdrawn or
        superseded while its document waits counts as settled: that disagreement is for the reconcilers.
    """
    if not live:
        return Decision.DELETED
    if phase is Phase.OTHER:
        return Decision.MOVED_ON
    if not current:
        return Decision.STALE
    if phase is Phase.ASKED:
        return Decision.MINT
    if run is None or not run.pending:
        return Decision.LEAVE_TO_APPLY
    if run.seconds_left <= 0:
        return Decision.TAKE_OVER
    return Decision.INVOKE_AGAIN if run.accepted_at is None else Decision.STAND_DOWN
