"""Dispatch: from a request's ticket to an agent that has the run.

One algorithm for a document's registration and for every part of its understanding. What is found under the document's
lock decides (:mod:`baton.runs.decisions`); the lock is gone before anything is said to the agent
(:mod:`baton.runs.calling`). Locks are taken in the order document, part, run, ticket, budget.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, select

from baton.db.states import EventType, FailureKind, Outcome, RunState
from baton.db.tables import outbox
from baton.outbox.life import mark_handled
from baton.outbox.tickets import Ticket
from baton.registration.service import backoff
from baton.runs import breaker, budget, messages, rows
from baton.runs.abandoning import abandon
from baton.runs.calling import Caller, Dispatched
from baton.runs.decisions import CLOSING, Decision, Phase, decide
from baton.runs.inputs import Inputs
from baton.runs.invocation import AgentClient
from baton.runs.rows import Run
from baton.runs.targets import Target, lock_target
from baton.settings.agents import Breaker, Runs
from baton.telemetry import fields, metrics
from baton.telemetry.labels import DispatchOutcome, Purpose, Settler
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Step:
    """What was committed under the document's lock."""

    outcome: DispatchOutcome
    run: Run | None = None
    """The run to invoke now."""
    superseded: bool = False
    """Whether a lapsed run was settled."""
    failed: Target | None = None
    """What has failed visibly."""


