"""The statements that write assertions and their claims, all run as the firm's member under the document's lock.

They lock nothing else but rows of this document's. Look-ups go by document (``assertion_document``, the claims' primary
key), never by a value: under row-level security a value finds no index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, insert, select, text

from baton.db.rows import Document
from baton.db.tables import assertion
from baton.record.firm_policy import Kind
from baton.record.intents import SINGLE, Decided, Standing, identities

#: First of all: whoever inserts the row may execute the intent, in this pass, for ever.
_CLAIM = text("""
INSERT INTO record.intent_claim (firm_id, document_id, extraction_run_id, intent_key, run_id)
SELECT :firm, :document, :pass, key, :run FROM unnest(CAST(:keys AS text[])) AS key
ON CONFLICT DO NOTHING
RETURNING intent_key
""")

#: Claims of an earlier run of the pass that came to nothing which anybody applied or decided on.
_REOPENED = text("""
SELECT c.intent_key
FROM record.intent_claim c LEFT JOIN record.assertion a ON a.id = c.assertion_id AND a.document_id = c.document_id
WHERE c.document_id = :document AND c.extraction_run_id = :pass AND c.run_id <> :run
  AND c.intent_key = ANY (CAST(:keys AS text[]))
  AND (a.id IS NULL OR a.state IN ('proposed', 'denied', 'superseded'))
""")

_RECLAIM = text("""
UPDATE record.intent_claim c
SET run_id = :run, assertion_id = x.assertion_id, claimed_at = app.clock()
FROM unnest(CAST(:keys AS text[]), CAST(:ids AS bigint[])) AS x(intent_key, assertion_id)
WHERE c.document_id = :document AND c.extraction_run_id = :pass AND c.intent_key = x.intent_key
""")

#: What earlier runs left open, of whatever pass; and what earlier passes applied, of the kinds that a document has many
#: of. Accepted and declined assertions are a person's and stay.
_RETIRE = text("""
UPDATE record.assertion SET state = 'superseded'
WHERE document_id = :document AND run_id <> :run
  AND (state IN ('proposed', 'denied')
       OR (state = 'applied' AND extraction_run_id <> :pass AND kind NOT IN ('name', 'type')))
""")

#: A name or type of an earlier pass stands until this pass has applied one.
_REPLACE = text("""
UPDATE record.assertion SET state = 'superseded'
WHERE document_id = :document AND extraction_run_id <> :pass AND state = 'applied' AND kind = ANY (CAST(:kinds AS text[]))
""")


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose intents are executed: one run's, about one pass of one document."""

    document: Document
    run_id: UUID

    @property
    def _parameters(self) -> dict[str, object]:
        return {
            "firm": self.document.firm_id,
            "document": self.document.id,
            "pass": self.document.extraction_run_id,
            "run": self.run_id,
        }

    def claim(self, connection: Connection, keys: Sequence[str]) -> frozenset[str]:
        """Claim the intents; returns the keys that this run may execute."""
        parameters = {**self._parameters, "keys": list(keys)}
        fresh = set(connection.scalars(_CLAIM, parameters))
        return frozenset(fresh | set(connection.scalars(_REOPENED, parameters)))

    def retire(self, connection: Connection) -> None:
        """Take back what earlier runs proposed and nobody decided on, and what earlier passes applied."""
        connection.execute(_RETIRE, self._parameters)

    def standing(self, connection: Connection) -> Standing:
        """What stands for the document, after :meth:`retire`."""
        found = Standing()
        rows = connection.execute(
            select(
                assertion.c.kind,
                assertion.c.value,
                assertion.c.detail,
                assertion.c.target_document_id,
                assertion.c.state,
                assertion.c.extraction_run_id,
            ).where(
                assertion.c.document_id == self.document.id,
                assertion.c.state.in_(("applied", "accepted", "declined")),
            )
        )
        for kind, value, detail, target, state, extraction_run_id in rows:
            known = identities(Kind(kind), value, detail=detail, target=target)
            if state == "declined":
                found.declined |= known
                continue
            found.held |= known
            same_pass = extraction_run_id == self.document.extraction_run_id
            if Kind(kind) in SINGLE and (state == "accepted" or same_pass):
                found.single.add(Kind(kind))
        return found

    def write(self, connection: Connection, decided: Mapping[str, Decided | None]) -> None:
        """Write the assertions and let each claim name its own. A key without one says what stands already."""
        kept = [each for each in decided.values() if each is not None]
        ids: dict[str, int] = {}
        if kept:
            statement = insert(assertion).returning(assertion.c.id, sort_by_parameter_order=True)
            written = connection.scalars(statement, [self._row(each) for each in kept]).all()
            ids = {each.draft.key: number for each, number in zip(kept, written, strict=True)}
        replaced = sorted({each.draft.kind for each in kept if each.state == "applied"} & SINGLE)
        if replaced:
            connection.execute(_REPLACE, {**self._parameters, "kinds": [kind.value for kind in replaced]})
        keys = list(decided)
        connection.execute(_RECLAIM, {**self._parameters, "keys": keys, "ids": [ids.get(key) for key in keys]})

    def _row(self, decided: Decided) -> dict[str, object]:
        draft = decided.draft
        detail = dict(draft.detail)
        if decided.reason is not None:
            detail["reason"] = decided.reason.value
        return {
            "firm_id": self.document.firm_id,
            "document_id": self.document.id,
            "extraction_run_id": self.document.extraction_run_id,
            "run_id": self.run_id,
            "kind": draft.kind.value,
            "value": draft.value,
            "detail": detail,
            "target_document_id": draft.target,
            "state": decided.state.value,
            "confidence": round(draft.confidence, 6),  # float4 takes no 1e-60
        }
