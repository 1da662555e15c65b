"""What happened to one document, in order: transitions, tickets with their whole life, runs, effects, repairs.

Everything is read by document, through the indexes that begin with it, and the newest of each kind are kept. Messages'
content and the Record's values are left out: who looks here need not be allowed to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import Connection, text

Row: TypeAlias = Mapping[str, Any]

#: Rows of each kind at most, the newest.
MOST: Final = 200

_TRANSITIONS: Final = text("""
SELECT at, axis, from_status, to_status, message, failure_kind, application
FROM ops.document_status_transition WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_AUDIT: Final = text("""
SELECT at, event, actor FROM ops.audit_event WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_TICKETS: Final = text("""
SELECT id, event_type, lane, generation, redrive_of, extraction_epoch, extraction_run_id, attempt, run_id, part, created_at,
       not_before, attempts, last_error, claimed_at, dispatched_at, message_id, parked_at, first_received_at,
       receive_count, hold_until, work_attempts, handled_at, outcome
FROM ops.document_ingest_outbox WHERE document_id = :id ORDER BY id DESC LIMIT :most
""")
_RUNS: Final = text("""
SELECT run_id, purpose, extraction_run_id, attempt, state, ticket_id, artifact_ticket_id, invoke_count, created_at, accepted_at,
       deadline_at, settled_at, result_digest, message
FROM agents.agent_run WHERE document_id = :id ORDER BY seq DESC LIMIT :most
""")
#: By run and kind: what an intent says is content.
_EFFECTS: Final = text("""
SELECT run_id, max(claimed_at) AS at, count(*) AS intents, count(assertion_id) AS written
FROM record.intent_claim WHERE document_id = :id GROUP BY run_id ORDER BY 2 DESC LIMIT :most
""")
_INBOX: Final = text("""
SELECT created_at AS at, kind, run_id, resolved_at, resolved_by
FROM inbox.item WHERE document_id = :id ORDER BY created_at DESC LIMIT :most
""")
_REPAIRS: Final = text("""
SELECT at, aspect, discrepancy, action, result, reason, ticket_id, run_id, requested_by, detail
FROM ops.registration_repair WHERE document_id = :id ORDER BY at DESC, id DESC LIMIT :most
""")
_LETTERS: Final = text("""
SELECT d.found_at, d.queue, d.message_id, d.ticket_id, d.receive_count, d.settled_at, d.outcome, d.reason
FROM ops.dead_letter d WHERE d.ticket_id = ANY(:tickets) ORDER BY d.id DESC LIMIT :most
""")


class Kind(StrEnum):
    """What an event is about."""

    TRANSITION = "transition"
    AUDIT = "audit"
    TICKET = "ticket"
    RUN = "run"
    EFFECT = "effect"
    REPAIR = "repair"
    LETTER = "dead letter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened."""

    at: datetime
    kind: Kind
    what: str
    by: str | None = None
    why: str | None = None
    ticket_id: int | None = None
    message_id: str | None = None
    """SQS's own."""
    run_id: UUID | None = None

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "at": self.at,
            "kind": self.kind,
            "what": self.what,
            "by": self.by,
            "why": self.why,
            "ticket": self.ticket_id,
            "message": self.message_id,
            "run": self.run_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The events, the oldest first, and the rows of tickets and runs that they were read from."""

    events: tuple[Event, ...]
    tickets: tuple[Row, ...]
    runs: tuple[Row, ...]
    cut: bool
    """Whether there is more of some kind than was read."""


def read(connection: Connection, document_id: UUID) -> Timeline:
    """Read it in the caller's transaction."""
    bound = {"id": document_id, "most": MOST}

    def rows(statement: Any, **more: object) -> tuple[Row, ...]:
        found = connection.execute(statement, bound | more).mappings()
        return tuple(dict(row) for row in found)[::-1]

    tickets, runs = rows(_TICKETS), rows(_RUNS)
    kinds: list[tuple[Row, ...]] = [rows(_TRANSITIONS), rows(_AUDIT), rows(_EFFECTS), rows(_INBOX), rows(_REPAIRS)]
    letters = rows(_LETTERS, tickets=[row["id"] for row in tickets])
    events = [
        *map(_transition, kinds[0]),
        *map(_audit, kinds[1]),
        *(event for row in tickets for event in _of_ticket(row)),
        *(event for row in runs for event in _of_run(row)),
        *map(_effect, kinds[2]),
        *(event for row in kinds[3] for event in _inbox(row)),
        *map(_repair, kinds[4]),
        *(event for row in letters for event in _letter(row)),
    ]
    return Timeline(
        events=tuple(sorted(events, key=lambda event: event.at)),
        tickets=tickets,
        runs=runs,
        cut=any(len(each) == MOST for each in (tickets, runs, *kinds)),
    )


def _transition(row: Row) -> Event:
    kind = f" ({row['failure_kind']})" if row["failure_kind"] and "failed" in row["to_status"] else ""
    what = f"{row['axis']}: {row['from_status']} → {row['to_status']}{kind}"
    return Event(at=row["at"], kind=Kind.TRANSITION, what=what, by=row["application"] or None, why=row["message"])


def _audit(row: Row) -> Event:
    return Event(at=row["at"], kind=Kind.AUDIT, what=row["event"], by=row["actor"])


def name_of(ticket: Row) -> str:
    """A ticket in few words."""
    part = f" {ticket['part']}" if ticket["part"] else ""
    again = f", generation {ticket['generation']}" if ticket["generation"] > 1 else ""
    return f"ticket {ticket['id']} ({ticket['event_type'].removeprefix('document.')}{part}{again})"


def _of_ticket(row: Row) -> Iterator[Event]:
    name, ids = name_of(row), {"ticket_id": row["id"], "run_id": row["run_id"]}

    def event(at: datetime, what: str, *, why: str | None = None, message_id: str | None = None) -> Event:
        return Event(at=at, kind=Kind.TICKET, what=f"{name} {what}", why=why, message_id=message_id, **ids)

    later = row["not_before"] > row["created_at"]
    yield event(row["created_at"], "written" + (f", due at {_time(row['not_before'])}" if later else ""))
    if row["dispatched_at"]:
        yield event(row["dispatched_at"], f"sent as message {row['message_id']}", message_id=row["message_id"])
    if row["parked_at"]:
        yield event(row["parked_at"], f"parked after {row['attempts']} refusals", why=row["last_error"])
    if row["first_received_at"]:
        times = "" if row["receive_count"] == 1 else f", {row['receive_count']} times by now"
        hold = f", held until {_time(row['hold_until'])}" if row["hold_until"] and not row["handled_at"] else ""
        yield event(row["first_received_at"], f"received{times}{hold}", message_id=row["message_id"])
    if row["handled_at"]:
        yield event(row["handled_at"], f"handled: {row['outcome']}")


def _of_run(row: Row) -> Iterator[Event]:
    name, ids = f"{row['purpose']} run {row['run_id']}", {"ticket_id": row["ticket_id"], "run_id": row["run_id"]}

    def event(at: datetime, what: str, *, why: str | None = None) -> Event:
        return Event(at=at, kind=Kind.RUN, what=f"{name} {what}", why=why, **ids)

    yield event(row["created_at"], f"minted, attempt {row['attempt']}, deadline {_time(row['deadline_at'])}")
    if row["accepted_at"]:
        calls = "" if row["invoke_count"] == 1 else f" at call {row['invoke_count']}"
        yield event(row["accepted_at"], f"accepted by the agent{calls}")
    if row["settled_at"]:
        yield event(row["settled_at"], f"settled: {row['state']}", why=row["message"])


def _effect(row: Row) -> Event:
    what = f"{row['intents']} intents claimed, {row['written']} assertions written"
    return Event(at=row["at"], kind=Kind.EFFECT, what=what, run_id=row["run_id"])


def _inbox(row: Row) -> Iterator[Event]:
    what = f"inbox item {row['kind']}"
    yield Event(at=row["at"], kind=Kind.EFFECT, what=f"{what} written", run_id=row["run_id"])
    if row["resolved_at"]:
        yield Event(at=row["resolved_at"], kind=Kind.EFFECT, what=f"{what} resolved", by=row["resolved_by"])


def _repair(row: Row) -> Event:
    what = f"{row['aspect']}: {row['discrepancy']}, {row['action']}, {row['result']}"
    ids = {"ticket_id": row["ticket_id"], "run_id": row["run_id"]}
    return Event(at=row["at"], kind=Kind.REPAIR, what=what, by=row["requested_by"], why=row["reason"], **ids)


def _letter(row: Row) -> Iterator[Event]:
    name, ids = f"message {row['message_id']}", {"ticket_id": row["ticket_id"], "message_id": row["message_id"]}
    yield Event(at=row["found_at"], kind=Kind.LETTER, what=f"{name} found on {row['queue']}", **ids)
    if row["settled_at"]:
        yield Event(at=row["settled_at"], kind=Kind.LETTER, what=f"{name}: {row['outcome']}", why=row["reason"], **ids)


def _time(at: datetime) -> str:
    return f"{at:%H:%M:%S}"
