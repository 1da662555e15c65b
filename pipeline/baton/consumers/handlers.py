"""What a component gives to a consumer.

A handler is called from several threads, never for two messages of one group of the same batch at once. It commits its
own transactions. An exception is contained by the consumer: logged, counted, and the message comes again later.
"""

from __future__ import annotations

from typing import Protocol

from baton.aws.receiving import Message
from baton.consumers.verdicts import Verdict
from baton.outbox.tickets import Ticket


class TicketHandler(Protocol):
    """Does the work that a ticket asks for."""

    def handle(self, ticket: Ticket) -> Verdict:
        """Do the work. The ticket may have been handled before: a redelivery must be harmless."""
        ...

    def give_up(self, ticket: Ticket) -> Verdict:
        """End the ticket visibly: its attempts are used up, so that the work itself must not be tried again."""
        ...


class MessageHandler(Protocol):
    """Does the work of a message that no ticket stands behind."""

    def handle(self, message: Message) -> Verdict:
        """Do the work. Nothing in the message is to be trusted."""
        ...
