"""Candidates for stalls, from the ticket's side: sent, not handled, and old enough for the lane to count it as lost.

Handled without effect is shown by no index: the backstop and the scrub find it.
"""

from __future__ import annotations

from baton.db.states import EventType, Lane
from baton.db.tables import outbox
from baton.reconcilers.candidates import Bound, Candidates, by_index
from baton.reconcilers.questions import among, word

_o = outbox.c


def stalled(lane: Lane, *events: EventType) -> tuple[Candidates, ...]:
    """Open tickets that were passed by, and open tickets that were received and not held any more."""
    sent = by_index(
        "o_open",
        outbox,
        _o.lane == word(lane),
        _o.dispatched_at.is_not(None),
        _o.handled_at.is_(None),
        among(_o.event_type, events),
        document=_o.document_id,
        at=_o.dispatched_at,
        identity=_o.id,
        bound=Bound(lane),
    )
    received = by_index(
        "o_received",
        outbox,
        _o.lane == word(lane),
        _o.first_received_at.is_not(None),
        _o.handled_at.is_(None),
        among(_o.event_type, events),
        document=_o.document_id,
        at=_o.first_received_at,
        identity=_o.id,
        bound=Bound(lane, released=True),
    )
    return sent, received