class Dispatcher:
    """Serves requests; shared between threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        agent: AgentClient,
        inputs: Inputs,
        limits: Runs,
        breaker_config: Breaker | None = None,
    ) -> None:
        """:param breaker_config: how the breaker is judged; ``None`` leaves that to the reconcilers."""
        self._engine = engine
        self._breaker = breaker_config
        self._caller = Caller(engine, agent=agent, inputs=inputs, limits=limits)
        self._limits = limits

    def dispatch(self, ticket: Ticket) -> Dispatched:
        """Serve a registration, understanding or resegment request. Any redelivery, at any point, is harmless."""
        with span(_SPAN[ticket.event_type], parent_traceparent=ticket.traceparent, attributes=_about(ticket)) as opened:
            with self._engine.begin() as connection:
                step = self._decide(connection, ticket)
            self._tell(step)
            done = Dispatched(step.outcome) if step.run is None else self._caller.call(ticket, step.run, step.outcome)
            opened.set(Attribute.OUTCOME, done.outcome)
        if self._breaker is not None and done.outcome in _ABOUT_THE_AGENT:
            # now, and not with the next pass of a reconciler: a dark agent would be asked for every ticket meanwhile
            with self._engine.begin() as connection:
                breaker.judge(connection, config=self._breaker, limits=self._limits)
        metrics.DISPATCHES.add(purpose=ticket.part or Purpose.CLASSIFY, outcome=done.outcome)
        return done

    def give_up(self, ticket: Ticket) -> Dispatched:
        """End a request whose handling has failed too often, visibly.

        A run that is pending is left to its deadline: the agent may be at work on it, and the sweeper settles it.
        """
        with self._engine.begin() as connection:
            step = self._abandon(connection, ticket)
        self._tell(step)
        _log.error("a request was given up", extra=fields.of(ticket=ticket.id, document=ticket.document_id))
        return Dispatched(step.outcome)

    def _tell(self, step: _Step) -> None:
        if step.superseded:
            metrics.RUNS_SETTLED.add(state=RunState.SUPERSEDED, settler=Settler.DISPATCH)
        if step.failed is not None:
            metrics.DOCUMENTS_FAILED.add(axis=step.failed.axis)

    def _decide(self, connection: Connection, ticket: Ticket) -> _Step:
        target = lock_target(connection, ticket)
        if target is None:
            mark_handled(connection, ticket.id, outcome=Outcome.ALREADY_DONE)
            return _Step(DispatchOutcome.OBSOLETE)
        run = None if target.run_id is None else rows.lock_run_of(connection, target.run_id, target.document)
        decision = decide(live=target.document.live, current=target.concerns(ticket), phase=target.phase, run=run)
        if decision is Decision.MINT:
            return self._begin(connection, target, ticket)
        if decision is Decision.TAKE_OVER and run is not None:
            return self._take_over(connection, target, ticket, run)
        if decision is Decision.INVOKE_AGAIN:
            return _Step(DispatchOutcome.INVOKED_AGAIN, run)
        mark_handled(connection, ticket.id, outcome=CLOSING[decision])
        return _Step(DispatchOutcome.STOOD_DOWN if decision is Decision.STAND_DOWN else DispatchOutcome.OBSOLETE)

    def _begin(self, connection: Connection, target: Target, ticket: Ticket) -> _Step:
        _lock_ticket(connection, ticket)
        allowed = budget.ask(connection, limits=self._limits)
        if isinstance(allowed, budget.Refused):
            # closed first: while it counts as undispatched, no successor of it would be written
            mark_handled(connection, ticket.id, outcome=Outcome.REPLACED)
            # longer each time: what is held back for hours must not go round, and be written anew, every few seconds
            wait = max(allowed.wait, backoff(ticket.generation, limits=self._limits))
            target.postpone(connection, ticket=ticket, wait=budget.spread(wait, ticket.id))
            return _held_back(allowed, ticket)
        rows.supersede_pending(connection, target.document, purpose=target.purpose, message=messages.SUPERSEDED)
        run = self._mint(connection, target, ticket, attempt=target.attempt)
        target.begin(connection, run_id=run.run_id)
        mark_handled(connection, ticket.id, outcome=Outcome.DONE)
        return _Step(DispatchOutcome.INVOKED, run)

    def _take_over(self, connection: Connection, target: Target, ticket: Ticket, lapsed: Run) -> _Step:
        """Replace a run that lapsed. It is locked and was pending when it was locked: no settler is faster."""
        if target.attempt >= self._limits.max_attempts:
            rows.settle_pending(connection, lapsed.run_id, state=RunState.SUPERSEDED, message=messages.EXHAUSTED)
            failed = self._fail(connection, target, message=messages.EXHAUSTED)
            mark_handled(connection, ticket.id, outcome=Outcome.REFUSED)
            return _Step(DispatchOutcome.EXHAUSTED, superseded=True, failed=failed)
        _lock_ticket(connection, ticket)
        allowed = budget.ask(connection, limits=self._limits)
        if isinstance(allowed, budget.Refused):
            # the sweeper owns a lapsed run: it looks for the artifact before it gives the run up, and that costs nothing
            mark_handled(connection, ticket.id, outcome=Outcome.STOOD_DOWN)
            return _held_back(allowed, ticket)
        rows.settle_pending(connection, lapsed.run_id, state=RunState.SUPERSEDED, message=messages.SUPERSEDED)
        run = self._mint(connection, target, ticket, attempt=target.attempt + 1)
        target.renew(connection, run_id=run.run_id)
        mark_handled(connection, ticket.id, outcome=Outcome.DONE)
        return _Step(DispatchOutcome.TAKEN_OVER, run, superseded=True)

    def _abandon(self, connection: Connection, ticket: Ticket) -> _Step:
        """Fail what still waits for its first run; the ledger shows a run that was never dispatched, and why."""
        target = lock_target(connection, ticket)
        mark_handled(connection, ticket.id, outcome=Outcome.POISON)
        if target is None or not target.document.live or not target.concerns(ticket) or target.phase is not Phase.ASKED:
            return _Step(DispatchOutcome.OBSOLETE)
        begun = abandon(connection, target, ticket, limits=self._limits)
        return _Step(DispatchOutcome.EXHAUSTED, failed=begun)

    def _mint(self, connection: Connection, target: Target, ticket: Ticket, *, attempt: int) -> Run:
        return rows.mint(
            connection, target.document, purpose=target.purpose, attempt=attempt, ticket=ticket, limits=self._limits
        )

    def _fail(self, connection: Connection, target: Target, *, message: str) -> Target:
        kind = FailureKind.ATTEMPTS_EXHAUSTED
        target.fail(connection, kind=kind, message=message, retryable=False, limits=self._limits)
        return target


def _held_back(refused: budget.Refused, ticket: Ticket) -> _Step:
    metrics.BUDGET_REFUSALS.add()
    extra = fields.of(ticket=ticket.id, document=ticket.document_id, reason=refused.why)
    _log.info("a run was held back", extra=extra)
    return _Step(DispatchOutcome.HELD_BACK)


def _lock_ticket(connection: Connection, ticket: Ticket) -> None:
    """A relay may still hold what it has just sent; waiting for it must not happen behind the budget's lock."""
    connection.execute(select(outbox.c.id).where(outbox.c.id == ticket.id).with_for_update(key_share=True))


_ABOUT_THE_AGENT: Final = (DispatchOutcome.AGENT_AWAY, DispatchOutcome.HELD_BACK)
"""Outcomes after which the breaker is judged."""

_SPAN: Final = {
    EventType.REGISTRATION_REQUESTED: SpanName.REGISTRATION_DISPATCH,
    EventType.UNDERSTANDING_REQUESTED: SpanName.UNDERSTANDING_DISPATCH,
    EventType.RESEGMENT_REQUESTED: SpanName.UNDERSTANDING_DISPATCH,
}
"""The events that ask for a run, and the span of each."""


def _about(ticket: Ticket) -> dict[Attribute, object]:
    return {
        Attribute.FIRM: ticket.firm_id,
        Attribute.MATTER: ticket.matter_id,
        Attribute.DOCUMENT: ticket.document_id,
        Attribute.TICKET: ticket.id,
        Attribute.EVENT_TYPE: ticket.event_type,
        Attribute.GENERATION: ticket.generation,
        Attribute.ATTEMPT: ticket.attempt,
    }
