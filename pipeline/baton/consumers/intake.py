"""From a received batch to deliveries that may be worked on.

A message is a hint. Only its ticket id and idempotency key are read, to find the ticket's row; whatever else a handler
needs comes from that row. What is not a ticket of ours is refused by kind, and never stops the rest of its batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from sqlalchemy import Engine, Row, select

from baton.consumers.holds import Delivery
from baton.consumers.refusals import Refusal
from baton.db.connect import Executor
from baton.db.states import LANE_OF, Lane
from baton.db.tables import outbox
from baton.outbox import envelope
from baton.outbox.life import extend_hold, mark_received
from baton.outbox.tickets import TICKET_COLUMNS, as_ticket

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Intaken:
    """A batch, sorted."""

    ready: list[Delivery] = field(default_factory=list)
    refused: list[tuple[Delivery, Refusal]] = field(default_factory=list)
    failed: list[Delivery] = field(default_factory=list)
    """Their rows could not be read or marked just now; they come again."""


class Intake(Protocol):
    """Sorts a batch, and says in the tickets' rows how long their messages stay hidden."""

    def take(self, deliveries: Sequence[Delivery]) -> Intaken:
        """Sort a batch. A database that is away raises."""
        ...

    def note(self, deliveries: Sequence[Delivery], hidden: timedelta) -> None:
        """Write down that messages stay hidden for ``hidden`` from now; never raises."""
        ...


class PlainIntake:
    """For messages with no ticket behind them: each is ready, and a group of its own."""

    def take(self, deliveries: Sequence[Delivery]) -> Intaken:
        """Everything is ready."""
        return Intaken(ready=list(deliveries))

    def note(self, deliveries: Sequence[Delivery], hidden: timedelta) -> None:
        """Nothing to write."""


class TicketIntake:
    """For a lane of the outbox: loads the tickets, and marks the whole batch as received in one statement."""

    def __init__(self, engine: Engine, *, lane: Lane, visibility: timedelta) -> None:
        self._engine = engine
        self._lane = lane
        self._visibility = visibility

    def take(self, deliveries: Sequence[Delivery]) -> Intaken:
        """Sort a batch by what stands in the tickets' rows; groups become documents."""
        sorted_ = Intaken()
        named: list[tuple[Delivery, int, str]] = []
        for each in deliveries:
            read = _read(each)
            if isinstance(read, Refusal):
                sorted_.refused.append((each, read))
            else:
                named.append((each, *read))
        if named:
            self._look_up(named, sorted_)
        return sorted_

    def note(self, deliveries: Sequence[Delivery], hidden: timedelta) -> None:
        """Move ``hold_until``. When it fails the ticket reads as held for less long than it is: a redrive at worst."""
        ids = [each.ticket.id for each in deliveries if each.ticket is not None]
        if not ids:
            return
        try:
            with self._engine.begin() as connection:
                extend_hold(connection, ids, visibility=hidden)
        except Exception as error:  # noqa: BLE001 - the keeper must live
            _log.warning("holds could not be written down", exc_info=error)

    def _look_up(self, named: Sequence[tuple[Delivery, int, str]], sorted_: Intaken) -> None:
        with self._engine.begin() as connection:
            rows = _rows(connection, [ticket_id for _, ticket_id, _ in named])
            for delivery, ticket_id, key in named:
                refusal = self._attach(delivery, rows.get(ticket_id), key)
                if refusal is None:
                    sorted_.ready.append(delivery)
                else:
                    sorted_.refused.append((delivery, refusal))
            ids = [each.ticket.id for each in sorted_.ready if each.ticket is not None]
            if ids:
                mark_received(connection, ids, visibility=self._visibility)

    def _attach(self, delivery: Delivery, row: Row[Any] | None, key: str) -> Refusal | None:
        if row is None or row.idempotency_key != key:
            return Refusal.UNKNOWN_TICKET
        try:
            ticket = as_ticket(row)
        except ValueError:
            return Refusal.UNKNOWN_EVENT
        if LANE_OF[ticket.event_type] is not self._lane:
            return Refusal.WRONG_LANE
        delivery.ticket = ticket
        delivery.group = str(ticket.document_id)
        return None


def _rows(executor: Executor, ids: Sequence[int]) -> dict[int, Row[Any]]:
    """The tickets' rows by id, in one statement by primary key."""
    rows = executor.execute(select(*TICKET_COLUMNS).where(outbox.c.id.in_(sorted(set(ids))))).all()
    return {row.id: row for row in rows}


def _read(delivery: Delivery) -> tuple[int, str] | Refusal:
    """Ticket id and key as the message names them."""
    try:
        named = envelope.parse(delivery.message.body)
    except envelope.UnknownVersion:
        return Refusal.UNKNOWN_VERSION
    except envelope.UnknownEvent:
        return Refusal.UNKNOWN_EVENT
    except envelope.EnvelopeError:
        return Refusal.UNREADABLE
    return named.ticket_id, named.idempotency_key
