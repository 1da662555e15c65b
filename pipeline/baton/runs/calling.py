"""Calling the agent for a run that is pending, and acting on its answer. Nothing is locked while it is asked.

Each call is counted, and the count committed, before it is made. So it is known afterwards, whatever crashed, whether
an earlier call may have been taken; and two callers of one run notice each other by the count.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, Engine

from baton.aws.errors import AwsError
from baton.db.states import FailureKind, RunState
from baton.outbox.tickets import Ticket
from baton.registration.service import backoff
from baton.runs import messages, rows
from baton.runs.answers import Answer, Reply, classify
from baton.runs.decisions import Phase
from baton.runs.inputs import Inputs, NothingToRead, body
from baton.runs.invocation import AgentClient
from baton.runs.rows import Run
from baton.runs.targets import Target, lock_target
from baton.settings.agents import Runs
from baton.telemetry import fields, metrics
from baton.telemetry.labels import DispatchOutcome, Settler
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)

_SOON: Final = timedelta(seconds=1)
#: A message that waits for a second call holds up its document's group, the artifact of the first call included.
_LONGEST_DOUBT: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What became of a request."""

    outcome: DispatchOutcome
    again: timedelta | None = None
    """When the same message must be looked at again; ``None``: it is done with."""


class Caller:
    """Calls the agent; shared between threads."""

    def __init__(self, engine: Engine, *, agent: AgentClient, inputs: Inputs, limits: Runs) -> None:
        self._engine = engine
        self._agent = agent
        self._inputs = inputs
        self._limits = limits

    def call(self, ticket: Ticket, run: Run, outcome: DispatchOutcome) -> Dispatched:
        """Invoke a pending run that was read a moment ago.

        :param outcome: what to report where the agent has it, or may have it.
        """
        try:
            data = body(self._inputs.invocation(run))
        except NothingToRead:
            return Dispatched(DispatchOutcome.OBSOLETE)
        except AwsError as error:
            _log.warning("an invocation could not be prepared", exc_info=error, extra=_of(run))
            if run.invoke_count > 0:
                return self._later(run, DispatchOutcome.AGENT_AWAY)
            return self._take_back(ticket, run, wait=self._wait(ticket))
        with self._engine.begin() as connection:
            counted = rows.count_invoke(connection, run.run_id)
        if counted is None:  # settled, or its deadline passed just now: what is there then decides
            return Dispatched(outcome, again=_SOON)
        return self._act(ticket, counted, *self._ask(data, counted), outcome=outcome)

    def _ask(self, data: bytes, run: Run) -> tuple[Reply, Answer]:
        about = {Attribute.RUN: run.run_id, Attribute.PURPOSE: run.purpose, Attribute.ATTEMPT: run.attempt}
        with span(SpanName.AGENT_INVOKE, attributes=about) as opened:
            reply = self._agent.invoke(data)
            answer = classify(reply, run_id=run.run_id, first=run.invoke_count == 1)
            opened.set(Attribute.OUTCOME, answer)
            if reply.status is not None:
                opened.set(Attribute.STATUS_CODE, reply.status)
        metrics.INVOKES.add(purpose=run.purpose, answer=answer)
        metrics.INVOKE_DURATION.observe(reply.seconds, answer=answer)
        if answer is not Answer.ACCEPTED:
            extra = fields.of(
                run=run.run_id, document=run.document_id, answer=answer, status_code=reply.status, reason=reply.reason
            )
            _log.warning("an invocation was not accepted", extra=extra)
        return reply, answer

    def _act(self, ticket: Ticket, run: Run, reply: Reply, answer: Answer, *, outcome: DispatchOutcome) -> Dispatched:
        match answer:
            case Answer.ACCEPTED:
                with self._engine.begin() as connection:
                    rows.mark_accepted(connection, run.run_id)
                return Dispatched(outcome)
            case Answer.REFUSED:
                return self._refuse(ticket, run)
            case Answer.AWAY:
                return self._take_back(ticket, run, wait=self._wait(ticket, reply.retry_after))
            case Answer.AMBIGUOUS:
                return self._later(run, outcome)

    def _refuse(self, ticket: Ticket, run: Run) -> Dispatched:
        """Settle a run that the agent will never take, and fail what waits for it."""
        with self._engine.begin() as connection:
            withdrawn, target = self._withdraw(connection, ticket, run, message=messages.REFUSED)
            if target is not None:
                target.fail(
                    connection,
                    kind=FailureKind.AGENT_REFUSED,
                    message=messages.REFUSED,
                    retryable=False,
                    limits=self._limits,
                )
        if target is not None:
            metrics.DOCUMENTS_FAILED.add(axis=target.axis)
        return self._withdrawn(run, DispatchOutcome.REFUSED) if withdrawn else self._later(run, DispatchOutcome.REFUSED)

    def _take_back(self, ticket: Ticket, run: Run, *, wait: timedelta) -> Dispatched:
        """Settle a run that the agent has not taken; what waits for it is asked for again later, at no cost."""
        with self._engine.begin() as connection:
            withdrawn, target = self._withdraw(connection, ticket, run, message=messages.AWAY)
            if target is not None:
                target.requeue(connection, ticket=ticket, wait=wait)
        outcome = DispatchOutcome.AGENT_AWAY
        return self._withdrawn(run, outcome) if withdrawn else self._later(run, outcome)

    def _withdraw(
        self, connection: Connection, ticket: Ticket, run: Run, *, message: str
    ) -> tuple[bool, Target | None]:
        """Settle the run as undispatched, unless somebody else has invoked or settled it since ``run`` was read.

        Returns whether it was, and what still waits for it, locked.
        """
        target = lock_target(connection, ticket)
        locked = rows.lock_run(connection, run.run_id)
        if locked is None or not locked.pending or locked.accepted_at or locked.invoke_count != run.invoke_count:
            return False, None
        rows.settle_pending(connection, run.run_id, state=RunState.UNDISPATCHED, message=message)
        if target is None or target.phase is not Phase.RUNNING or target.run_id != run.run_id:
            return True, None
        return True, target if target.document.live and target.concerns(ticket) else None

    def _withdrawn(self, run: Run, outcome: DispatchOutcome) -> Dispatched:
        metrics.RUNS_SETTLED.add(state=RunState.UNDISPATCHED, settler=Settler.DISPATCH)
        _log.info("a run was withdrawn", extra=_of(run))
        return Dispatched(outcome)

    def _later(self, run: Run, outcome: DispatchOutcome) -> Dispatched:
        """The same run again: with waits that grow to a minute, the last of them just past the deadline."""
        wait = min(backoff(max(run.invoke_count, 1), limits=self._limits), _LONGEST_DOUBT)
        left = timedelta(seconds=max(run.seconds_left, 0.0)) + _SOON
        return Dispatched(outcome, again=min(wait, left))

    def _wait(self, ticket: Ticket, asked: float | None = None) -> timedelta:
        """Until an agent that is away is tried again: doubled with each generation, and no less than it asked for."""
        wait = backoff(ticket.generation, limits=self._limits)
        if asked is not None:
            wait = max(wait, timedelta(seconds=min(asked, self._limits.retry_max)))
        return wait


def _of(run: Run) -> dict[str, dict[str, fields.Value]]:
    return fields.of(run=run.run_id, document=run.document_id, purpose=run.purpose)
