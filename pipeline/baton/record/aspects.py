"""What a run answers for: a document's registration, or one part of its understanding.

An apply is one algorithm over either of them: is this run still the one that counts, and how does it fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import FailureKind, Part, PartState, Purpose, RegistrationStatus
from baton.record.deliveries import Delivery
from baton.registration import parts, service
from baton.registration.parts import PartRow
from baton.settings.agents import Runs
from baton.telemetry.labels import Axis


class Fence(StrEnum):
    """Whether a run may still act on its aspect."""

    OPEN = "open"
    ALREADY_DONE = "already_done"
    """This very run has ended the aspect before."""
    STALE = "stale"
    """The aspect waits for another run, another pass, or for none."""


class Aspect(Protocol):
    """One aspect of a locked document."""

    @property
    def document(self) -> Document:
        """The document, as it was read under its lock."""
        ...

    @property
    def axis(self) -> Axis:
        """What its failures are counted under."""
        ...

    def fence(self, delivery: Delivery) -> Fence:
        """Whether the run is the one that this aspect waits for."""
        ...

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:
        """End the aspect in a visible failure."""
        ...


@dataclass(frozen=True, slots=True)
class Registration:
    """The document's registration axis."""

    document: Document
    axis: Axis = Axis.REGISTRATION

    def fence(self, delivery: Delivery) -> Fence:
        """The status waits for an answer, from this run, about this pass."""
        document = self.document
        if (delivery.document_id, delivery.run_id, delivery.extraction_run_id) != (
            document.id,
            document.registration_run_id,
            document.extraction_run_id,
        ):
            return Fence.STALE
        registering = document.registration_status is RegistrationStatus.REGISTERING
        return Fence.OPEN if registering else Fence.ALREADY_DONE

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:
        """Registering → failed."""
        service.fail(executor, self.document, kind=kind, message=message, retryable=retryable, limits=limits)


@dataclass(frozen=True, slots=True)
class Understanding:
    """One part of the present pass; ``row`` is locked, or ``None`` where the pass has no such part."""

    document: Document
    row: PartRow | None
    axis: Axis = Axis.UNDERSTANDING

    def fence(self, delivery: Delivery) -> Fence:
        """The part is running, with this run, in this pass."""
        row = self.row
        if row is None or (delivery.document_id, delivery.run_id, delivery.extraction_run_id) != (
            row.document_id,
            row.run_id,
            row.extraction_run_id,
        ):
            return Fence.STALE
        return Fence.OPEN if row.state is PartState.RUNNING else Fence.ALREADY_DONE

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:
        """Running → failed. A part keeps the sentence; the kind is the registration axis's."""
        del kind
        parts.fail(executor, self.document, self.running, message=message, retryable=retryable, limits=limits)

    @property
    def running(self) -> PartRow:
        """The part's row, which is there wherever the fence is open."""
        if self.row is None:
            raise LookupError("the pass has no such part")
        return self.row


def aspect_of(executor: Executor, document: Document, delivery: Delivery) -> Registration | Understanding:
    """The aspect that a run answers for. Locks the part where it is one; the document is locked already."""
    if delivery.purpose is Purpose.CLASSIFY:
        return Registration(document)
    return Understanding(document, parts.lock_part(executor, document, Part(delivery.purpose.value)))
