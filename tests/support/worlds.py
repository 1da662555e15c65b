"""The pipeline around the loops, played in one thread: relay, consumers, worker, agent and sweeper, all by their real code
and roles but for the queue, which is a set, and for reading files, which is a sentence.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select
from uuid_utils.compat import uuid7

from baton.contract.artifacts import Effect, build_artifact, parse_artifact
from baton.contract.classification import DocumentType
from baton.contract.purposes import Purpose
from baton.contract.understanding import Brief, Card, Section, Sections
from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import EventType, Outcome, ProcessingStatus
from baton.documents import processing
from baton.outbox.life import mark_handled, mark_received
from baton.outbox.tickets import TICKET_COLUMNS, Ticket, as_ticket
from baton.record.apply import apply
from baton.registration import service
from baton.runs.dispatch import Dispatcher
from baton.runs.findings import Delivered
from baton.runs.inputs import Inputs
from baton.runs.invocation import AgentClient
from baton.runs.rows import RUN_COLUMNS, Run, as_run
from baton.runs.settling import settle
from baton.settings.agents import Agent
from baton.settings.secret import Secret
from support.dispatching import Desk
from support.matters import turn
from support.reconciling import Loop
from support.scripted_agent import TOKEN

_EFFECTS: dict[Purpose, Effect] = {
    Purpose.CLASSIFY: turn(),
    Purpose.CARD: Card(headline="An order", document_type=DocumentType.COURT_ORDER, facts=()),
    Purpose.SECTIONS: Sections(sections=(Section(heading="Facts", first_page=1, last_page=1),)),
    Purpose.BRIEF: Brief(summary="The court orders disclosure."),
}
#: What is at rest: nobody has a move but a person.
RESTING = ("registered", "registration_failed", "registration_needs_review", "not_requested")

#: Messages that a consumer receives in one call, as many as a queue gives.
RECEIVED_AT_ONCE = 10


@dataclass
class World:
    """A loop, and everything else; time moves only when it is told to."""

    desk: Desk
    loop: Loop
    agent_url: str
    moved: float = 0.0
    queue: dict[int, None] = field(default_factory=dict)
    """Tickets whose messages are in a queue."""

    @classmethod
    def around(cls, desk: Desk, loop: Loop, *, agent_url: str) -> "World":
        """A world whose loop has the desk's store."""
        return cls(desk, replace(loop, store=desk.store, _kept={}), agent_url)

    # one after the other

    def turn(self, *, seconds: float = 900.0) -> None:
        """Everybody has one go, then a pass is made, then time moves."""
        self.poll()
        self.relay()
        self.consume()
        self.deliver()
        self.desk.sweeper().run_once()
        self.move(seconds)

    def move(self, seconds: float) -> None:
        """Time moves; consumers poll on, and the queues' depths are read."""
        self.moved += seconds
        self.desk.database.move_clock(self.moved)
        self.poll()

    def poll(self) -> None:
        """Consumers say that they are there, and queues are seen as deep as they are."""
        prepare = self.desk.matter.prepare
        if not self.desk.matter.count("ops.consumer_heartbeat"):
            self.loop.consumers(since=3 * 86_400.0)
        prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")
        for lane in ("ingest", "registrar"):
            prepare(
                "INSERT INTO ops.lane_reading (lane, visible, in_flight, delayed) VALUES (:lane, :count, 0, 0)",
                lane=lane,
                count=len(self.queue),
            )

    def relay(self) -> int:
        """Send what is due."""
        with self.desk.database.preparer.begin() as connection:
            sent = connection.exec_driver_sql(
                "UPDATE ops.document_ingest_outbox SET claimed_at = app.clock(), dispatched_at = app.clock(),"
                " message_id = 'm' WHERE dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL"
                " AND not_before <= app.clock() RETURNING id"
            ).scalars()
            ids = sorted(sent)
        self.queue.update(dict.fromkeys(ids))
        return len(ids)

    def consume(self) -> None:
        """Receive and handle what is in the queues, in order."""
        with self.dispatcher() as dispatcher:
            waiting = sorted(self.queue)
            for start in range(0, len(waiting), RECEIVED_AT_ONCE):
                some = waiting[start : start + RECEIVED_AT_ONCE]
                with self.desk.database.engine(Role.REGISTRAR).begin() as connection:
                    mark_received(connection, some, visibility=timedelta(seconds=60))
                for ticket_id in some:
                    if self._handle(self._loaded(ticket_id), dispatcher):
                        del self.queue[ticket_id]

    @contextmanager
    def dispatcher(self) -> Iterator[Dispatcher]:
        """Dispatch as the registrar's process has it, the breaker included."""
        desk = self.desk
        engine = desk.database.engine(Role.REGISTRAR)
        settings = Agent(url=self.agent_url, token=Secret(TOKEN), connect_timeout=1.0, read_timeout=2.0)
        with AgentClient(settings) as agent:
            yield Dispatcher(
                engine,
                agent=agent,
                inputs=Inputs(engine, desk.store, limits=desk.limits),
                limits=desk.limits,
                breaker_config=self.loop.settings.breaker,
            )

    def deliver(self) -> int:
        """The agent delivers every run that it accepted."""
        with self.desk.database.preparer.connect() as connection:
            rows = connection.execute(select(*RUN_COLUMNS)).all()
        due = [run for run in map(as_run, rows) if run.pending and run.accepted_at and run.seconds_left > 0]
        for run in due:
            self._settle(run)
        return len(due)

    # looking

    def at_rest(self) -> bool:
        """Whether nothing is under way, nor will be by itself."""
        return not self.under_way()

    def under_way(self) -> list[Any]:
        """Live documents and parts that somebody still has a move for."""
        return self.desk.matter.rows(
            "SELECT d.id, d.processing_status, d.registration_status, 'document' FROM documents d"
            " WHERE d.deleted_at IS NULL AND (d.processing_status IN ('uploaded', 'stored', 'extracting')"
            " OR d.registration_status IN ('queued', 'registering')"
            " OR (d.registration_status = 'registration_failed' AND d.next_attempt_at IS NOT NULL"
            " AND d.processing_status = 'indexed')"
            " OR (d.registration_status = 'not_requested' AND d.processing_status = 'indexed'))"
            " UNION ALL SELECT d.id, p.part, p.state, 'part' FROM record.understanding_part p JOIN documents d"
            " ON d.id = p.document_id AND d.extraction_run_id = p.extraction_run_id"
            " AND d.registration_pass = p.extraction_run_id"
            " WHERE d.deleted_at IS NULL AND d.registration_status = 'registered'"
            " AND (p.state IN ('requested', 'running') OR (p.state = 'failed' AND p.next_attempt_at IS NOT NULL))"
        )

    # within

    def _loaded(self, ticket_id: int) -> Ticket:
        with self.desk.database.preparer.connect() as connection:
            row = connection.exec_driver_sql(
                f"SELECT {', '.join(column.name for column in TICKET_COLUMNS)}"
                f" FROM ops.document_ingest_outbox WHERE id = {ticket_id}"
            ).one()
        return as_ticket(row)

    def _handle(self, ticket: Ticket, dispatcher: Dispatcher) -> bool:
        """Whether the message is done with."""
        if ticket.event_type is EventType.INGEST_REQUESTED:
            self._extract(ticket)
            return True
        if ticket.event_type is EventType.ARTIFACT_DELIVERED:
            with self.desk.database.engine(Role.REGISTRAR).begin() as connection:
                apply(connection, ticket, limits=self.desk.limits)
            return True
        return dispatcher.dispatch(ticket).again is None

    def _extract(self, ticket: Ticket) -> None:
        with self.desk.database.engine(Role.EXTRACTOR).begin() as connection:
            document = lock_document(connection, ticket.document_id)
            assert document is not None
            if (
                not document.live
                or document.extraction_epoch != ticket.extraction_epoch
                or document.processing_status not in processing.IN_EXTRACTION
            ):
                mark_handled(connection, ticket.id, outcome=Outcome.ALREADY_DONE)
                return
            if document.processing_status is ProcessingStatus.UPLOADED:
                document = processing.store(connection, document, checksum_sha256="0" * 64, size_bytes=1)
            if document.processing_status is ProcessingStatus.STORED:
                document = processing.begin_extraction(connection, document)
            document = processing.finish(
                connection,
                document,
                verdict=ProcessingStatus.INDEXED,
                extraction_run_id=uuid7(),
                message=None,
            )
            service.request(connection, document)
            mark_handled(connection, ticket.id, outcome=Outcome.DONE)

    def _settle(self, run: Run) -> None:
        data = build_artifact([_EFFECTS[run.purpose]], schema=run.result_schema, run_id=run.run_id)
        artifact = parse_artifact(data, expected_schema=run.result_schema, run_id=run.run_id, max_bytes=1 << 20)
        with self.desk.database.engine(Role.SETTLER).begin() as connection:
            settle(connection, run.run_id, Delivered(artifact))


def registered_once(world: World) -> dict[UUID, int]:
    """How often each document became registered, by its history."""
    rows = world.desk.matter.rows(
        "SELECT document_id, count(*) FROM ops.document_status_transition WHERE axis = 'registration'"
        " AND to_status = 'registered' GROUP BY document_id, extraction_run_id"
    )
    return {row[0]: row[1] for row in rows}
