"""Which part of the system a registrar ticket is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlalchemy import Connection, Engine

from baton.consumers.verdicts import Ack, Retry, Verdict
from baton.db.states import EventType, Outcome
from baton.outbox.tickets import Ticket
from baton.runs.calling import Dispatched

#: An apply on an open transaction, or the giving up of one; closes the ticket and says how.
Applying = Callable[[Connection, Ticket], Outcome]


class Dispatching(Protocol):
    """Serves requests for a run."""

    def dispatch(self, ticket: Ticket) -> Dispatched:
        """Serve a request."""
        ...

    def give_up(self, ticket: Ticket) -> Dispatched:
        """End a request visibly."""
        ...


class Routing:
    """The handler of the registrar lane: requests go to dispatch, settled runs to apply.

    Tickets of another lane never come here: the consumer of a lane refuses them.
    """

    def __init__(self, engine: Engine, *, requests: Dispatching, apply: Applying, abandon: Applying) -> None:
        self._engine = engine
        self._requests = requests
        self._apply = apply
        self._abandon = abandon

    def handle(self, ticket: Ticket) -> Verdict:
        """Do what the ticket asks for."""
        if ticket.event_type is EventType.ARTIFACT_DELIVERED:
            return self._in_one_transaction(self._apply, ticket)
        return _verdict(self._requests.dispatch(ticket))

    def give_up(self, ticket: Ticket) -> Verdict:
        """End what the ticket is about in a failure that counsel sees."""
        if ticket.event_type is EventType.ARTIFACT_DELIVERED:
            return self._in_one_transaction(self._abandon, ticket)
        return _verdict(self._requests.give_up(ticket))

    def _in_one_transaction(self, work: Applying, ticket: Ticket) -> Verdict:
        with self._engine.begin() as connection:
            work(connection, ticket)
        return Ack()


def _verdict(done: Dispatched) -> Verdict:
    return Ack() if done.again is None else Retry(done.again)
