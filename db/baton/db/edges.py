"""The one table of edges of every status machine.

The Python machines, the database triggers and ``docs/states.md`` are made from or checked
against it. An edge that is not listed is refused by both, raw SQL included.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.db.states import PartState, ProcessingStatus, RegistrationStatus, RunState


class Machine(StrEnum):
    """A status column with a machine behind it."""

    PROCESSING = "processing"
    REGISTRATION = "registration"
    RUN = "run"
    PART = "part"


class Guard(StrEnum):
    """A condition on the row that an edge needs besides its two ends; the SQL is :data:`GUARD_SQL`."""

    EPOCH_RAISED = "epoch_raised"
    PASS_SUPERSEDED = "pass_superseded"


#: What each guard means to Postgres, over ``OLD`` and ``NEW``.
GUARD_SQL = {
    Guard.EPOCH_RAISED: "NEW.extraction_epoch > OLD.extraction_epoch",
    Guard.PASS_SUPERSEDED: "NEW.extraction_run_id IS DISTINCT FROM OLD.registration_pass",
}


@dataclass(frozen=True, slots=True)
class Edge:
    """One legal move: from, to, what else must hold, and who makes it for what cause."""

    source: str
    target: str
    cause: str
    guard: Guard | None = None


_P = ProcessingStatus
_R = RegistrationStatus
_RE_EXTRACT = "re-extraction: the epoch rises, the pass is cleared"
_SUPERSEDED = "the pass that this status spoke of is gone"

EDGES: dict[Machine, tuple[Edge, ...]] = {
    Machine.PROCESSING: (
        Edge(_P.PENDING, _P.UPLOADED, "finalize upload"),
        Edge(
            _P.UPLOADED,
            _P.STORED,
            "extraction worker: object fetched, checksum taken, scanner asked",
        ),
        Edge(_P.STORED, _P.EXTRACTING, "extraction worker: reading begins"),
        Edge(_P.EXTRACTING, _P.INDEXED, "text persisted, search vector built"),
        Edge(_P.EXTRACTING, _P.NEEDS_REVIEW, "text is missing or too uncertain"),
        Edge(_P.EXTRACTING, _P.FAILED, "the file can never be read"),
        Edge(_P.UPLOADED, _P.FAILED, "the object is gone, infected, or attempts are used up"),
        Edge(_P.STORED, _P.FAILED, "attempts are used up"),
        *(
            Edge(source, _P.UPLOADED, _RE_EXTRACT, Guard.EPOCH_RAISED)
            for source in (_P.STORED, _P.EXTRACTING, _P.INDEXED, _P.NEEDS_REVIEW, _P.FAILED)
        ),
    ),
    Machine.REGISTRATION: (
        Edge(_R.NOT_REQUESTED, _R.QUEUED, "indexed: registration requested"),
        Edge(_R.QUEUED, _R.REGISTERING, "dispatch: run minted"),
        Edge(_R.REGISTERING, _R.REGISTERED, "apply: verdict registered"),
        Edge(_R.REGISTERING, _R.REGISTRATION_FAILED, "run refused, rejected, expired or unappliable"),
        Edge(_R.REGISTERING, _R.REGISTRATION_NEEDS_REVIEW, "apply: a person must look"),
        Edge(_R.REGISTERING, _R.QUEUED, "dispatch could not be made"),
        Edge(_R.REGISTRATION_FAILED, _R.QUEUED, "retry"),
        Edge(_R.REGISTRATION_NEEDS_REVIEW, _R.QUEUED, "retry, a person's decision only"),
        *(
            Edge(source, _R.NOT_REQUESTED, _SUPERSEDED, Guard.PASS_SUPERSEDED)
            for source in _R
            if source is not _R.NOT_REQUESTED
        ),
    ),
    Machine.RUN: tuple(
        Edge(RunState.PENDING, target, cause)
        for target, cause in (
            (RunState.DELIVERED, "settler: artifact verified"),
            (RunState.REJECTED, "settler: artifact refused"),
            (RunState.EXPIRED, "sweeper: deadline passed, no artifact"),
            (RunState.SUPERSEDED, "lapsed inside dispatch, re-extraction, or deletion"),
            (RunState.UNDISPATCHED, "the agent never took it"),
        )
    ),
    Machine.PART: (
        Edge(PartState.REQUESTED, PartState.RUNNING, "dispatch: run minted"),
        Edge(PartState.RUNNING, PartState.REQUESTED, "dispatch could not be made"),
        Edge(PartState.RUNNING, PartState.READY, "apply: content written"),
        Edge(PartState.RUNNING, PartState.FAILED, "run refused, rejected, expired or unappliable"),
        Edge(PartState.FAILED, PartState.REQUESTED, "retry"),
        Edge(PartState.READY, PartState.REQUESTED, "asked for again by a person"),
    ),
}


def find(machine: Machine, *, source: str, target: str) -> Edge | None:
    """The edge between two statuses of ``machine``, or ``None`` where the move is illegal."""
    return next((edge for edge in EDGES[machine] if (edge.source, edge.target) == (source, target)), None)
