"""Ending a request that never got a run, visibly: asked for → running → failed, in one transaction.

The ledger shows a run that was never dispatched, and why.
"""

from __future__ import annotations

from baton.db.connect import Executor
from baton.db.states import FailureKind, RunState
from baton.outbox.tickets import Ticket
from baton.runs import messages, rows
from baton.runs.targets import Target
from baton.settings.agents import Runs


def abandon(
    executor: Executor,
    target: Target,
    ticket: Ticket,
    *,
    limits: Runs,
    kind: FailureKind = FailureKind.ATTEMPTS_EXHAUSTED,
    message: str = messages.ABANDONED,
) -> Target:
    """Fail a target that is asked for and locked; returns it as it was just before it failed.

    :param ticket: the request that is given up; closing it is the caller's part.
    :param message: lawyer-safe.
    """
    rows.supersede_pending(executor, target.document, purpose=target.purpose, message=messages.SUPERSEDED)
    run = rows.mint(
        executor, target.document, purpose=target.purpose, attempt=target.attempt, ticket=ticket, limits=limits
    )
    begun = target.begin(executor, run_id=run.run_id)
    rows.settle_pending(executor, run.run_id, state=RunState.UNDISPATCHED, message=message)
    begun.fail(executor, kind=kind, message=message, retryable=False, limits=limits)
    return begun
