"""Settling a run: from pending to delivered, rejected or expired, with its effects and ONE ticket, in one transaction.

A settler's role cannot read a document, let alone write one: opening the letter is the registrar's part. So everything
that the ticket says is copied from the run and from the ticket that the run was dispatched for.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Engine, insert, select, update

from baton.db.connect import Executor
from baton.db.states import EventType, RunState
from baton.db.tables import agent_effect, agent_run, outbox
from baton.outbox.keys import Subject
from baton.outbox.tickets import TICKET_COLUMNS, Pointer, Ticket, as_ticket, write_first, write_next
from baton.runs.findings import STATE_OF, Delivered, Finding
from baton.runs.rows import Run, lock_run, settle_pending
from baton.telemetry import fields, metrics
from baton.telemetry.labels import Settler
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)

#: States in which a run has something to say to its document.
_ANNOUNCED = frozenset(STATE_OF.values())


class Result(StrEnum):
    """What became of an attempt to settle."""

    SETTLED = "settled"
    TOO_LATE = "too_late"
    """The run was settled before: by another settler, a takeover, a re-extraction or a deletion."""
    UNKNOWN = "unknown"
    """There is no such run."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result, and the run as it was under its lock."""

    result: Result
    run: Run | None = None
    ticket: Ticket | None = None


def settle(connection: Executor, run_id: UUID, finding: Finding) -> Settlement:
    """Settle the run if it is pending, on the caller's transaction; otherwise write nothing at all.

    Locks the run and nothing before it.
    """
    run = lock_run(connection, run_id)
    if run is None:
        return Settlement(Result.UNKNOWN)
    if not run.pending:
        return Settlement(Result.TOO_LATE, run)
    digest = None
    if isinstance(finding, Delivered):
        digest = finding.artifact.digest
        connection.execute(insert(agent_effect), _effects(run, finding))
    ticket = _write_ticket(connection, run)
    settle_pending(
        connection,
        run_id,
        state=STATE_OF[type(finding)],
        message=None if isinstance(finding, Delivered) else finding.message,
        result_digest=digest,
        artifact_ticket_id=ticket.id,
    )
    return Settlement(Result.SETTLED, run, ticket)


def announce(executor: Executor, run_id: UUID) -> Ticket | None:
    """Announce a settled run again, or for the first time: the next generation of its ticket, and its mark.

    The caller holds the document's lock; the run is locked here.

    :returns: ``None`` where the run is not one whose letter is opened.
    """
    run = lock_run(executor, run_id)
    if run is None or run.state not in _ANNOUNCED:
        return None
    ticket = _write_ticket(executor, run, again=True)
    _mark(executor, run_id, ticket)
    return ticket


def adopt_ticket(executor: Executor, run_id: UUID) -> Ticket | None:
    """Write the mark of the announcement that stands already; ``None`` where there is none."""
    run = lock_run(executor, run_id)
    row = executor.execute(
        select(*TICKET_COLUMNS)
        .where(
            outbox.c.document_id == (None if run is None else run.document_id),
            outbox.c.event_type == EventType.ARTIFACT_DELIVERED.value,
            outbox.c.run_id == run_id,
        )
        .order_by(outbox.c.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    ticket = as_ticket(row)
    _mark(executor, run_id, ticket)
    return ticket


def _mark(executor: Executor, run_id: UUID, ticket: Ticket) -> None:
    executor.execute(update(agent_run).where(agent_run.c.run_id == run_id).values(artifact_ticket_id=ticket.id))


def settle_now(engine: Engine, run: Run, finding: Finding, *, settler: Settler) -> Settlement:
    """Settle in a transaction of its own, and tell what came of it."""
    about = {Attribute.FIRM: run.firm_id, Attribute.DOCUMENT: run.document_id, Attribute.RUN: run.run_id}
    with span(SpanName.AGENT_SETTLE, parent_traceparent=run.traceparent, attributes=about) as opened:
        with engine.begin() as connection:
            settlement = settle(connection, run.run_id, finding)
        opened.set(Attribute.OUTCOME, settlement.result)
    state = STATE_OF[type(finding)]
    extra = fields.of(run=run.run_id, document=run.document_id, state=state, code=getattr(finding, "code", None))
    if settlement.result is Result.SETTLED:
        metrics.RUNS_SETTLED.add(state=state, settler=settler)
        metrics.RUN_DURATION.observe(_age(run), state=state)
        _log.info("a run was settled", extra=extra)
    elif not isinstance(finding, Delivered) or settlement.run is None:
        _log.info("a run had been settled before", extra=extra)
    else:
        tell_late(settlement.run)
    return settlement


def tell_late(run: Run) -> None:
    """Record an artifact that came for a run that is not pending; it changes nothing.

    For a run that had been settled by an artifact it is most likely the same one, announced twice.
    """
    metrics.ARTIFACTS_LATE.add(state=run.state)
    extra = fields.of(run=run.run_id, document=run.document_id, state=run.state, attempt=run.attempt)
    level = logging.INFO if run.state in (RunState.DELIVERED, RunState.REJECTED) else logging.WARNING
    _log.log(level, "an artifact came for a settled run and was ignored", extra=extra)


def _effects(run: Run, delivered: Delivered) -> list[dict[str, object]]:
    # whoever has an artifact has it imported
    from baton.contract.artifacts import dump_effects  # noqa: PLC0415

    return [
        {
            "firm_id": run.firm_id,
            "document_id": run.document_id,
            "run_id": run.run_id,
            "ordinal": ordinal,
            "schema_name": run.result_schema.value,
            "data": data,
        }
        for ordinal, data in enumerate(dump_effects(delivered.artifact.effects))
    ]


def _write_ticket(connection: Executor, run: Run, *, again: bool = False) -> Ticket:
    # by document: the outbox has an index on it. The ticket of the dispatch is one of its rows; where that is not known,
    # another of the pass says the same, and so does any of the document's but for the epoch.
    origin = connection.execute(
        select(outbox.c.matter_id, outbox.c.object_key, outbox.c.content_type, outbox.c.extraction_epoch)
        .where(outbox.c.document_id == run.document_id)
        .order_by(
            (outbox.c.id == run.ticket_id).desc().nulls_last(),
            (outbox.c.extraction_run_id == run.extraction_run_id).desc().nulls_last(),
            outbox.c.id.desc(),
        )
        .limit(1)
    ).one()
    subject = Subject(
        firm_id=run.firm_id,
        document_id=run.document_id,
        event_type=EventType.ARTIFACT_DELIVERED,
        extraction_epoch=origin.extraction_epoch,
        extraction_run_id=run.extraction_run_id,
        run_id=run.run_id,
    )
    pointer = Pointer(matter_id=origin.matter_id, object_key=origin.object_key, content_type=origin.content_type)
    write = write_next if again else write_first
    return write(connection, subject, pointer=pointer, attempt=run.attempt)


def _age(run: Run) -> float:
    """Seconds from dispatch to the settlement, both by the database's clock."""
    return max((run.deadline_at - run.created_at).total_seconds() - run.seconds_left, 0.0)
