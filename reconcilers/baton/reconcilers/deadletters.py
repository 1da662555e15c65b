"""Messages on the dead-letter queues: read into Postgres, matched to their tickets, redriven or kept; never dropped.

*Collecting* writes a message down, commits, and only then deletes it from its queue: whatever dies in between, it is
there twice at most, and once in ``ops.dead_letter``. From then on the classification knows that its ticket is dead.
*Settling* is a person's decision with a reason: the ticket's aspect is asked for again by the services (a new
generation), or the letter is kept. A letter whose ticket was closed meanwhile is obsolete, and says so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Engine, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from baton.aws.errors import AwsError
from baton.aws.notifications import NotificationKind
from baton.aws.notifications import parse as parse_notification
from baton.aws.objects import Store
from baton.aws.queues import Queue
from baton.aws.receiving import Message
from baton.db.connect import Executor, read_connection
from baton.db.rows import lock_document
from baton.db.states import EventType, Purpose
from baton.db.states import Outcome as Closed
from baton.db.tables import dead_letter, outbox
from baton.outbox import envelope
from baton.outbox.life import mark_handled
from baton.outbox.tickets import TICKET_COLUMNS, Ticket, as_ticket, load
from baton.reconcilers import ledger
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.choosing import Choice, carry_out
from baton.reconcilers.discrepancies.ticket_dead_lettered import TICKET_DEAD_LETTERED
from baton.reconcilers.judging import judge
from baton.reconcilers.planning import Ground
from baton.reconcilers.results import Effect
from baton.reconcilers.rows import Case
from baton.runs.findings import look
from baton.runs.results import run_of
from baton.runs.rows import read_run
from baton.runs.settling import settle_now
from baton.settings.model import Settings
from baton.telemetry import fields
from baton.telemetry.labels import Settler

_log = logging.getLogger(__name__)
_l: Final = dead_letter.c

#: The queue of artifacts' notifications; its letters have no tickets.
RESULTS: Final = "results"
#: Seconds for which a letter is hidden while it is written down.
_HOLD: Final = 60
_AT_ONCE: Final = 10


class Outcome(StrEnum):
    """What became of a letter."""

    REDRIVEN = "redriven"
    KEPT = "kept"
    OBSOLETE = "obsolete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One letter, as it was written down."""

    id: int
    queue: str
    message_id: str
    ticket_id: int | None
    body: str
    receive_count: int | None
    found_at: datetime
    settled_at: datetime | None
    outcome: Outcome | None
    reason: str | None

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {name: getattr(self, name) for name in Letter.__dataclass_fields__}


def collect(engine: Engine, name: str, dead: Queue, *, most: int = 1000) -> int:
    """Bring what lies on a dead-letter queue into Postgres; returns how many letters were new.

    :param name: of the lane, or ``results``.
    :param dead: the dead-letter queue.
    :raises AwsError: the queue is away; what was written down stands.
    """
    new = 0
    read = 0
    while read < most:
        messages = dead.receive(wait=1, limit=_AT_ONCE, visibility=_HOLD)
        if not messages:
            break
        read += len(messages)
        with engine.begin() as connection:
            new += sum(_write(connection, name, each) for each in messages)
        refused = dead.delete_batch([each.receipt for each in messages])
        if refused:  # they come again, and are known by then
            _log.warning("letters stayed on their queue", extra=fields.of(queue=name, count=len(refused)))
    if new:
        _log.warning("dead letters were collected", extra=fields.of(queue=name, count=new))
    return new


def collect_all(engine: Engine, queues: Sequence[tuple[str, Queue]]) -> int:
    """Collect from every dead-letter queue that seems to hold something; an empty one costs one call."""
    return sum(
        collect(engine, name, queue.dead)
        for name, queue in queues
        if queue.dead is not None and not queue.dead.depth().empty
    )


def sweep(engine: Engine, queues: Sequence[Queue]) -> None:
    """What a loop does before each pass: collect, and retire what is obsolete. A queue that is away waits for the next.

    :param queues: ingest, registrar, results.
    """
    for name, queue in named(queues):
        try:
            collect_all(engine, [(name, queue)])
        except AwsError as error:
            _log.warning("a dead-letter queue could not be read", exc_info=error, extra=fields.of(queue=name))
    with engine.begin() as connection:
        retire(connection)


