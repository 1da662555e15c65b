"""What a settled run brought: its row, its verified effects, and what becomes of them.

A settled run never changes again, so its row is read without a lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import exists, func, select, update

from baton.db.connect import Executor
from baton.db.states import Purpose, RunState
from baton.db.tables import agent_effect, agent_run


class Disposition(StrEnum):
    """What became of an effect after it was verified."""

    APPLIED = "applied"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A run, as far as an apply needs it. ``seq`` is the order of minting: a newer run has a higher one."""

    run_id: UUID
    seq: int
    firm_id: UUID
    document_id: UUID
    extraction_run_id: UUID
    purpose: Purpose
    result_schema: str
    state: RunState
    message: str | None


_COLUMNS = tuple(agent_run.c[name] for name in Delivery.__dataclass_fields__)


def read_delivery(executor: Executor, run_id: UUID) -> Delivery | None:
    """The run, or ``None`` where there is none."""
    row = executor.execute(select(*_COLUMNS).where(agent_run.c.run_id == run_id)).one_or_none()
    if row is None:
        return None
    values: dict[str, Any] = dict(zip(Delivery.__dataclass_fields__, row, strict=True))
    values["purpose"] = Purpose(values["purpose"])
    values["state"] = RunState(values["state"])
    return Delivery(**values)


def effects_of(executor: Executor, delivery: Delivery) -> list[Any]:
    """The run's effects as plain JSON values, in the artifact's order. Served by the unique key (firm, run, ordinal)."""
    return list(
        executor.scalars(
            select(agent_effect.c.data)
            .where(agent_effect.c.firm_id == delivery.firm_id, agent_effect.c.run_id == delivery.run_id)
            .order_by(agent_effect.c.ordinal)
        )
    )


def outrun(executor: Executor, delivery: Delivery) -> bool:
    """Whether effects of a newer run are applied for this document and schema. Served by ``effect_document``."""
    newer = (
        select(agent_effect.c.id)
        .join(agent_run, agent_run.c.run_id == agent_effect.c.run_id)
        .where(
            agent_effect.c.document_id == delivery.document_id,
            agent_effect.c.schema_name == delivery.result_schema,
            agent_effect.c.disposition == Disposition.APPLIED.value,
            agent_run.c.seq > delivery.seq,
        )
    )
    return bool(executor.execute(select(exists(newer))).scalar_one())


def dispose(executor: Executor, delivery: Delivery, disposition: Disposition) -> int:
    """Mark the run's effects that are not marked yet; returns how many.

    What was called stale while its document had lost the mark of the run may yet be applied, once the mark is back.
    """
    applying = disposition is Disposition.APPLIED
    applied_at = func.app.clock() if applying else None
    marked = executor.execute(
        update(agent_effect)
        .where(
            agent_effect.c.firm_id == delivery.firm_id,
            agent_effect.c.run_id == delivery.run_id,
            agent_effect.c.disposition.in_(("verified", "stale") if applying else ("verified",)),
        )
        .values(disposition=disposition.value, applied_at=applied_at)
        .returning(agent_effect.c.id)
    )
    return len(marked.all())
