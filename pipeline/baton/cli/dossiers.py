"""Everything that a firm's member may know of one document: text, Record, runs, tickets, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, text

from baton.db.rows import Document, read_document
from baton.documents.errors import UnknownDocument

Rows = Sequence[Mapping[str, Any]]

#: Entries of each kind at most; the newest are shown.
_MOST: Final = 200

# Each goes by an index that begins with the document.
_PAGES: Final = text("""
SELECT count(*) AS pages, count(*) FILTER (WHERE source = 'ocr') AS recognised,
       min(confidence) AS least_confidence, coalesce(sum(length(text)), 0) AS characters
FROM document_page WHERE document_id = :id AND extraction_run_id = :pass
""")
_TEXT: Final = text("""
SELECT page_number AS page, source, confidence, text FROM document_page
WHERE document_id = :id AND extraction_run_id = :pass ORDER BY page_number
""")
_RECORD: Final = text("""
SELECT kind, value, state, confidence, target_document_id AS target, detail, created_at AS at
FROM record.assertion WHERE document_id = :id AND (:all OR state <> 'superseded') ORDER BY kind, id LIMIT :most
""")
_INBOX: Final = text("""
SELECT kind, summary, created_at AS at, resolved_at, resolved_by
FROM inbox.item WHERE document_id = :id ORDER BY created_at, id LIMIT :most
""")
_PARTS: Final = text("""
SELECT p.part, p.state, p.state_since AS since, p.attempt, p.next_attempt_at, p.message, c.content
FROM record.understanding_part p
LEFT JOIN record.part_content c ON c.document_id = p.document_id AND c.extraction_run_id = p.extraction_run_id
                               AND c.part = p.part AND c.firm_id = p.firm_id
WHERE p.document_id = :id AND p.extraction_run_id = :pass
ORDER BY array_position(ARRAY['card', 'sections', 'brief'], p.part)
""")
_RUNS: Final = text("""
SELECT run_id AS id, purpose, state, attempt, invoke_count AS invoked, created_at AS at, accepted_at, deadline_at,
       settled_at, message
FROM agents.agent_run WHERE document_id = :id ORDER BY seq DESC LIMIT :most
""")
_TICKETS: Final = text("""
SELECT id, event_type AS event, part, generation, attempt, created_at AS at, not_before, attempts AS refusals, last_error,
       dispatched_at, parked_at, receive_count AS received, hold_until, work_attempts, handled_at, outcome
FROM ops.document_ingest_outbox WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_TRANSITIONS: Final = text("""
SELECT at, axis || ': ' || from_status || ' → ' || to_status AS what, message AS why, application AS by
FROM ops.document_status_transition WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_AUDIT: Final = text("""
SELECT at, event AS what, NULL AS why, actor AS by
FROM ops.audit_event WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_REPAIRS: Final = text("""
SELECT at, 'repair: ' || discrepancy || ', ' || action || ', ' || result AS what, reason AS why, requested_by AS by
FROM ops.registration_repair WHERE document_id = :id ORDER BY at DESC LIMIT :most
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """One document at one moment; rows as they are read, newest last in histories."""

    document: Document
    pages: Mapping[str, Any]
    record: Rows
    inbox: Rows
    parts: Rows
    runs: Rows
    tickets: Rows
    timeline: Rows
    text: Rows
    """Empty unless it was asked for."""

    def as_json(self) -> dict[str, object]:
        """For machines."""
        document = {name: getattr(self.document, name) for name in Document.__dataclass_fields__}
        told: dict[str, object] = {"document": document, "pages": dict(self.pages)}
        for name in ("record", "inbox", "parts", "runs", "tickets", "timeline"):
            told[name] = [dict(row) for row in getattr(self, name)]
        return {**told, "text": [dict(row) for row in self.text]} if self.text else told


def read_dossier(
    connection: Connection, document_id: UUID, *, with_text: bool = False, all_of_it: bool = False
) -> Dossier:
    """Read it in the caller's transaction.

    :param with_text: the text of every page, too.
    :param all_of_it: superseded entries of the Record, too.
    :raises UnknownDocument: none such for the transaction's firm.
    """
    document = read_document(connection, document_id)
    if document is None:
        raise UnknownDocument(f"there is no document {document_id}")
    values = {"id": document.id, "pass": document.extraction_run_id, "most": _MOST, "all": all_of_it}

    def rows(statement: Any) -> list[Mapping[str, Any]]:
        return [dict(row) for row in connection.execute(statement, values).mappings()]

    history = [*rows(_TRANSITIONS)[::-1], *rows(_AUDIT)[::-1], *rows(_REPAIRS)[::-1]]
    return Dossier(
        document=document,
        pages=rows(_PAGES)[0],
        record=rows(_RECORD),
        inbox=rows(_INBOX),
        parts=rows(_PARTS),
        runs=rows(_RUNS)[::-1],
        tickets=rows(_TICKETS)[::-1],
        timeline=sorted(history, key=lambda row: row["at"])[-_MOST:],
        text=rows(_TEXT) if with_text else [],
    )
