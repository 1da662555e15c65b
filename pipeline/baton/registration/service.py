"""RegistrationService: what can happen to a document's registration, each as one call on the caller's transaction.

Every function takes a document that the caller has locked and read in this transaction (``lock_document``), moves the
status and writes the marks in one UPDATE, and never commits. Who calls what:

============================  =================================================================
:func:`request`               the extraction worker at ``indexed``; a reconciler; a person's retry
:func:`begin`, :func:`renew`  dispatch, when it mints a run
:func:`requeue`               dispatch, when the agent never took the run
:func:`conclude`              apply, with the verdict
:func:`fail`                  dispatch and apply, on every branch that ends badly
:func:`supersede`             re-extraction; a reconciler
:func:`adopt_ticket`,         a reconciler, where a mark is missing and what it should name is there
:func:`adopt_run`
:func:`mark_understood`       a reconciler, with the parts that it asks for
============================  =================================================================
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select

from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.states import EventType, FailureKind, ProcessingStatus, RegistrationStatus
from baton.outbox.keys import subject_of
from baton.outbox.tickets import Ticket, ask, pointer_of, write_next
from baton.registration.machine import move, write
from baton.settings.agents import Runs

_RETRYABLE_BY_A_PERSON = (RegistrationStatus.REGISTRATION_FAILED, RegistrationStatus.REGISTRATION_NEEDS_REVIEW)


def may_request(document: Document, *, explicit: bool = False) -> bool:
    """Whether registration may be asked for now.

    :param explicit: somebody decided on a retry; a late redelivery must never re-queue a person's decision.
    """
    if document.processing_status is not ProcessingStatus.INDEXED or not document.live:
        return False
    if document.registration_status is RegistrationStatus.NOT_REQUESTED:
        return True
    return explicit and document.registration_status in _RETRYABLE_BY_A_PERSON


def request(
    executor: Executor, document: Document, *, explicit: bool = False, not_before: datetime | None = None
) -> Ticket | None:
    """Queue the document for registration, with its ticket; ``None`` where the guard does not hold."""
    if not may_request(document, explicit=explicit):
        return None
    attempt = document.registration_attempt + 1
    subject = subject_of(document, EventType.REGISTRATION_REQUESTED)
    ticket = ask(executor, subject, pointer=pointer_of(document), attempt=attempt, not_before=not_before)
    move(
        executor,
        document,
        RegistrationStatus.QUEUED,
        registration_ticket_id=ticket.id,
        registration_pass=document.extraction_run_id,
        registration_attempt=attempt,
        registration_message=None,
        failure_kind=None,
    )
    return ticket


def concerns(document: Document, ticket: Ticket) -> bool:
    """Whether a registration ticket is about the document's present pass and attempt.

    The mark decides: a retry, a redrive and a requeue all write theirs into the row. Without a mark (edited away, or
    from before there was one) the pass and the attempt do.
    """
    if (
        ticket.extraction_run_id != document.extraction_run_id
        or document.extraction_run_id != document.registration_pass
    ):
        return False
    if document.registration_ticket_id is not None:
        return ticket.id == document.registration_ticket_id
    return ticket.attempt == document.registration_attempt


def begin(executor: Executor, document: Document, *, run_id: UUID) -> Document:
    """Queued → registering, with the run that may win."""
    return move(executor, document, RegistrationStatus.REGISTERING, registration_run_id=run_id)


def renew(executor: Executor, document: Document, *, run_id: UUID) -> Document:
    """A new run takes over from one that lapsed: an attempt is spent, the status stays at registering."""
    return write(executor, document, registration_run_id=run_id, registration_attempt=document.registration_attempt + 1)


def requeue(executor: Executor, document: Document, *, wait: timedelta) -> Ticket:
    """Registering → queued: the agent never took the run. No attempt is spent; the next ticket waits ``wait``."""
    ticket = _next_request(executor, document, wait=wait)
    move(executor, document, RegistrationStatus.QUEUED, registration_ticket_id=ticket.id)
    return ticket


def postpone(executor: Executor, document: Document, *, wait: timedelta) -> Ticket:
    """A queued document's ticket cannot be served now (budget, breaker): its next generation waits ``wait``."""
    ticket = _next_request(executor, document, wait=wait)
    write(executor, document, registration_ticket_id=ticket.id)
    return ticket


def conclude(
    executor: Executor,
    document: Document,
    *,
    verdict: RegistrationStatus,
    message: str | None,
    understood: bool = False,
) -> Document:
    """Registering → registered or needs review.

    :param message: lawyer-safe.
    :param understood: the understanding of this pass has been asked for in this transaction; its mark goes into the same
        UPDATE.
    """
    if verdict not in (RegistrationStatus.REGISTERED, RegistrationStatus.REGISTRATION_NEEDS_REVIEW):
        raise ValueError(f"{verdict} is not a verdict")
    marks = {"understood_pass": document.extraction_run_id} if understood else {}
    return move(executor, document, verdict, registration_message=message, failure_kind=None, **marks)


def fail(
    executor: Executor, document: Document, *, kind: FailureKind, message: str, retryable: bool, limits: Runs
) -> Document:
    """Registering → failed, with the reason where counsel looks.

    :param message: lawyer-safe; a settled run's own message is repeated here.
    :param retryable: whether asking again can help. ``next_attempt_at`` is set while attempts are left, with a wait that
        doubles with each attempt.
    """
    again = retryable and document.registration_attempt < limits.max_attempts
    return move(
        executor,
        document,
        RegistrationStatus.REGISTRATION_FAILED,
        failure_kind=kind.value,
        registration_message=message,
        next_attempt_at=due_in(executor, backoff(document.registration_attempt, limits=limits)) if again else None,
    )


def supersede(executor: Executor, document: Document) -> Document:
    """Back to not requested: the pass that the status spoke of is gone. Refused by the database where it is not."""
    return move(
        executor,
        document,
        RegistrationStatus.NOT_REQUESTED,
        registration_attempt=0,
        registration_message=None,
        failure_kind=None,
    )


def adopt_ticket(executor: Executor, document: Document, ticket_id: int) -> Document:
    """Write the mark of a request that stands already: the document waits for that ticket."""
    return write(executor, document, registration_ticket_id=ticket_id)


def adopt_run(executor: Executor, document: Document, run_id: UUID) -> Document:
    """Write the mark of a run that stands already: that run may win the document."""
    return write(executor, document, registration_run_id=run_id)


def mark_understood(executor: Executor, document: Document) -> Document:
    """Note that the understanding of this pass has been asked for, in the transaction that asks."""
    return write(executor, document, understood_pass=document.extraction_run_id)


def backoff(attempt: int, *, limits: Runs) -> timedelta:
    """The wait after attempt number ``attempt`` (from 1): doubled each time, up to the limit."""
    doublings = min(max(attempt - 1, 0), 30)
    return timedelta(seconds=min(limits.retry_max, limits.retry_initial * 2.0**doublings))


def due_in(executor: Executor, wait: timedelta) -> datetime:
    """The moment ``wait`` from now, by the database's clock."""
    moment: datetime = executor.execute(select(func.app.clock() + wait)).scalar_one()
    return moment


def _next_request(executor: Executor, document: Document, *, wait: timedelta) -> Ticket:
    """The next generation of the document's request, for the same attempt."""
    return write_next(
        executor,
        subject_of(document, EventType.REGISTRATION_REQUESTED),
        pointer=pointer_of(document),
        attempt=document.registration_attempt,
        not_before=due_in(executor, wait) if wait else None,
    )
