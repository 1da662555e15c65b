"""What a run is for: a document's registration, or one part of its understanding. Dispatch knows only this port.

A target is read under its locks (the document's, then the part's) and stands for what was read then: after one of its
moves it is not used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from baton.contract.purposes import Purpose
from baton.db.connect import Executor
from baton.db.rows import Document, lock_document
from baton.db.states import EventType, FailureKind, PartState, RegistrationStatus
from baton.outbox.tickets import Ticket
from baton.registration import parts, service
from baton.runs.decisions import Phase
from baton.settings.agents import Runs
from baton.telemetry.labels import Axis


class Target(Protocol):
    """The row that waits for a run."""

    @property
    def document(self) -> Document:
        """The document, locked."""
        ...

    @property
    def purpose(self) -> Purpose:
        """What the agent is asked for."""
        ...

    @property
    def axis(self) -> Axis:
        """Where a failure shows."""
        ...

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        ...

    @property
    def run_id(self) -> UUID | None:
        """The run that may win."""
        ...

    @property
    def attempt(self) -> int:
        """Attempts spent, the present one included."""
        ...

    def concerns(self, ticket: Ticket) -> bool:
        """Whether the ticket is about the present pass and attempt."""
        ...

    def begin(self, executor: Executor, *, run_id: UUID) -> Target:
        """Asked → running."""
        ...

    def renew(self, executor: Executor, *, run_id: UUID) -> Target:
        """A new run takes over; an attempt is spent."""
        ...

    def requeue(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:
        """Running → asked; no attempt is spent, and the next generation of ``ticket`` waits."""
        ...

    def postpone(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:
        """Stays asked; the next generation of ``ticket`` waits."""
        ...

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:
        """Running → failed, visibly; ``message`` is lawyer-safe."""
        ...


@dataclass(frozen=True, slots=True)
class RegistrationTarget:
    """A document's registration axis."""

    document: Document
    purpose: Purpose = Purpose.CLASSIFY
    axis: Axis = Axis.REGISTRATION

    @property
    def phase(self) -> Phase:
        """Where the registration stands."""
        match self.document.registration_status:
            case RegistrationStatus.QUEUED:
                return Phase.ASKED
            case RegistrationStatus.REGISTERING:
                return Phase.RUNNING
            case _:
                return Phase.OTHER

    @property
    def run_id(self) -> UUID | None:
        """The run that may win the document."""
        return self.document.registration_run_id

    @property
    def attempt(self) -> int:
        """Registration attempts of this pass."""
        return self.document.registration_attempt

    def concerns(self, ticket: Ticket) -> bool:
        """See :func:`baton.registration.service.concerns`."""
        return service.concerns(self.document, ticket)

    def begin(self, executor: Executor, *, run_id: UUID) -> RegistrationTarget:
        """Queued → registering."""
        return RegistrationTarget(service.begin(executor, self.document, run_id=run_id))

    def renew(self, executor: Executor, *, run_id: UUID) -> RegistrationTarget:
        """Another run may win now."""
        return RegistrationTarget(service.renew(executor, self.document, run_id=run_id))

    def requeue(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:  # noqa: ARG002 - one subject only
        """Registering → queued."""
        service.requeue(executor, self.document, wait=wait)

    def postpone(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:  # noqa: ARG002 - one subject only
        """Stays queued."""
        service.postpone(executor, self.document, wait=wait)

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:
        """Registering → registration_failed."""
        service.fail(executor, self.document, kind=kind, message=message, retryable=retryable, limits=limits)


@dataclass(frozen=True, slots=True)
class PartTarget:
    """One part of a document's understanding. It never touches the document's axes."""

    document: Document
    row: parts.PartRow
    axis: Axis = Axis.UNDERSTANDING

    @property
    def purpose(self) -> Purpose:
        """The purpose of the part's name."""
        return Purpose(self.row.part.value)

    @property
    def phase(self) -> Phase:
        """Where the part stands."""
        match self.row.state:
            case PartState.REQUESTED:
                return Phase.ASKED
            case PartState.RUNNING:
                return Phase.RUNNING
            case _:
                return Phase.OTHER

    @property
    def run_id(self) -> UUID | None:
        """The run whose answer will count."""
        return self.row.run_id

    @property
    def attempt(self) -> int:
        """Attempts at this part."""
        return self.row.attempt

    def concerns(self, ticket: Ticket) -> bool:
        """See :func:`baton.registration.parts.concerns`."""
        return parts.concerns(self.row, ticket)

    def begin(self, executor: Executor, *, run_id: UUID) -> PartTarget:
        """Requested → running."""
        return PartTarget(self.document, parts.begin(executor, self.row, run_id=run_id))

    def renew(self, executor: Executor, *, run_id: UUID) -> PartTarget:
        """Another run's answer counts now."""
        return PartTarget(self.document, parts.renew(executor, self.row, run_id=run_id))

    def requeue(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:
        """Running → requested; a resegment stays one, with its request's id."""
        parts.requeue(executor, self.document, self.row, wait=wait, ticket=ticket)

    def postpone(self, executor: Executor, *, ticket: Ticket, wait: timedelta) -> None:
        """Stays requested."""
        parts.postpone(executor, self.document, self.row, wait=wait, ticket=ticket)

    def fail(self, executor: Executor, *, kind: FailureKind, message: str, retryable: bool, limits: Runs) -> None:  # noqa: ARG002 - a part shows its message only
        """Running → failed; one that has failed for good asks for the next of the chain."""
        parts.fail(executor, self.document, self.row, message=message, retryable=retryable, limits=limits)


def lock_target(executor: Executor, ticket: Ticket) -> Target | None:
    """Lock what the ticket is about, the document first; ``None`` where there is no such thing (any more)."""
    document = lock_document(executor, ticket.document_id)
    if document is None:
        return None
    if ticket.event_type is EventType.REGISTRATION_REQUESTED:
        return RegistrationTarget(document)
    if ticket.part is None:
        return None
    row = parts.lock_part(executor, document, ticket.part)
    return None if row is None else PartTarget(document, row)
