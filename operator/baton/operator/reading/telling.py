"""What leaves: every field is named here. What is not named stays, so that a new column is no new leak.

Left out are names of files, keys of objects, messages that counsel or the agent wrote, digests, actors of a firm, and
the words of errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from baton.reconcilers.explain import Explanation
from baton.reconcilers.explain import as_json as explanation_json
from baton.reconcilers.results import PassResult, Planned
from baton.reconcilers.timeline import Event, Kind

_DOCUMENT: Final = (
    "id",
    "firm_id",
    "matter_id",
    "processing_status",
    "processing_status_since",
    "registration_status",
    "registration_status_since",
    "extraction_epoch",
    "extraction_attempt",
    "extraction_run_id",
    "registration_attempt",
    "registration_run_id",
    "registration_pass",
    "understood_pass",
    "ingest_ticket_id",
    "registration_ticket_id",
    "next_attempt_at",
    "failure_kind",
    "created_at",
    "deleted_at",
)
_TICKET: Final = (
    "id",
    "event_type",
    "lane",
    "generation",
    "redrive_of",
    "extraction_epoch",
    "extraction_run_id",
    "attempt",
    "run_id",
    "part",
    "created_at",
    "not_before",
    "attempts",
    "claimed_at",
    "dispatched_at",
    "message_id",
    "parked_at",
    "first_received_at",
    "receive_count",
    "hold_until",
    "work_attempts",
    "handled_at",
    "outcome",
)
_RUN: Final = (
    "run_id",
    "purpose",
    "extraction_run_id",
    "attempt",
    "state",
    "ticket_id",
    "artifact_ticket_id",
    "invoke_count",
    "created_at",
    "accepted_at",
    "deadline_at",
    "settled_at",
)
#: Events that say who: programs, and who asked for a repair. Whoever works for a firm is not told.
_BY: Final = frozenset({Kind.TRANSITION, Kind.REPAIR})
_EXPLAINED: Final = ("now", "healthy", "works_here", "aspects", "lanes", "timeline_cut")
#: Single documents of a plan, at most.
SHOWN: Final = 200


def explanation(found: Explanation) -> dict[str, object]:
    """One document: what disagrees and why, by ids, states and times."""
    whole = explanation_json(found)
    return {
        "document": {name: getattr(found.document, name) for name in _DOCUMENT},
        **_only(_EXPLAINED, whole),
        "timeline": [_event(each) for each in found.timeline.events],
        "tickets": [_only(_TICKET, row) for row in found.timeline.tickets],
        "runs": [_only(_RUN, row) for row in found.timeline.runs],
    }


def plan(result: PassResult, *, shown: int = SHOWN) -> dict[str, object]:
    """What a pass would do now."""
    return {
        "began": result.began,
        "seconds": round(result.seconds, 3),
        "finished": result.finished,
        "judged": result.judged,
        "found": dict(result.found),
        "oldest": dict(result.oldest),
        "reported": dict(result.reported),
        "refused": {guard.value: number for guard, number in result.refused.items()},
        "ready": sum(each.ready for each in result.plans),
        "stalled_lanes": list(result.stalled),
        "failures": list(result.failures),
        "plans": [_planned(each) for each in result.plans[:shown]],
        "plans_cut": result.total > min(shown, len(result.plans)),
    }


def _planned(each: Planned) -> dict[str, object]:
    return {
        "document": each.finding.document_id,
        "aspect": each.finding.aspect,
        "discrepancy": each.finding.name,
        "severity": each.finding.severity,
        "since": each.finding.since,
        "action": each.action,
        "ready": each.ready,
        "held_back_by": each.guard,
        "held_back_until": each.due,
        "last_attempt": each.exhausted,
    }


def _event(each: Event) -> dict[str, object]:
    return {
        "at": each.at,
        "kind": each.kind,
        "what": each.what,
        "by": each.by if each.kind in _BY else None,
        "ticket": each.ticket_id,
        "message": each.message_id,
        "run": each.run_id,
    }


def _only(names: Iterable[str], row: Mapping[str, Any]) -> dict[str, object]:
    return {name: row[name] for name in names}
