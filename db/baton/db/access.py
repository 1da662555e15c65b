"""Roles, and what each may do: the matrix that grants, policies and the self-check are made from.

Each workload logs in as a role of its own. No grant is inherited from a group that two workloads
share, and no role matches two policies of one table: permissive policies are OR'ed, and the OR
costs the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """Database roles. The chart and the embedded database use the same names."""

    OWNER = "baton_owner"  # NOLOGIN; owns every object
    STAFF = "baton_staff"  # NOLOGIN; membership is what app.is_staff_or_false() asks
    SEARCH = "baton_search"  # NOLOGIN; runs app.search
    MEMBER = "baton_member"  # NOLOGIN; a firm's member
    MEMBER_DOOR = "baton_member_door"  # NOLOGIN NOINHERIT; lets the registrar become a member, never be one
    MEMBER_APP = "baton_member_app"  # the platform's own code and the CLI
    RELAY = "baton_relay"
    EXTRACTOR = "baton_extractor"
    REGISTRAR = "baton_registrar"
    SETTLER = "baton_settler"
    RECONCILER = "baton_reconciler"
    OBSERVER = "baton_observer"  # cannot write: Observe mode, doctor, metrics
    SUPPORT = "baton_support"  # has grants, sees no firm's rows


LOGIN = (
    Role.MEMBER_APP,
    Role.RELAY,
    Role.EXTRACTOR,
    Role.REGISTRAR,
    Role.SETTLER,
    Role.RECONCILER,
    Role.OBSERVER,
    Role.SUPPORT,
)
#: Members of a group whose rights they must not have by themselves: the door, and the owner, which may hand
#: app.search to the search role but would match two policies if it inherited from it.
NOINHERIT = (Role.MEMBER_DOOR, Role.OWNER)
#: Seen as staff by policies: system roles that serve every firm.
STAFF_MEMBERS = (Role.RELAY, Role.EXTRACTOR, Role.REGISTRAR, Role.SETTLER, Role.RECONCILER, Role.OBSERVER)

DOCUMENTS = "documents"
PAGE = "document_page"
SEARCH = "document_search"
OUTBOX = "ops.document_ingest_outbox"
TRANSITION = "ops.document_status_transition"
AUDIT = "ops.audit_event"
REPAIR = "ops.registration_repair"
RUN = "agents.agent_run"
EFFECT = "agents.agent_effect"
ASSERTION = "record.assertion"
CLAIM = "record.intent_claim"
POLICY = "record.firm_policy"
PART = "record.understanding_part"
CONTENT = "record.part_content"
INBOX = "inbox.item"
HEARTBEAT = "ops.consumer_heartbeat"
GUARD = "ops.dispatch_guard"
SPEND = "ops.agent_spend"
LANE_READING = "ops.lane_reading"
STATE = "ops.reconcile_state"
BUDGET = "ops.repair_budget"
MAINTENANCE = "ops.maintenance"
OWNERSHIP = "ops.owner"
REDRIVE = "ops.redrive"
DEAD_LETTER = "ops.dead_letter"
RELEASE = "app.release"
REVISION = "app.alembic_version"

#: The registry of firm-scoped tables: each has RLS forced. A table with ``firm_id`` that is missing here fails a test.
FIRM_SCOPED = (
    DOCUMENTS,
    PAGE,
    SEARCH,
    OUTBOX,
    TRANSITION,
    AUDIT,
    REPAIR,
    RUN,
    EFFECT,
    ASSERTION,
    CLAIM,
    POLICY,
    PART,
    CONTENT,
    INBOX,
)


@dataclass(frozen=True, slots=True)
class Grant:
    """What one role may do with one table; ``update`` names columns, never the whole row."""

    select: bool = True
    insert: bool = False
    update: tuple[str, ...] = field(default=())
    delete: bool = False


READ = Grant()
APPEND = Grant(insert=True)

_INGEST_AXIS = (
    "processing_status",
    "processing_message",
    "failure_kind",
    "extraction_run_id",
    "extraction_attempt",
    "ingest_ticket_id",
    "size_bytes",
    "checksum_sha256",
    "content_type",
)
_REGISTRATION_AXIS = (
    "registration_status",
    "registration_message",
    "registration_attempt",
    "registration_run_id",
    "registration_pass",
    "registration_ticket_id",
    "next_attempt_at",
    "failure_kind",
)
_REQUEST = (
    "registration_status",
    "registration_pass",
    "registration_attempt",
    "registration_ticket_id",
    "registration_message",
)
_TICKET_SEEN = ("first_received_at", "receive_count", "hold_until", "work_attempts", "handled_at", "outcome")
_TICKET_CLOSED = ("handled_at", "outcome")
_RUN_SETTLED = ("state", "settled_at", "message")

#: role → table → grant.
MATRIX: Mapping[Role, Mapping[str, Grant]] = {
    # finalize, re-extract, resegment, delete, restore, a person's retry; and, as the firm, an apply's intents
    Role.MEMBER: {
        DOCUMENTS: Grant(
            insert=True,
            update=tuple(
                dict.fromkeys(
                    (*_INGEST_AXIS, *_REGISTRATION_AXIS, "extraction_epoch", "understood_pass", "deleted_at", "name")
                )
            ),
        ),
        PAGE: READ,
        OUTBOX: Grant(insert=True, update=_TICKET_CLOSED),
        TRANSITION: READ,
        AUDIT: APPEND,
        RUN: Grant(update=_RUN_SETTLED),
        EFFECT: READ,
        ASSERTION: Grant(insert=True, update=("state", "decided_at", "decided_by")),
        CLAIM: Grant(insert=True, update=("run_id", "assertion_id", "claimed_at")),
        POLICY: Grant(insert=True, update=("decision", "confidence_floor"), delete=True),
        PART: Grant(insert=True, update=("state", "attempt", "ticket_id", "run_id", "next_attempt_at", "message")),
        CONTENT: READ,
        INBOX: Grant(insert=True, update=("resolved_at", "resolved_by")),
        REPAIR: READ,
        RELEASE: READ,
        REVISION: READ,
    },
    # sends, and nothing else: it cannot close a ticket nor read a document
    Role.RELAY: {
        OUTBOX: Grant(
            update=("attempts", "last_error", "claimed_at", "dispatched_at", "message_id", "parked_at", "not_before")
        ),
        RELEASE: READ,
        REVISION: READ,
    },
    Role.EXTRACTOR: {
        DOCUMENTS: Grant(update=tuple(dict.fromkeys((*_INGEST_AXIS, *_REQUEST)))),
        PAGE: Grant(insert=True),
        SEARCH: Grant(insert=True, delete=True),
        OUTBOX: Grant(insert=True, update=_TICKET_SEEN),
        AUDIT: APPEND,
        HEARTBEAT: Grant(insert=True, update=("polled_at",), delete=True),
        RELEASE: READ,
        REVISION: READ,
    },
    # dispatches and applies; writes assertions, claims and inbox items only as the firm's member
    Role.REGISTRAR: {
        DOCUMENTS: Grant(update=(*_REGISTRATION_AXIS, "understood_pass")),
        PAGE: READ,
        OUTBOX: Grant(insert=True, update=_TICKET_SEEN),
        AUDIT: APPEND,
        RUN: Grant(insert=True, update=(*_RUN_SETTLED, "invoke_count", "accepted_at")),
        EFFECT: Grant(update=("disposition", "applied_at")),
        ASSERTION: READ,
        CLAIM: READ,
        POLICY: READ,
        PART: Grant(insert=True, update=("state", "attempt", "ticket_id", "run_id", "next_attempt_at", "message")),
        CONTENT: Grant(insert=True, update=("run_id", "content", "written_at")),
        HEARTBEAT: Grant(insert=True, update=("polled_at",), delete=True),
        GUARD: Grant(update=("breaker", "breaker_since", "retry_at", "trial_runs_left", "reason")),
        SPEND: Grant(insert=True, update=("runs",), delete=True),
        RELEASE: READ,
        REVISION: READ,
    },
    # settles runs; has no grant on documents at all, not even to read
    Role.SETTLER: {
        RUN: Grant(update=(*_RUN_SETTLED, "result_digest", "artifact_ticket_id")),
        EFFECT: APPEND,
        OUTBOX: Grant(insert=True),
        HEARTBEAT: Grant(insert=True, update=("polled_at",), delete=True),
        RELEASE: READ,
        REVISION: READ,
    },
    Role.RECONCILER: {
        DOCUMENTS: Grant(
            # the epoch: a redrive reads a file again that could not be read
            update=tuple(dict.fromkeys((*_INGEST_AXIS, *_REGISTRATION_AXIS, "understood_pass", "extraction_epoch"))),
        ),
        PAGE: READ,
        OUTBOX: Grant(insert=True, update=(*_TICKET_SEEN, "parked_at", "not_before")),
        TRANSITION: READ,
        AUDIT: APPEND,
        REPAIR: APPEND,
        RUN: Grant(insert=True, update=(*_RUN_SETTLED, "result_digest", "artifact_ticket_id")),
        EFFECT: APPEND,
        ASSERTION: READ,
        CLAIM: READ,
        POLICY: READ,
        PART: Grant(insert=True, update=("state", "attempt", "ticket_id", "run_id", "next_attempt_at", "message")),
        CONTENT: READ,
        INBOX: APPEND,
        HEARTBEAT: READ,
        GUARD: Grant(update=("runs_per_hour", "breaker", "breaker_since", "retry_at", "trial_runs_left", "reason")),
        SPEND: Grant(insert=True, update=("runs",), delete=True),
        LANE_READING: Grant(insert=True, delete=True),
        STATE: Grant(insert=True, update=("value", "updated_at")),
        BUDGET: Grant(insert=True, update=("repairs",), delete=True),
        MAINTENANCE: Grant(insert=True, update=("ends_at", "lifted_at")),
        OWNERSHIP: Grant(insert=True, update=("resource", "since", "seen_at"), delete=True),
        REDRIVE: Grant(insert=True, update=("state", "cursor", "counts", "finished_at")),
        DEAD_LETTER: Grant(insert=True, update=("ticket_id", "settled_at", "outcome", "reason")),
        RELEASE: READ,
        REVISION: READ,
    },
    # every state, no content
    Role.OBSERVER: dict.fromkeys(
        (
            DOCUMENTS,
            OUTBOX,
            TRANSITION,
            AUDIT,
            REPAIR,
            RUN,
            PART,
            INBOX,
            CLAIM,
            HEARTBEAT,
            GUARD,
            SPEND,
            LANE_READING,
            STATE,
            BUDGET,
            MAINTENANCE,
            OWNERSHIP,
            REDRIVE,
            DEAD_LETTER,
            RELEASE,
            REVISION,
        ),
        READ,
    ),
    # granted, and filtered to nothing: no policy names it
    Role.SUPPORT: dict.fromkeys((*FIRM_SCOPED, RELEASE, REVISION), READ),
    Role.SEARCH: {DOCUMENTS: READ, PAGE: READ, SEARCH: READ},
}

SCHEMAS = ("public", "app", "ops", "agents", "record", "inbox")

#: Role-level settings, so that they hold behind a transaction pooler too. Milliseconds where no unit is given.
#: The relay holds row locks while it sends: above its own 5 s bound, below anybody's patience.
ROLE_SETTINGS: Mapping[Role, Mapping[str, str]] = {
    role: {
        "jit": "off",
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "8s" if role is Role.RELAY else "5s",
        "search_path": "public, pg_temp",
    }
    for role in LOGIN
}


def policies(table: str) -> Mapping[str, tuple[tuple[Role, ...], str]]:
    """Policies of a firm-scoped table: name → (roles, condition). No role is in two of them."""
    staff = tuple(role for role in STAFF_MEMBERS if table in MATRIX[role])
    found: dict[str, tuple[tuple[Role, ...], str]] = {"owner_policy": ((Role.OWNER,), "true")}
    if table in MATRIX[Role.MEMBER]:
        found["firm_isolation_policy"] = ((Role.MEMBER,), "firm_id = (SELECT app.firm_id())")
    if staff:
        found["system_policy"] = (staff, "(SELECT app.is_staff_or_false())")
    if table in MATRIX[Role.SEARCH]:
        found["search_policy"] = ((Role.SEARCH,), "true")
    return found


def grants(role: Role, table: str) -> tuple[str, ...]:
    """The privileges of ``role`` on ``table`` as they stand in a GRANT, e.g. ``UPDATE (state, settled_at)``."""
    grant = MATRIX.get(role, {}).get(table)
    if grant is None:
        return ()
    given = [
        name for name, held in (("SELECT", grant.select), ("INSERT", grant.insert), ("DELETE", grant.delete)) if held
    ]
    if grant.update:
        given.append(f"UPDATE ({', '.join(grant.update)})")
    return tuple(given)
