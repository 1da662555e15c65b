"""One delivery at a time: what is done for it, and what follows from the verdict or from a failure."""

from __future__ import annotations

import dataclasses
import logging
import threading
from datetime import timedelta
from typing import Protocol

from sqlalchemy import Engine

from baton.aws.receiving import Message
from baton.consumers.backoff import Backoff
from baton.consumers.faults import Blame, blame
from baton.consumers.handlers import MessageHandler, TicketHandler
from baton.consumers.holds import Delivery
from baton.consumers.verdicts import Ack, Retry, Verdict
from baton.outbox.life import count_work, forgive_work
from baton.outbox.tickets import Ticket
from baton.telemetry import fields
from baton.telemetry.labels import HandleOutcome

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Worked:
    """How one delivery's work ended."""

    verdict: Verdict
    outcome: HandleOutcome
    blame: Blame | None = None
    """Set where it failed."""


class Worker(Protocol):
    """Does the work of one delivery; a failure of the work does not come out."""

    def work(self, delivery: Delivery) -> Worked:
        """Do it, and say what becomes of the message."""
        ...


class TicketWorker:
    """Counts the attempt, commits that, and only then asks the handler.

    So an attempt that takes the whole process with it is counted too: after ``max_attempts`` of them the ticket is given
    up visibly. An attempt that ended for want of something outside is handed back.
    """

    def __init__(self, engine: Engine, handler: TicketHandler, *, max_attempts: int, backoff: Backoff) -> None:
        self._engine = engine
        self._handler = handler
        self._max_attempts = max_attempts
        self._backoff = backoff
        self._lock = threading.Lock()
        self._owed: list[int] = []

    def work(self, delivery: Delivery) -> Worked:
        """Do the work of one ticket."""
        ticket = delivery.ticket
        if ticket is None:
            raise TypeError("a delivery without a ticket came to a worker of tickets")
        about = {"firm": ticket.firm_id, "document": ticket.document_id, "ticket": ticket.id}
        with fields.bound(event_type=ticket.event_type, **about):
            return self._work(ticket)

    def _work(self, ticket: Ticket) -> Worked:
        attempts = ticket.work_attempts + 1
        counted = False
        try:
            self._pay()
            with self._engine.begin() as connection:
                attempts = count_work(connection, ticket.id)
            counted = True
            ticket = dataclasses.replace(ticket, work_attempts=attempts)
            given_up = attempts > self._max_attempts
            if given_up:
                _log.error("a ticket is given up", extra=fields.of(attempts=attempts - 1))
            verdict = self._handler.give_up(ticket) if given_up else self._handler.handle(ticket)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler's failure is this message's alone
            blamed = blame(error)
            if counted and blamed is not Blame.WORK:
                self._hand_back(ticket.id)
            _log_failure(error, blamed, attempts)
            return Worked(Retry(_wait(self._backoff, attempts), spent=True), HandleOutcome.FAILED, blamed)
        if isinstance(verdict, Retry):
            if not verdict.spent:
                self._hand_back(ticket.id)
            return Worked(verdict, HandleOutcome.LATER)
        if ticket.handled_at is not None:  # a redelivery of what was done: no attempt at anything
            self._hand_back(ticket.id)
        return Worked(verdict, HandleOutcome.GIVEN_UP if given_up else HandleOutcome.DONE)

    def _hand_back(self, ticket_id: int) -> None:
        with self._lock:
            self._owed.append(ticket_id)
        try:
            self._pay()
        except Exception as error:  # noqa: BLE001 - kept, and paid before the next attempt is counted
            _log.warning("an attempt could not be handed back yet", exc_info=error)

    def _pay(self) -> None:
        with self._lock:
            owed, self._owed = self._owed, []
        if not owed:
            return
        try:
            with self._engine.begin() as connection:
                for ticket_id in sorted(owed):
                    forgive_work(connection, ticket_id)
        except BaseException:
            with self._lock:
                self._owed += owed
            raise


class MessageWorker:
    """For messages with no ticket: nothing counts attempts but the queue itself."""

    def __init__(self, handler: MessageHandler, *, backoff: Backoff) -> None:
        self._handler = handler
        self._backoff = backoff

    def work(self, delivery: Delivery) -> Worked:
        """Do the work of one message."""
        message: Message = delivery.message
        try:
            verdict = self._handler.handle(message)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            blamed = blame(error)
            _log_failure(error, blamed, message.receive_count)
            return Worked(Retry(_wait(self._backoff, message.receive_count), spent=True), HandleOutcome.FAILED, blamed)
        return Worked(verdict, HandleOutcome.DONE if isinstance(verdict, Ack) else HandleOutcome.LATER)


def _wait(backoff: Backoff, attempts: int) -> timedelta:
    return timedelta(seconds=backoff.seconds(attempts))


def _log_failure(error: BaseException, blamed: Blame, attempts: int) -> None:
    about = fields.of(attempts=attempts, fault=blamed)
    if blamed is Blame.WORK:
        _log.error("the work on a message failed", exc_info=error, extra=about)
    else:
        _log.warning("the work on a message has to wait", exc_info=error, extra=about)
