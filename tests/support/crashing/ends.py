"""The end of a scene, as rows tell it, and what is amiss with it."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from support.crashing.play import Play

#: A run may be asked for once more by each death of the worker that asks, and no more.
CALLS_PER_LIFE = 1

_COUNTED = {
    "documents": "SELECT name, processing_status, registration_status, extraction_epoch, deleted_at IS NULL,"
    " failure_kind, processing_message, registration_message FROM documents",
    "parts": "SELECT part, state FROM record.understanding_part",
    "contents": "SELECT part FROM record.part_content",
    "effects": "SELECT e.schema_name, e.ordinal, e.disposition, r.purpose FROM agents.agent_effect e"
    " JOIN agents.agent_run r USING (run_id)",
    "assertions": "SELECT kind, value, state FROM record.assertion WHERE state <> 'superseded'",
    "claims": "SELECT intent_key FROM record.intent_claim",
    "inbox": "SELECT kind, summary, resolved_at IS NULL FROM inbox.item",
    "audit": "SELECT event FROM ops.audit_event",
    "pages": "SELECT p.page_number, p.text FROM document_page p JOIN documents d ON d.id = p.document_id"
    " AND d.extraction_run_id = p.extraction_run_id",
    "search": "SELECT page_number FROM document_search",
    "runs": "SELECT purpose, state, attempt FROM agents.agent_run",
    "tickets": "SELECT event_type, part, generation, extraction_epoch FROM ops.document_ingest_outbox",
    "transitions": "SELECT axis, from_status, to_status FROM ops.document_status_transition",
    "spent": "SELECT sum(runs) FROM ops.agent_spend",
}
#: What tells of the way, and not of the end (see `Scene.once`).
_WAYS = frozenset({"effects", "runs", "tickets", "transitions", "spent"})
_NEVER = {
    "a ticket is not handled": "SELECT event_type, id FROM ops.document_ingest_outbox WHERE handled_at IS NULL",
    # a relay that dies after the send leaves a ticket that counts as unsent, until its receiver has handled it
    "a ticket came to nobody, and nobody withdrew it": "SELECT event_type, id FROM ops.document_ingest_outbox"
    " WHERE dispatched_at IS NULL AND receive_count = 0 AND outcome NOT IN ('document_deleted', 'replaced')",
    "a key has two tickets": "SELECT idempotency_key FROM ops.document_ingest_outbox GROUP BY 1 HAVING count(*) > 1",
    "a run is not settled": "SELECT run_id FROM agents.agent_run WHERE state = 'pending'",
    "an effect is there twice": "SELECT run_id, ordinal FROM agents.agent_effect GROUP BY 1, 2 HAVING count(*) > 1",
    "an effect was left": "SELECT run_id FROM agents.agent_effect WHERE disposition = 'verified'",
    "a claim is there twice": "SELECT document_id, extraction_run_id, intent_key FROM record.intent_claim"
    " GROUP BY 1, 2, 3 HAVING count(*) > 1",
    "an assertion is there twice": "SELECT document_id, extraction_run_id, kind, value FROM record.assertion"
    " WHERE state <> 'superseded' GROUP BY 1, 2, 3, 4 HAVING count(*) > 1",
    "an inbox item is there twice": "SELECT document_id, dedup_key FROM inbox.item GROUP BY 1, 2 HAVING count(*) > 1",
    "the diary of transitions has a gap": "SELECT id FROM (SELECT id, from_status, lag(to_status) OVER"
    " (PARTITION BY document_id, axis ORDER BY id) AS before FROM ops.document_status_transition) AS chained"
    " WHERE before IS NOT NULL AND before <> from_status",
    "the diary's last word is not the document's status": "SELECT DISTINCT ON (t.document_id, t.axis) t.id"
    " FROM ops.document_status_transition t JOIN documents d ON d.id = t.document_id WHERE t.to_status <>"
    " CASE t.axis WHEN 'processing' THEN d.processing_status ELSE d.registration_status END AND NOT EXISTS"
    " (SELECT FROM ops.document_status_transition n WHERE n.document_id = t.document_id AND n.axis = t.axis"
    " AND n.id > t.id)",
    "somebody is still at work": "SELECT id FROM documents WHERE deleted_at IS NULL AND (processing_status IN"
    " ('uploaded', 'stored', 'extracting') OR registration_status IN ('queued', 'registering'))",
}


@dataclass(frozen=True, slots=True)
class End:
    """What stands, counted, without ids and times."""

    rows: dict[str, Counter[tuple[Any, ...]]]
    amiss: tuple[str, ...]


def end_of(play: Play, *, deaths: int) -> End:
    """How a scene ended; what must never be, whatever happened, is amiss already."""
    bench = play.bench
    amiss = [
        f"{promise}: {[tuple(row) for row in found]}"
        for promise, statement in _NEVER.items()
        if (found := bench.rows(statement))
    ]
    amiss += [f"the queue {queue.name} is not empty" for queue in bench.queues if not queue.depth().empty]
    calls = bench.rows("SELECT coalesce(max(invoke_count), 0) FROM agents.agent_run")[0][0]
    if calls > 2 + CALLS_PER_LIFE * deaths:
        amiss.append(f"a run was asked for {calls} times")
    return End(
        {name: Counter(tuple(row) for row in bench.rows(statement)) for name, statement in _COUNTED.items()},
        tuple(amiss),
    )


def differences(expected: End, found: End, *, ways: bool = True) -> list[str]:
    """What differs between two ends of one scene.

    :param ways: whether the way there must have been the same, too.
    """
    told = list(found.amiss)
    for name, rows in expected.rows.items():
        if name in _WAYS and not ways:
            continue
        missing, more = rows - found.rows[name], found.rows[name] - rows
        told += [f"{name}: missing {number} of {row}" for row, number in missing.items()]
        told += [f"{name}: more {number} of {row}" for row, number in more.items()]
    return told
