"""An upload that began and was never finished: reported, and a person decides."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import documents
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Clause, Discrepancy
from baton.reconcilers.situation import Situation

_d = documents.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (Clause("the upload is not finished", s.document.c.processing_status == word("pending")),)


UPLOAD_ABANDONED = Discrepancy(
    name="upload_abandoned",
    aspects=(Aspect.INGEST,),
    meaning="an upload began long ago and was never finished",
    owner=Owner.PERSON,
    severity=Severity.INFO,
    grace=timedelta(days=1),
    clauses=_clauses,
    since=lambda s: s.document.c.processing_status_since,
    reads=frozenset(("document.processing_status", "document.processing_status_since")),
    candidates=(
        by_index(
            "m_upload_abandoned",
            documents,
            _d.processing_status == word("pending"),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.processing_status_since,
            identity=_d.id,
        ),
    ),
    action="reported only",
    repair=None,
    while_young=Owner.UPLOADER,
)
