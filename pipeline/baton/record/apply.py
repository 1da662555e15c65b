"""Apply: what a settled run means for its document, exactly once and in one transaction.

The document's lock covers everything: of two appliers the second waits in the database, wakes to what the first
committed, and does nothing. Behind the lock stand the fence, the intent claims and the inbox's dedup key. Whatever the
run brought, its aspect is ended here, or another run owns it.
"""

from __future__ import annotations

import logging

from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError, ProgrammingError

from baton.contract.errors import ContractError
from baton.db.rows import Document, lock_document
from baton.db.states import FailureKind, Outcome, RunState
from baton.outbox.life import mark_handled
from baton.outbox.tickets import Ticket
from baton.record import messages
from baton.record.appliers import open_letter
from baton.record.aspects import Aspect, Fence, aspect_of
from baton.record.deliveries import Delivery, Disposition, dispose, effects_of, outrun, read_delivery
from baton.record.errors import UnseenDocument
from baton.settings.agents import Runs
from baton.telemetry import metrics
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_logger = logging.getLogger("baton.record")

#: The database is away, busy or not set up as this program needs it: of no meaning for the document. The message comes
#: again, and after its last attempt :func:`give_up` ends it.
_INFRASTRUCTURE = (OperationalError, InterfaceError, InternalError, ProgrammingError)


def apply(connection: Connection, ticket: Ticket, *, limits: Runs) -> Outcome:
    """Apply a ``document.artifact.delivered`` ticket's run, and close the ticket.

    Everything happens on the caller's open transaction, as the registrar; the caller commits it.

    :param limits: attempts and waits for the retry of what failed.
    :returns: the ticket's outcome: done (the effects are applied), refused (the aspect ended in a visible failure),
        already done, stale, or document deleted (nothing was touched).
    :raises UnseenDocument: the role cannot see the document.
    :raises sqlalchemy.exc.DBAPIError: the database failed as such; the transaction is lost, and the message comes again.
    """
    attributes = {
        Attribute.FIRM: ticket.firm_id,
        Attribute.MATTER: ticket.matter_id,
        Attribute.DOCUMENT: ticket.document_id,
        Attribute.RUN: ticket.run_id,
        Attribute.TICKET: ticket.id,
    }
    with span(SpanName.ARTIFACT_APPLY, attributes=attributes, parent_traceparent=ticket.traceparent) as opened:
        outcome = _apply(connection, ticket, limits=limits)
        opened.set(Attribute.OUTCOME, outcome)
    return outcome


def give_up(connection: Connection, ticket: Ticket, *, limits: Runs) -> Outcome:
    """End an aspect whose apply was tried too often, where its run still counts, and close the ticket.

    A person decides on a retry: it would pay for another run, which may meet the same fault.
    """
    document = _locked(connection, ticket)
    outcome = Outcome.POISON
    if not document.live:
        outcome = Outcome.DOCUMENT_DELETED
    else:
        delivery, aspect = _aspect(connection, ticket, document)
        if delivery is not None and aspect is not None and aspect.fence(delivery) is Fence.OPEN:
            kind, message = FailureKind.ATTEMPTS_EXHAUSTED, delivery.message or messages.GIVEN_UP
            _fail(connection, aspect, kind=kind, message=message, retryable=False, limits=limits)
    mark_handled(connection, ticket.id, outcome=outcome)
    return outcome


def _apply(connection: Connection, ticket: Ticket, *, limits: Runs) -> Outcome:
    document = _locked(connection, ticket)
    outcome = _decide(connection, ticket, document, limits=limits)
    mark_handled(connection, ticket.id, outcome=outcome)
    return outcome


def _locked(connection: Connection, ticket: Ticket) -> Document:
    document = lock_document(connection, ticket.document_id)
    if document is None:
        raise UnseenDocument(f"ticket {ticket.id}: its document cannot be seen")
    return document


def _aspect(connection: Connection, ticket: Ticket, document: Document) -> tuple[Delivery, Aspect] | tuple[None, None]:
    delivery = None if ticket.run_id is None else read_delivery(connection, ticket.run_id)
    # the registrar sees every firm's runs: one of another document is none of this ticket's, whatever its row says
    if delivery is None or delivery.document_id != document.id:
        return None, None
    return delivery, aspect_of(connection, document, delivery)


def _decide(connection: Connection, ticket: Ticket, document: Document, *, limits: Runs) -> Outcome:
    if not document.live:
        return Outcome.DOCUMENT_DELETED
    delivery, aspect = _aspect(connection, ticket, document)
    if delivery is None or aspect is None:
        return Outcome.STALE
    match aspect.fence(delivery):
        case Fence.ALREADY_DONE:
            return Outcome.ALREADY_DONE
        case Fence.STALE:
            _dispose(connection, delivery, Disposition.STALE)
            return Outcome.STALE
        case Fence.OPEN:
            return _open(connection, aspect, delivery, limits=limits)


def _open(connection: Connection, aspect: Aspect, delivery: Delivery, *, limits: Runs) -> Outcome:
    """Act on the run that the aspect waits for, by its state."""
    match delivery.state:
        case RunState.DELIVERED if outrun(connection, delivery):
            _dispose(connection, delivery, Disposition.STALE)
            return _unappliable(connection, aspect, messages.OUTRUN, limits=limits)
        case RunState.DELIVERED:
            return _carry_in(connection, aspect, delivery, limits=limits)
        case RunState.REJECTED | RunState.EXPIRED:
            kind = messages.KIND_OF[delivery.state]
            message = delivery.message or messages.FALLBACK[delivery.state]
            return _fail(connection, aspect, kind=kind, message=message, retryable=True, limits=limits)
        case _:
            return Outcome.STALE  # pending: its settler's move; superseded, undispatched: dispatch's


def _carry_in(connection: Connection, aspect: Aspect, delivery: Delivery, *, limits: Runs) -> Outcome:
    """All of a delivered run's effects, or none and a reason on the document."""
    data = effects_of(connection, delivery)
    try:
        with connection.begin_nested():
            applier, letter = open_letter(aspect, delivery, data=data)
            applier(connection, letter)
            _dispose(connection, delivery, Disposition.APPLIED)
    except _INFRASTRUCTURE:
        raise
    except ContractError as error:
        _logger.warning("a verified result is not known here", exc_info=error)
        return _unappliable(connection, aspect, error.message, limits=limits)
    except Exception:
        # Verified data met a fault of ours: an endless retry would hide it.
        _logger.exception("a verified result could not be applied")
        return _unappliable(connection, aspect, messages.UNAPPLIABLE, limits=limits)
    return Outcome.DONE


def _unappliable(connection: Connection, aspect: Aspect, message: str, *, limits: Runs) -> Outcome:
    kind = FailureKind.RESULT_UNAPPLIABLE
    return _fail(connection, aspect, kind=kind, message=message, retryable=False, limits=limits)


def _fail(
    connection: Connection, aspect: Aspect, *, kind: FailureKind, message: str, retryable: bool, limits: Runs
) -> Outcome:
    aspect.fail(connection, kind=kind, message=message, retryable=retryable, limits=limits)
    metrics.DOCUMENTS_FAILED.add(axis=aspect.axis)
    return Outcome.REFUSED


def _dispose(connection: Connection, delivery: Delivery, disposition: Disposition) -> None:
    count = dispose(connection, delivery, disposition)
    if count:
        metrics.EFFECTS.add(count, schema=delivery.result_schema, disposition=disposition)
