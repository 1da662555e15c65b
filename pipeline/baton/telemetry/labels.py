"""The closed sets that metrics' labels take their values from.

They repeat words that other components own, because telemetry stands below them; a word that is
missing here is counted as ``other``, never refused.
"""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """Which queue a ticket goes to."""

    INGEST = "ingest"
    REGISTRAR = "registrar"


class QueueRole(StrEnum):
    """A queue by what it is for, whatever it is called."""

    INGEST = "ingest"
    REGISTRAR = "registrar"
    RESULTS = "results"


class DepthState(StrEnum):
    """Where a queue's messages are."""

    VISIBLE = "visible"
    IN_FLIGHT = "in_flight"
    DELAYED = "delayed"


class SendOutcome(StrEnum):
    """What became of a ticket in a relay's batch."""

    SENT = "sent"
    REFUSED = "refused"
    FAILED = "failed"
    UNANSWERED = "unanswered"
    UNTRIED = "untried"
    ALREADY = "already"


class FaultClass(StrEnum):
    """Why a service as a whole did not do what it was asked."""

    TRANSPORT = "transport"
    TIMEOUT = "timeout"
    THROTTLED = "throttled"
    DENIED = "denied"
    SERVER = "server"
    MISSING = "missing"
    REFUSED = "refused"
    DATABASE = "database"


class EventType(StrEnum):
    """What a ticket asks for."""

    INGEST_REQUESTED = "document.ingest.requested"
    REGISTRATION_REQUESTED = "document.registration.requested"
    RESEGMENT_REQUESTED = "document.resegment.requested"
    UNDERSTANDING_REQUESTED = "document.understanding.requested"
    ARTIFACT_DELIVERED = "document.artifact.delivered"


class HandleOutcome(StrEnum):
    """What a consumer did with a message."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    STALE = "stale"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"
    LATER = "later"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    RELEASED = "released"


class ReadVerdict(StrEnum):
    """How reading a file ended."""

    INDEXED = "indexed"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"
    CRASHED = "crashed"
    SUPERSEDED = "superseded"


class TextSource(StrEnum):
    """Where a page's text came from."""

    NATIVE = "native"
    OCR = "ocr"


class Purpose(StrEnum):
    """What an agent run is for."""

    CLASSIFY = "classify"
    CARD = "card"
    SECTIONS = "sections"
    BRIEF = "brief"


class DispatchOutcome(StrEnum):
    """What a dispatch decided."""

    INVOKED = "invoked"
    INVOKED_AGAIN = "invoked_again"
    STOOD_DOWN = "stood_down"
    TAKEN_OVER = "taken_over"
    REFUSED = "refused"
    AGENT_AWAY = "agent_away"
    HELD_BACK = "held_back"
    OBSOLETE = "obsolete"
    EXHAUSTED = "exhausted"


class AnswerClass(StrEnum):
    """How the agent answered an invocation."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    AWAY = "away"
    AMBIGUOUS = "ambiguous"


class RunState(StrEnum):
    """How a run was settled."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    UNDISPATCHED = "undispatched"


class Settler(StrEnum):
    """Who settled it."""

    RESULTS = "results"
    SWEEPER = "sweeper"
    DISPATCH = "dispatch"
    RECONCILER = "reconciler"


class Disposition(StrEnum):
    """What became of one effect."""

    APPLIED = "applied"
    PROPOSED = "proposed"
    STALE = "stale"
    REPEATED = "repeated"
    REFUSED = "refused"


class Schema(StrEnum):
    """The versioned result schemas."""

    CLASSIFICATION = "registrar.classification.v1"
    CARD = "document.card.v1"
    SECTIONS = "document.sections.v1"
    BRIEF = "document.brief.v1"


class Axis(StrEnum):
    """A status axis of a document."""

    PROCESSING = "processing"
    REGISTRATION = "registration"
    UNDERSTANDING = "understanding"


class DatabaseFault(StrEnum):
    """What went wrong in the database."""

    CONNECTION = "connection"
    DEADLOCK = "deadlock"
    SERIALIZATION = "serialization"
    LOCK_TIMEOUT = "lock_timeout"
    STATEMENT_TIMEOUT = "statement_timeout"
    PERMISSION = "permission"
    INTEGRITY = "integrity"


class Discrepancy(StrEnum):
    """What the reconcilers may find."""

    UPLOAD_ABANDONED = "upload_abandoned"
    INGEST_TICKET_MISSING = "ingest_ticket_missing"
    TICKET_PARKED = "ticket_parked"
    TICKET_DEAD_LETTERED = "ticket_dead_lettered"
    INGEST_STALLED = "ingest_stalled"
    MARK_MISSING = "mark_missing"
    DELETED_IN_FLIGHT = "deleted_in_flight"
    PASS_SUPERSEDED = "pass_superseded"
    FAN_OUT_MISSING = "fan_out_missing"
    REQUEST_MISSING = "request_missing"
    REQUEST_TICKET_MISSING = "request_ticket_missing"
    RUN_MISSING = "run_missing"
    REQUEST_STALLED = "request_stalled"
    RUN_LAPSED = "run_lapsed"
    ARTIFACT_UNOPENED = "artifact_unopened"
    APPLY_STALLED = "apply_stalled"
    FAILURE_RETRYABLE = "failure_retryable"
    PART_MISSING = "part_missing"
    UNDERSTANDING_STALLED = "understanding_stalled"
    STATE_IMPOSSIBLE = "state_impossible"


class RepairResult(StrEnum):
    """How a repair ended."""

    REPAIRED = "repaired"
    GAVE_UP = "gave_up"
    ERROR = "error"


class RepairGuard(StrEnum):
    """What holds a repair back."""

    SUSPENDED = "suspended"
    WINDOW = "window"
    OWNER = "owner"
    RATE = "rate"
    BACKOFF = "backoff"
    BUDGET = "budget"
    BREAKER = "breaker"
    STORE = "store"
    LOCKED = "locked"


class PassOutcome(StrEnum):
    """How a reconciler's pass ended."""

    DONE = "done"
    PARTIAL = "partial"
    STOPPED = "stopped"
    FAILED = "failed"


class RegistrationStatus(StrEnum):
    """Where a document stands on its second axis."""

    NOT_REQUESTED = "not_requested"
    QUEUED = "queued"
    REGISTERING = "registering"
    REGISTERED = "registered"
    REGISTRATION_FAILED = "registration_failed"
    REGISTRATION_NEEDS_REVIEW = "registration_needs_review"


class BreakerState(StrEnum):
    """Where the breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    TRIAL = "trial"


class RedriveState(StrEnum):
    """How far a RegistrationRedrive is."""

    PENDING = "Pending"
    PLANNED = "Planned"
    RUNNING = "Running"
    FINISHED = "Finished"
    REFUSED = "Refused"
