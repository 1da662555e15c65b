"""Rows of ``agents.agent_run``: reading, locking, minting and settling one.

A run is locked after its document (and part) and before any ticket, always ``FOR NO KEY UPDATE``; settlers lock the run
alone. Nothing here commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, func, insert, select, text, update
from uuid_utils.compat import uuid7

from baton.contract.purposes import SCHEMA_OF, Purpose, SchemaName
from baton.db import states
from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import RunState
from baton.db.tables import agent_run
from baton.outbox.tickets import Ticket
from baton.settings.agents import Runs
from baton.telemetry.spans import current_traceparent

#: A literal, so that the partial indexes over pending runs serve generic plans too.
PENDING = text("agents.agent_run.state = 'pending'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row of ``agents.agent_run`` as it was when it was read."""

    run_id: UUID
    firm_id: UUID
    document_id: UUID
    extraction_run_id: UUID
    attempt: int
    purpose: Purpose
    result_schema: SchemaName
    state: RunState
    ticket_id: int | None
    traceparent: str | None
    invoke_count: int
    created_at: datetime
    accepted_at: datetime | None
    deadline_at: datetime
    result_key: str
    seconds_left: float
    """Seconds to the deadline by the database's clock when the row was read; negative once it has passed."""

    @property
    def pending(self) -> bool:
        """Whether nobody has settled it."""
        return self.state is RunState.PENDING


_LEFT = func.extract("epoch", agent_run.c.deadline_at - func.app.clock()).label("seconds_left")
#: The columns of :class:`Run`, in its order.
RUN_COLUMNS = tuple(_LEFT if name == "seconds_left" else agent_run.c[name] for name in Run.__dataclass_fields__)


def as_run(row: Row[Any]) -> Run:
    """Read a row that was selected by :data:`RUN_COLUMNS`."""
    values: dict[str, Any] = dict(zip(Run.__dataclass_fields__, row, strict=True))
    values["purpose"] = Purpose(values["purpose"])
    values["result_schema"] = SchemaName(values["result_schema"])
    values["state"] = RunState(values["state"])
    values["seconds_left"] = float(values["seconds_left"])
    return Run(**values)


def result_key(run_id: UUID) -> str:
    """Where the agent puts the run's artifact."""
    return f"agent-runs/{run_id}/artifact.json"


def read_run(executor: Executor, run_id: UUID) -> Run | None:
    """The run, or ``None`` where there is none."""
    row = executor.execute(select(*RUN_COLUMNS).where(agent_run.c.run_id == run_id)).one_or_none()
    return None if row is None else as_run(row)


def lock_run(executor: Executor, run_id: UUID) -> Run | None:
    """Lock the run until the transaction ends, and read it as it then is."""
    row = executor.execute(
        select(*RUN_COLUMNS).where(agent_run.c.run_id == run_id).with_for_update(key_share=True)
    ).one_or_none()
    return None if row is None else as_run(row)


def lock_run_of(executor: Executor, run_id: UUID, document: Document) -> Run | None:
    """Lock the run that a mark of the document's names; ``None`` where it is another document's, which is left alone."""
    row = executor.execute(
        select(*RUN_COLUMNS)
        .where(agent_run.c.run_id == run_id, agent_run.c.document_id == document.id)
        .with_for_update(key_share=True)
    ).one_or_none()
    return None if row is None else as_run(row)


def mint(
    executor: Executor, document: Document, *, purpose: Purpose, attempt: int, ticket: Ticket, limits: Runs
) -> Run:
    """Insert a pending run for the document's present pass; its deadline is by the database's clock.

    The caller holds the document's lock, and has settled whatever run of this purpose was pending.
    """
    run_id = uuid7()
    row = executor.execute(
        insert(agent_run)
        .values(
            run_id=run_id,
            firm_id=document.firm_id,
            document_id=document.id,
            extraction_run_id=document.extraction_run_id,
            attempt=attempt,
            purpose=purpose.value,
            result_schema=SCHEMA_OF[purpose].value,
            ticket_id=ticket.id,
            traceparent=current_traceparent() or ticket.traceparent,
            deadline_at=func.app.clock() + timedelta(seconds=limits.deadline),
            result_key=result_key(run_id),
        )
        .returning(*RUN_COLUMNS)
    ).one()
    return as_run(row)


def supersede_pending(
    executor: Executor, document: Document, *, purpose: Purpose | states.Purpose, message: str
) -> int:
    """Settle a pending run of this purpose that no row waits for any more; returns how many there were.

    In health there is none. One that was left over would otherwise make every new run break the rule of one pending
    run per document and purpose.
    """
    left_over = (
        select(agent_run.c.run_id)
        .where(agent_run.c.document_id == document.id, agent_run.c.purpose == purpose.value, PENDING)
        .with_for_update(key_share=True)
    )
    return sum(
        settle_pending(executor, run_id, state=RunState.SUPERSEDED, message=message)
        for run_id in executor.scalars(left_over).all()
    )


def settle_pending(executor: Executor, run_id: UUID, *, state: RunState, message: str | None, **values: Any) -> bool:
    """Settle a pending run for good; ``False`` where it was settled before.

    :param message: lawyer-safe.
    """
    statement = (
        update(agent_run)
        .where(and_(agent_run.c.run_id == run_id, PENDING))
        .values(state=state.value, settled_at=func.app.clock(), message=message, **values)
        .returning(agent_run.c.run_id)
    )
    return executor.execute(statement).first() is not None


def count_invoke(executor: Executor, run_id: UUID) -> Run | None:
    """Count one more invocation, to be committed before the POST; ``None`` where none may be made any more.

    An invocation whose count is not known to be the first may have been preceded by one that the agent took.
    """
    statement = (
        update(agent_run)
        .where(
            and_(
                agent_run.c.run_id == run_id,
                PENDING,
                agent_run.c.deadline_at > select(func.app.clock()).scalar_subquery(),
            )
        )
        .values(invoke_count=agent_run.c.invoke_count + 1)
        .returning(*RUN_COLUMNS)
    )
    row = executor.execute(statement).one_or_none()
    return None if row is None else as_run(row)


def mark_accepted(executor: Executor, run_id: UUID) -> bool:
    """Note the agent's acceptance; ``False`` where it was noted before or the run is settled."""
    statement = (
        update(agent_run)
        .where(and_(agent_run.c.run_id == run_id, PENDING, agent_run.c.accepted_at.is_(None)))
        .values(accepted_at=func.app.clock())
        .returning(agent_run.c.run_id)
    )
    return executor.execute(statement).first() is not None
