"""The ledger of repairs: one row for each, written in the transaction of the repair, and read for attempts and waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.tables import registration_repair
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.results import Effect
from baton.reconcilers.rows import Repaired


@dataclass(frozen=True, slots=True)
class History:
    """What was done before about one discrepancy on one aspect of one document, in its present round."""

    attempts: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row, as far as counting needs it."""

    aspect: str
    discrepancy: str
    round: str
    at: datetime


def round_of(document: Document, aspect: Aspect) -> str:
    """What attempts are counted for: the epoch of an extraction, the attempt of a pass, the pass of a part.

    A re-extraction, a new pass or a retry begins anew.
    """
    if aspect is Aspect.INGEST:
        return f"epoch {document.extraction_epoch}"
    if aspect is Aspect.REGISTRATION:
        return f"{document.extraction_run_id} attempt {document.registration_attempt}"
    return str(document.extraction_run_id)


def read_entries(executor: Executor, document_ids: Sequence[UUID]) -> Mapping[UUID, list[Entry]]:
    """All entries of these documents, the oldest first; by the index on document."""
    found: dict[UUID, list[Entry]] = {}
    rows = executor.execute(
        select(
            registration_repair.c.document_id,
            registration_repair.c.aspect,
            registration_repair.c.discrepancy,
            registration_repair.c.detail["round"].astext,
            registration_repair.c.at,
        )
        .where(registration_repair.c.document_id.in_(document_ids))
        .order_by(registration_repair.c.document_id, registration_repair.c.at)
    )
    for document_id, aspect, discrepancy, counted, at in rows:
        found.setdefault(document_id, []).append(Entry(aspect, discrepancy, counted or "", at))
    return found


def history(entries: Sequence[Entry], document: Document, aspect: Aspect, discrepancy: str) -> History:
    """What was done before, among a document's entries."""
    counted = round_of(document, aspect)
    times = [
        each.at for each in entries if (each.aspect, each.discrepancy, each.round) == (aspect, discrepancy, counted)
    ]
    return History(len(times), max(times, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row to be written."""

    document: Document
    """As it was before the repair: its round is the one that is counted."""
    aspect: Aspect
    discrepancy: str
    action: str
    effect: Effect
    requested_by: str
    reason: str | None = None
    repaired: Repaired | None = None
    """What it names a ticket and a run by."""
    detail: Mapping[str, Any] | None = None


def write(executor: Executor, *rows: Row) -> None:
    """Append these rows."""
    if rows:
        executor.execute(insert(registration_repair), [_values(row) for row in rows])


def _values(row: Row) -> dict[str, Any]:
    document = row.document
    return {
        "firm_id": document.firm_id,
        "document_id": document.id,
        "aspect": row.aspect.value,
        "discrepancy": row.discrepancy,
        "action": row.action,
        "result": row.effect.value,
        "reason": row.reason,
        "extraction_run_id": document.extraction_run_id,
        "ticket_id": None if row.repaired is None else row.repaired.ticket_id,
        "run_id": None if row.repaired is None else row.repaired.run_id,
        "requested_by": row.requested_by,
        "detail": {**(row.detail or {}), "round": round_of(document, row.aspect)},
    }
