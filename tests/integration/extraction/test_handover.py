"""Status, text, request and tickets commit together, whatever statement the database is lost at."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from baton.consumers.verdicts import Ack
from baton.db.states import EventType, Outcome, ProcessingStatus, RegistrationStatus
from support.transactions import end_backend

COMMIT = "COMMIT"


@contextmanager
def _watched(engine: Engine, at: Any) -> Iterator[None]:
    """Call `at` with each statement of the engine, and with COMMIT, just before it is sent."""

    def executing(connection: Connection, _: Any, statement: str, *rest: Any) -> None:
        at(connection, statement)

    def committing(connection: Connection) -> None:
        at(connection, COMMIT)

    event.listen(engine, "before_cursor_execute", executing)
    event.listen(engine, "commit", committing)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", executing)
        event.remove(engine, "commit", committing)


def _final_statements(firm: Any, stub: Any) -> list[str]:
    """The statements of the last transaction of an extraction, in order."""
    seen: list[str] = []
    reading: list[int] = []
    stub.before = lambda: reading.append(len(seen))
    with _watched(firm.engine, lambda _, statement: seen.append(statement)):
        firm.worker(stub).handle(firm.upload())
    return seen[reading[0] :]


class _Assassin:
    """Kills the backend before its so-many-th statement after waking."""

    def __init__(self, firm: Any, spared: int) -> None:
        self._firm = firm
        self._spared = spared
        self._awake = False

    def wake(self) -> None:
        self._awake = True

    def __call__(self, connection: Connection, statement: str) -> None:
        if not self._awake:
            return
        self._spared -= 1
        if self._spared < 0:
            self._awake = False
            end_backend(self._firm.database, connection)


def _state(firm: Any, ticket: Any) -> tuple[Any, ...]:
    document = firm.document(ticket)
    return (
        document.processing_status,
        document.registration_status,
        len(firm.passes(ticket)),
        len(firm.rows("SELECT 1 FROM document_search WHERE document_id = :id", id=ticket.document_id)),
        len(firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED)),
        firm.ticket(ticket.document_id).outcome,
    )


NEITHER = (ProcessingStatus.EXTRACTING, RegistrationStatus.NOT_REQUESTED, 0, 0, 0, None)
BOTH = (ProcessingStatus.INDEXED, RegistrationStatus.QUEUED, 1, 1, 1, Outcome.DONE)


def test_a_crash_between_status_and_ticket_leaves_neither(firm: Any, stub: Any) -> None:
    """The backend is killed before each statement of the final transaction in turn; the next delivery completes it."""
    statements = _final_statements(firm, stub)
    assert statements[-1] == COMMIT
    assert len(statements) > 6
    for lost in range(len(statements)):
        ticket = firm.upload()
        assassin = _Assassin(firm, lost)
        stub.before = assassin.wake
        with _watched(firm.engine, assassin), pytest.raises(DBAPIError):
            firm.worker(stub).handle(ticket)
        assert _state(firm, ticket) == NEITHER, statements[lost]
        stub.before = lambda: None
        assert firm.worker(stub).handle(ticket) == Ack()
        assert _state(firm, ticket) == BOTH


def test_an_answer_lost_after_the_commit_is_harmless(firm: Any, stub: Any) -> None:
    """The commit went through and nobody was told: the redelivery finds it done."""
    ticket = firm.upload()
    firm.worker(stub).handle(ticket)
    assert _state(firm, ticket) == BOTH
    firm.worker(stub).handle(ticket)
    assert _state(firm, ticket) == BOTH


def test_no_agent_is_needed_for_an_upload(firm: Any, stub: Any) -> None:
    """With neither registrar, relay nor agent running, every document becomes searchable and its request waits."""
    tickets = [firm.upload() for _ in range(5)]
    for ticket in tickets:
        firm.worker(stub).handle(ticket)
    waiting = firm.rows(
        "SELECT 1 FROM ops.document_ingest_outbox WHERE event_type = 'document.registration.requested'"
        " AND dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL"
    )
    assert len(waiting) == 5
    assert len(firm.search("harbour")) == 5


def test_the_worker_may_do_no_more_than_it_needs(firm: Any) -> None:
    """Its role can neither read runs nor rewrite pages, and sends nothing itself."""
    for statement in (
        "SELECT 1 FROM agents.agent_run",
        "UPDATE document_page SET text = ''",
        "DELETE FROM document_page",
        "UPDATE ops.document_ingest_outbox SET dispatched_at = now()",
        "UPDATE documents SET deleted_at = now()",
    ):
        with pytest.raises(DBAPIError, match="permission denied"), firm.engine.begin() as connection:
            connection.execute(text(statement))
