"""Closed sets of states and kinds that the database stores as text under a CHECK."""

from __future__ import annotations

from enum import StrEnum


class ProcessingStatus(StrEnum):
    """Mode-1 axis of a document: from upload to searchable text."""

    PENDING = "pending"
    UPLOADED = "uploaded"
    STORED = "stored"
    EXTRACTING = "extracting"
    INDEXED = "indexed"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"


class RegistrationStatus(StrEnum):
    """Mode-2 axis of a document: from indexed text to its place in the Record (Story 1543)."""

    NOT_REQUESTED = "not_requested"
    QUEUED = "queued"
    REGISTERING = "registering"
    REGISTERED = "registered"
    REGISTRATION_FAILED = "registration_failed"
    REGISTRATION_NEEDS_REVIEW = "registration_needs_review"


class RunState(StrEnum):
    """State of one paid agent run. Everything but ``pending`` is settled, for good."""

    PENDING = "pending"
    DELIVERED = "delivered"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    UNDISPATCHED = "undispatched"


class PartState(StrEnum):
    """State of one understanding part (card, sections, brief) of one pass."""

    REQUESTED = "requested"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class Part(StrEnum):
    """The understanding parts, in the order in which the chain asks for them."""

    CARD = "card"
    SECTIONS = "sections"
    BRIEF = "brief"


class Purpose(StrEnum):
    """What a run is paid for: classifying a document, or one understanding part."""

    CLASSIFY = "classify"
    CARD = "card"
    SECTIONS = "sections"
    BRIEF = "brief"


class EventType(StrEnum):
    """The outbox's event types; the lane of each is :data:`LANE_OF`."""

    INGEST_REQUESTED = "document.ingest.requested"
    REGISTRATION_REQUESTED = "document.registration.requested"
    RESEGMENT_REQUESTED = "document.resegment.requested"
    UNDERSTANDING_REQUESTED = "document.understanding.requested"
    ARTIFACT_DELIVERED = "document.artifact.delivered"


class Lane(StrEnum):
    """A relay owns one lane; a lane has one queue."""

    INGEST = "ingest"
    REGISTRAR = "registrar"


LANE_OF = {event: Lane.INGEST if event is EventType.INGEST_REQUESTED else Lane.REGISTRAR for event in EventType}


class Outcome(StrEnum):
    """Why a ticket is closed; written together with ``handled_at``."""

    DONE = "done"  # its effect was committed
    DOCUMENT_DELETED = "document_deleted"
    STALE = "stale"  # of an older pass, epoch, attempt or run
    ALREADY_DONE = "already_done"  # the document had moved on
    STOOD_DOWN = "stood_down"  # an accepted run is inside its deadline
    REPLACED = "replaced"  # a newer generation was written in its place
    REFUSED = "refused"  # the work ended in a visible failure
    POISON = "poison"  # handled too often without an end


class FailureKind(StrEnum):
    """Machine-readable reason beside the lawyer-safe message of a failed axis."""

    UNREADABLE = "unreadable"
    INFECTED = "infected"
    OBJECT_MISSING = "object_missing"
    EXTRACTION_CRASHED = "extraction_crashed"
    AGENT_REFUSED = "agent_refused"  # definite: the same request will be refused again
    RUN_EXPIRED = "run_expired"
    RESULT_REJECTED = "result_rejected"
    RESULT_UNAPPLIABLE = "result_unappliable"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    TICKET_PARKED = "ticket_parked"
