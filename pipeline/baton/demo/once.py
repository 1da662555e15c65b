"""Whether each effect happened once: rows are counted, nobody's word is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import TextClause, text

from baton.db.connect import firm_transaction
from baton.demo.arrivals import Firm


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of one kind, and how many of them are one too many."""

    what: str
    rows: int
    too_many: int

    @property
    def once(self) -> bool:
        """Whether there is none too many."""
        return self.too_many == 0


# Each statement gives (rows, rows too many). A withdrawn run is no effect: it was never taken, or its result is fenced.
_COUNTS: Final[tuple[tuple[str, TextClause], ...]] = (
    (
        "uploads in the audit trail",
        text(
            "SELECT count(*), count(*) - count(DISTINCT document_id) FROM ops.audit_event"
            " WHERE event = 'document.uploaded'"
        ),
    ),
    (
        "transitions of status",
        text(
            "SELECT coalesce(sum(n), 0), coalesce(sum(n - 1) FILTER (WHERE final), 0) FROM ("
            "  SELECT count(*) AS n, to_status IN ('indexed', 'needs_review', 'failed', 'registered',"
            "         'registration_needs_review', 'registration_failed') AS final"
            "    FROM ops.document_status_transition GROUP BY document_id, axis, to_status) each"
        ),
    ),
    (
        "tickets, by key",
        text("SELECT count(*), count(*) - count(DISTINCT idempotency_key) FROM ops.document_ingest_outbox"),
    ),
    (
        "tickets of delivered artifacts",
        text(
            "SELECT count(*), count(*) - count(DISTINCT run_id) FROM ops.document_ingest_outbox"
            " WHERE event_type = 'document.artifact.delivered'"
        ),
    ),
    (
        "agent runs that were delivered",
        text(
            "SELECT coalesce(sum(n), 0), coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM agents.agent_run"
            " WHERE state = 'delivered' GROUP BY document_id, extraction_run_id, purpose) each"
        ),
    ),
    (
        "effects that were applied",
        text(
            "SELECT coalesce(sum(n), 0), coalesce(sum(runs - 1), 0) FROM (SELECT count(*) AS n,"
            " count(DISTINCT run_id) AS runs FROM agents.agent_effect WHERE disposition = 'applied'"
            " GROUP BY document_id, schema_name) each"
        ),
    ),
    (
        "entries of the Record, by the intent that claimed them",
        text(
            "SELECT count(*), count(*) - count(DISTINCT c.assertion_id) FROM record.assertion a"
            " LEFT JOIN record.intent_claim c ON c.assertion_id = a.id WHERE a.state <> 'superseded'"
        ),
    ),
    (
        "items in the inbox",
        text(
            "SELECT coalesce(sum(n), 0), coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM inbox.item"
            " GROUP BY document_id, kind) each"
        ),
    ),
    (
        "cards, sections and briefs",
        text("SELECT count(*), count(*) - count(DISTINCT (document_id, part)) FROM record.part_content"),
    ),
)


def count(firm: Firm) -> tuple[Count, ...]:
    """Count the firm's rows."""
    counted = []
    with firm_transaction(firm.engine, firm.id) as connection:
        for what, statement in _COUNTS:
            rows, too_many = connection.execute(statement).one()
            counted.append(Count(what=what, rows=int(rows), too_many=int(too_many)))
    return tuple(counted)
