"""Candidates that more than one discrepancy asks about: rows whose mark of a ticket is missing.

Whether the ticket is missing too, or only its mark, the condition says.
"""

from __future__ import annotations

from typing import Final

from baton.db.tables import agent_run, documents, understanding_part
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import among, word
from baton.reconcilers.situation import WITH_LETTER

_d, _p, _r = documents.c, understanding_part.c, agent_run.c

INGEST_TICKET: Final = by_index(
    "m_ingest_ticket_missing",
    documents,
    _d.processing_status == word("uploaded"),
    _d.ingest_ticket_id.is_(None),
    _d.deleted_at.is_(None),
    document=_d.id,
    at=_d.processing_status_since,
    identity=_d.id,
)
REQUEST_TICKET: Final = by_index(
    "m_request_ticket_missing",
    documents,
    _d.registration_status == word("queued"),
    _d.registration_ticket_id.is_(None),
    _d.deleted_at.is_(None),
    document=_d.id,
    at=_d.registration_status_since,
    identity=_d.id,
)
PART_TICKET: Final = by_index(
    "part_ticket_missing",
    understanding_part,
    _p.state == word("requested"),
    _p.ticket_id.is_(None),
    document=_p.document_id,
    at=_p.state_since,
    identity=_p.document_id,
)
LETTER: Final = by_index(
    "m_artifact_unopened",
    agent_run,
    among(_r.state, WITH_LETTER),
    _r.artifact_ticket_id.is_(None),
    document=_r.document_id,
    at=_r.settled_at,
    identity=_r.run_id,
)
