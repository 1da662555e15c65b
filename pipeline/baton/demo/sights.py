"""What the firm sees of its documents at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import text

from baton.casefile.exhibits import Exhibit
from baton.db.connect import firm_transaction
from baton.db.states import Part, ProcessingStatus, RegistrationStatus
from baton.demo.arrivals import Filed, Firm

# The policies leave the firm's own rows; the look-ups go by the document indexes.
_LOOK: Final = text(
    """
    SELECT d.id, d.processing_status, d.registration_status, d.processing_message, d.registration_message,
           (SELECT count(*) FROM agents.agent_run r WHERE r.document_id = d.id) AS runs,
           (SELECT count(*) FROM agents.agent_effect e
             WHERE e.document_id = d.id AND e.disposition = 'applied') AS applied,
           (SELECT count(*) FROM record.understanding_part p
             WHERE p.document_id = d.id AND p.state = 'ready') AS ready,
           (SELECT count(*) FROM record.understanding_part p
             WHERE p.document_id = d.id AND p.state = 'failed') AS broken,
           (SELECT count(*) FROM ops.document_ingest_outbox t
             WHERE t.document_id = d.id AND t.handled_at IS NULL) AS open_tickets,
           (SELECT string_agg(DISTINCT i.summary, ' ') FROM inbox.item i WHERE i.document_id = d.id) AS inbox
      FROM documents d
    """
)

_WAITS_FOR_NOBODY: Final = frozenset({ProcessingStatus.NEEDS_REVIEW, ProcessingStatus.FAILED})
_DECIDED: Final = frozenset(
    {
        RegistrationStatus.REGISTERED,
        RegistrationStatus.REGISTRATION_FAILED,
        RegistrationStatus.REGISTRATION_NEEDS_REVIEW,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One document at one moment."""

    processing: ProcessingStatus = ProcessingStatus.PENDING
    registration: RegistrationStatus = RegistrationStatus.NOT_REQUESTED
    message: str = ""
    """Why it is where it is, in a lawyer's words; empty where nothing is to be said."""
    runs: int = 0
    applied: int = 0
    """Effects of agents' answers that were applied."""
    parts_ready: int = 0
    parts_failed: int = 0
    open_tickets: int = 0

    @property
    def at_rest(self) -> bool:
        """Whether nobody but a person will move it any more."""
        if self.open_tickets:
            return False
        if self.processing in _WAITS_FOR_NOBODY:
            return True
        if self.processing is not ProcessingStatus.INDEXED or self.registration not in _DECIDED:
            return False
        parts = self.parts_ready + self.parts_failed
        return self.registration is not RegistrationStatus.REGISTERED or parts == len(Part)

    def as_expected(self, exhibit: Exhibit) -> bool:
        """Whether it is where it was said beforehand that it would be."""
        return (
            self.processing == exhibit.expected_processing
            and self.registration == exhibit.expected_registration
            and not self.parts_failed
        )


def look(firm: Firm) -> Mapping[UUID, Sight]:
    """Look at every document of the firm, in one statement."""
    with firm_transaction(firm.engine, firm.id) as connection:
        rows = connection.execute(_LOOK).all()
    return {
        row.id: Sight(
            processing=ProcessingStatus(row.processing_status),
            registration=RegistrationStatus(row.registration_status),
            message=_joined(row.registration_message, row.processing_message, row.inbox),
            runs=row.runs,
            applied=row.applied,
            parts_ready=row.ready,
            parts_failed=row.broken,
            open_tickets=row.open_tickets,
        )
        for row in rows
    }


def all_at_rest(filed: Iterable[Filed], seen: Mapping[UUID, Sight]) -> bool:
    """Whether every one of these documents is at rest."""
    return all(each.id in seen and seen[each.id].at_rest for each in filed)


def _joined(*messages: str | None) -> str:
    """The messages one after the other, without those that another one says too."""
    said = list(dict.fromkeys(each for each in messages if each))
    return " ".join(each for each in said if not any(each in other for other in said if other != each))