def retire(executor: Executor) -> int:
    """Settle open letters whose ticket was closed meanwhile, by whatever; returns how many."""
    closed = exists(select(outbox.c.id).where(outbox.c.id == _l.ticket_id, outbox.c.handled_at.is_not(None)))
    return _settle_all(executor, closed, outcome=Outcome.OBSOLETE, reason="its ticket was closed meanwhile")


def settle_closed(executor: Executor, document_id: UUID, *, reason: str) -> int:
    """Settle a document's open letters whose tickets a redrive has just replaced; returns how many."""
    closed = select(outbox.c.id).where(outbox.c.document_id == document_id, outbox.c.handled_at.is_not(None))
    return _settle_all(executor, _l.ticket_id.in_(closed), outcome=Outcome.REDRIVEN, reason=reason)


def opened(
    executor: Executor, *, queue: str | None = None, after: int = 0, limit: int = 100, kept: bool = False
) -> list[Letter]:
    """Letters that wait for a decision, the oldest first.

    :param queue: only of this one.
    :param after: the id behind which they begin.
    :param kept: those instead that were kept.
    """
    statement = select(*(_l[name] for name in Letter.__dataclass_fields__)).where(
        _l.id > after, _l.outcome == "kept" if kept else _l.outcome.is_(None)
    )
    if queue is not None:
        statement = statement.where(_l.queue == queue)
    rows = executor.execute(statement.order_by(_l.id).limit(limit))
    return [_as_letter(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """Settles letters, with a reason."""

    engine: Engine
    settings: Settings
    store: Store
    reason: str
    requested_by: str

    def redrive(self, letter: Letter, *, ground: Ground) -> Outcome | None:
        """Ask again for what the letter asked for; ``None`` where it was settled before.

        One that belongs to no ticket is kept: nobody knows what it asks for.
        """
        if letter.queue == RESULTS:
            return self._result(letter)
        with self.engine.begin() as connection:
            ticket = None if letter.ticket_id is None else _ticket(connection, letter.ticket_id)
            if ticket is None:
                why = f"{letter.reason or 'it belongs to no ticket'}; {self.reason}"
                return _settle(connection, letter, Outcome.KEPT, why)
            return self._again(connection, letter, ticket, ground=ground)

    def keep(self, letter: Letter) -> Outcome | None:
        """Keep it as it is, for the reason given; ``None`` where it was settled before."""
        with self.engine.begin() as connection:
            return _settle(connection, letter, Outcome.KEPT, self.reason)

    def _again(self, connection: Connection, letter: Letter, ticket: Ticket, *, ground: Ground) -> Outcome | None:
        document = lock_document(connection, ticket.document_id)
        ticket = _ticket(connection, ticket.id) or ticket
        if document is None or ticket.handled_at is not None:
            return _settle(connection, letter, Outcome.OBSOLETE, f"its ticket was closed: {ticket.outcome}")
        aspect = _aspect(connection, ticket)
        verdict = judge(connection, [document.id], ground=ground, aspects=[aspect])[document.id][aspect]
        if verdict.name != TICKET_DEAD_LETTERED.name:
            # the aspect waits for another ticket, or for none: this one would stay open for ever
            mark_handled(connection, ticket.id, outcome=Closed.STALE)
            return _settle(connection, letter, Outcome.OBSOLETE, f"its document is {verdict.name} by now")
        case = Case(executor=connection, document=document, aspect=aspect, settings=self.settings)
        repaired = carry_out(Choice.AGAIN, case, verdict, actor=self.requested_by)
        if repaired is None:
            return _settle(connection, letter, Outcome.KEPT, f"nothing could be asked for again; {self.reason}")
        ledger.write(
            connection,
            ledger.Row(
                document=document,
                aspect=aspect,
                discrepancy=TICKET_DEAD_LETTERED.name,
                action=repaired.action,
                effect=Effect.REPAIRED,
                requested_by=self.requested_by,
                reason=self.reason,
                repaired=repaired,
                detail={"dead_letter": letter.id, "message_id": letter.message_id},
            ),
        )
        return _settle(connection, letter, Outcome.REDRIVEN, self.reason)

    def _result(self, letter: Letter) -> Outcome | None:
        """A notification: the artifact is looked for, with nothing locked, and its run settled."""
        outcomes: Counter[Outcome] = Counter()
        for created in parse_notification(letter.body).objects:
            run_id = run_of(created.key)
            with read_connection(self.engine) as connection:
                run = None if run_id is None else read_run(connection, run_id)
            if run is None:
                continue
            if not run.pending:
                outcomes[Outcome.OBSOLETE] += 1
                continue
            finding = look(self.store, run, max_bytes=self.settings.runs.artifact_max_bytes)
            if finding is not None:
                settle_now(self.engine, run, finding, settler=Settler.RESULTS)
                outcomes[Outcome.REDRIVEN] += 1
        outcome = next((each for each in (Outcome.REDRIVEN, Outcome.OBSOLETE) if outcomes[each]), Outcome.KEPT)
        why = {
            Outcome.REDRIVEN: self.reason,
            Outcome.OBSOLETE: "its run had been settled",
            Outcome.KEPT: f"it leads to no run's artifact; {self.reason}",
        }
        with self.engine.begin() as connection:
            return _settle(connection, letter, outcome, why[outcome])


def _write(connection: Connection, name: str, message: Message) -> int:
    ticket_id, unmatched = (None, _of_result(message)) if name == RESULTS else _match(connection, message)
    written = connection.execute(
        insert(dead_letter)
        .values(
            queue=name,
            message_id=message.message_id,
            ticket_id=ticket_id,
            body=message.body.replace("\x00", "\ufffd"),  # the one character that Postgres does not take
            receive_count=message.receive_count,
            reason=unmatched,
        )
        .on_conflict_do_nothing(index_elements=["queue", "message_id"])
        .returning(_l.id)
    )
    return len(written.all())


def _match(connection: Connection, message: Message) -> tuple[int | None, str | None]:
    """The ticket that a message belongs to, or why it belongs to none. The message is never believed."""
    try:
        found = envelope.parse(message.body)
    except envelope.EnvelopeError as error:
        return None, str(error)
    ticket = load(connection, ticket_id=found.ticket_id, key=found.idempotency_key)
    return (None, "there is no such ticket") if ticket is None else (ticket.id, None)


def _of_result(message: Message) -> str | None:
    found = parse_notification(message.body)
    return found.reason if found.kind is NotificationKind.UNREADABLE else None


def _ticket(connection: Connection, ticket_id: int) -> Ticket | None:
    row = connection.execute(select(*TICKET_COLUMNS).where(outbox.c.id == ticket_id)).one_or_none()
    return None if row is None else as_ticket(row)


def _aspect(connection: Connection, ticket: Ticket) -> Aspect:
    """What the ticket is about; a letter about a run has that of the run's purpose."""
    if ticket.event_type is EventType.INGEST_REQUESTED:
        return Aspect.INGEST
    if ticket.part is not None:
        return Aspect(ticket.part.value)
    run = None if ticket.run_id is None else read_run(connection, ticket.run_id)
    purpose = Purpose.CLASSIFY if run is None else Purpose(run.purpose.value)
    return Aspect.REGISTRATION if purpose is Purpose.CLASSIFY else Aspect(purpose.value)


def _settle(connection: Connection, letter: Letter, outcome: Outcome, reason: str) -> Outcome | None:
    settled = connection.execute(
        update(dead_letter)
        .where(_l.id == letter.id, _l.outcome.is_(None))
        .values(outcome=outcome.value, settled_at=func.app.clock(), reason=reason)
        .returning(_l.id)
    )
    return None if settled.first() is None else outcome


def _settle_all(executor: Executor, which: ColumnElement[bool], *, outcome: Outcome, reason: str) -> int:
    settled = executor.execute(
        update(dead_letter)
        .where(_l.outcome.is_(None), _l.ticket_id.is_not(None), which)
        .values(outcome=outcome.value, settled_at=func.app.clock(), reason=reason)
        .returning(_l.id)
    )
    return len(settled.all())


def _as_letter(row: Any) -> Letter:
    values = row._asdict()
    values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
    return Letter(**values)


Named: TypeAlias = tuple[str, Queue]


def named(queues: Sequence[Queue]) -> Iterator[Named]:
    """The ingest, registrar and results queue with the names that letters are kept under."""
    return zip(("ingest", "registrar", RESULTS), queues, strict=True)
