"""Which part of the system a ticket is for."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from baton.consumers.verdicts import Ack, Retry
from baton.db.access import Role
from baton.db.states import EventType, Outcome, Part
from baton.outbox.tickets import Ticket
from baton.registrar.routing import Routing
from baton.runs.calling import Dispatched
from baton.telemetry.labels import DispatchOutcome
from support.databases import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_ticket(event_type: EventType) -> Ticket:
    """A ticket of a kind."""
    return Ticket(
        id=1,
        firm_id=UUID(int=1),
        matter_id=UUID(int=2),
        document_id=UUID(int=3),
        event_type=event_type,
        idempotency_key="k",
        generation=1,
        redrive_of=None,
        extraction_epoch=1,
        extraction_run_id=UUID(int=4),
        attempt=1,
        run_id=UUID(int=5) if event_type is EventType.ARTIFACT_DELIVERED else None,
        part=Part.CARD,
        request_id=None,
        object_key="o",
        content_type="c",
        traceparent=None,
        not_before=NOW,
        dispatched_at=NOW,
        parked_at=None,
        work_attempts=1,
        handled_at=None,
        outcome=None,
    )


class Seen:
    """What was asked of the parts behind the routing."""

    def __init__(self, database: Database, answer: Dispatched) -> None:
        self.asked: list[str] = []
        self.answer = answer
        self.routing = Routing(
            database.engine(Role.REGISTRAR),
            requests=self,
            apply=lambda _connection, _ticket: self._applied("apply"),
            abandon=lambda _connection, _ticket: self._applied("abandon"),
        )

    def dispatch(self, ticket: Ticket) -> Dispatched:
        """Stand in for dispatch."""
        self.asked.append("dispatch")
        return self.answer

    def give_up(self, ticket: Ticket) -> Dispatched:
        """Stand in for giving up."""
        self.asked.append("give_up")
        return self.answer

    def _applied(self, what: str) -> Outcome:
        self.asked.append(what)
        return Outcome.DONE


REQUESTS = [EventType.REGISTRATION_REQUESTED, EventType.UNDERSTANDING_REQUESTED, EventType.RESEGMENT_REQUESTED]


@pytest.mark.parametrize("event_type", REQUESTS)
def test_requests_go_to_dispatch(database: Database, event_type: EventType) -> None:
    """And what dispatch wants to see again comes again, at nobody's cost."""
    seen = Seen(database, Dispatched(DispatchOutcome.INVOKED, again=timedelta(seconds=7)))
    assert seen.routing.handle(a_ticket(event_type)) == Retry(timedelta(seconds=7), spent=False)
    assert seen.routing.give_up(a_ticket(event_type)) == Retry(timedelta(seconds=7), spent=False)
    assert seen.asked == ["dispatch", "give_up"]


def test_settled_runs_go_to_apply(database: Database) -> None:
    """And are done with, whatever the outcome."""
    seen = Seen(database, Dispatched(DispatchOutcome.INVOKED))
    assert seen.routing.handle(a_ticket(EventType.ARTIFACT_DELIVERED)) == Ack()
    assert seen.routing.give_up(a_ticket(EventType.ARTIFACT_DELIVERED)) == Ack()
    assert seen.asked == ["apply", "abandon"]
