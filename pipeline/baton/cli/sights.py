"""Where documents stand, read as the firm's member."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, Row, text

from baton.db.states import Part, ProcessingStatus, RegistrationStatus

#: Documents that are counted at most: a firm can have millions, and nobody at a terminal waits for them.
COUNTED: Final = 100_000

# The policies leave the firm's own rows; doc_matter serves both, with the matter and without.
_COUNTS: Final = text("""
SELECT processing_status, registration_status, count(*) AS n
FROM (SELECT processing_status, registration_status FROM documents
      WHERE deleted_at IS NULL AND (CAST(:matter AS uuid) IS NULL OR matter_id = :matter) LIMIT :bound) seen
GROUP BY 1, 2
""")

#: Materialized: under a LIMIT the planner would walk everybody's documents backwards for a firm that has few.
_NEWEST: Final = text("""
WITH seen AS MATERIALIZED (
  SELECT id, created_at FROM documents
  WHERE deleted_at IS NULL AND (CAST(:matter AS uuid) IS NULL OR matter_id = :matter)
    AND (NOT :attention OR processing_status IN ('failed', 'needs_review')
         OR registration_status IN ('registration_failed', 'registration_needs_review'))
  LIMIT :bound)
SELECT id FROM seen ORDER BY created_at DESC, id DESC LIMIT :shown
""")

_SIGHTS: Final = text("""
SELECT d.id, d.matter_id, d.name, d.processing_status, d.registration_status, d.processing_message,
       d.registration_message, d.next_attempt_at, d.created_at, d.deleted_at,
       p.ready, p.failed
FROM documents d CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE state = 'ready') AS ready,
         count(*) FILTER (WHERE state = 'failed' AND next_attempt_at IS NULL) AS failed
  FROM record.understanding_part
  WHERE document_id = d.id AND extraction_run_id = d.extraction_run_id) p
WHERE d.id = ANY(CAST(:ids AS uuid[]))
""")

_READ_BY_NOBODY: Final = frozenset({ProcessingStatus.NEEDS_REVIEW, ProcessingStatus.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One document at one moment."""

    id: UUID
    matter_id: UUID
    name: str
    processing: ProcessingStatus
    registration: RegistrationStatus
    message: str | None
    """Why it is where it is, in a lawyer's words."""
    next_attempt_at: datetime | None
    created_at: datetime
    deleted: bool
    parts_ready: int
    parts_failed: int
    """For good."""

    @property
    def at_rest(self) -> bool:
        """Whether nobody but a person will move it any more."""
        if self.deleted or self.processing in _READ_BY_NOBODY:
            return True
        match self.registration:
            case RegistrationStatus.REGISTERED:
                return self.parts_ready + self.parts_failed == len(Part)
            case RegistrationStatus.REGISTRATION_NEEDS_REVIEW:
                return True
            case RegistrationStatus.REGISTRATION_FAILED:
                return self.next_attempt_at is None
            case _:
                return False

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end; a person who must look is none."""
        return self.processing is ProcessingStatus.FAILED or (
            self.registration is RegistrationStatus.REGISTRATION_FAILED
        )

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "id": self.id,
            "matter": self.matter_id,
            "name": self.name,
            "processing_status": self.processing,
            "registration_status": self.registration,
            "message": self.message,
            "next_attempt_at": self.next_attempt_at,
            "created_at": self.created_at,
            "deleted": self.deleted,
            "parts_ready": self.parts_ready,
            "parts_failed": self.parts_failed,
            "at_rest": self.at_rest,
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """How many documents there are of each pair of statuses."""

    pairs: Mapping[tuple[ProcessingStatus, RegistrationStatus], int]

    @property
    def total(self) -> int:
        """All that were counted."""
        return sum(self.pairs.values())

    @property
    def cut(self) -> bool:
        """Whether there are more than were counted."""
        return self.total > COUNTED

    def by_processing(self) -> dict[str, int]:
        """Along the axis from upload to text."""
        return {status.value: found for status in ProcessingStatus if (found := self._sum(0)[status])}

    def by_registration(self) -> dict[str, int]:
        """Along the axis from text to Record."""
        return {status.value: found for status in RegistrationStatus if (found := self._sum(1)[status])}

    def _sum(self, axis: int) -> Counter[str]:
        sums: Counter[str] = Counter()
        for pair, number in self.pairs.items():
            sums[pair[axis]] += number
        return sums


def count(connection: Connection, *, matter: UUID | None) -> Counts:
    """Count the firm's documents, or one matter's."""
    rows = connection.execute(_COUNTS, {"matter": matter, "bound": COUNTED + 1})
    return Counts({(ProcessingStatus(row[0]), RegistrationStatus(row[1])): int(row.n) for row in rows})


def newest(connection: Connection, *, matter: UUID | None, shown: int, attention: bool = False) -> tuple[Sight, ...]:
    """The documents that came last.

    :param attention: only those that failed or wait for a person.
    """
    values = {"matter": matter, "bound": COUNTED + 1, "shown": shown, "attention": attention}
    return look(connection, list(connection.scalars(_NEWEST, values)))


def look(connection: Connection, ids: Sequence[UUID]) -> tuple[Sight, ...]:
    """These documents, in this order; one that the firm does not have is left out."""
    found = {row.id: _sight(row) for row in connection.execute(_SIGHTS, {"ids": list(ids)})}
    return tuple(found[each] for each in ids if each in found)


def all_at_rest(sights: Iterable[Sight]) -> bool:
    """Whether nothing moves any more."""
    return all(each.at_rest for each in sights)


def _sight(row: Row[tuple[object, ...]]) -> Sight:
    messages = dict.fromkeys(each for each in (row.registration_message, row.processing_message) if each)
    return Sight(
        id=row.id,
        matter_id=row.matter_id,
        name=row.name,
        processing=ProcessingStatus(row.processing_status),
        registration=RegistrationStatus(row.registration_status),
        message=" ".join(messages) or None,
        next_attempt_at=row.next_attempt_at,
        created_at=row.created_at,
        deleted=row.deleted_at is not None,
        parts_ready=row.ready,
        parts_failed=row.failed,
    )
