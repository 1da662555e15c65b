"""Tickets that nothing waits for any more and that nobody will handle: closed, and no document changes.

A ticket is left over when the aspect that it was for has moved on by another way (another run won, the part was given up,
a row was edited by hand) and its message is gone, or the relay has parked it. While it is open it stands before the later
tickets of its document, so that none of those counts as lost, and the indexes over open tickets bring it back in every
pass. Closing it is safe whatever becomes of its message: consumers decide by the state of the document.

What an aspect waits for is what its situation says, so the two cannot disagree. No ledger row is written and nothing is
taken from the minute: it is no repair. Suspensions, windows and the owner hold it back all the same, since it writes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    CompoundSelect,
    Connection,
    Engine,
    Select,
    Uuid,
    any_,
    bindparam,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from baton.db.connect import read_connection
from baton.db.states import Lane, Outcome
from baton.db.tables import documents, outbox
from baton.outbox.life import close_open
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import parameters
from baton.reconcilers.lost import Life, life_of
from baton.reconcilers.planning import Ground
from baton.reconcilers.questions import LaneColumns, among, word
from baton.reconcilers.situation import dead_at, situation

#: What a pass calls closing them.
NAME: Final = "leftovers"
#: The states of a ticket that nobody will handle by himself. A dead letter is a person's; what travels is handled.
_ENDED: Final = (Life.LOST, Life.PARKED)
_IDS: Final = bindparam("document_ids", type_=ARRAY(Uuid()))


def close(engine: Engine, document_ids: Collection[UUID], *, ground: Ground) -> int:
    """Close what is left over of these documents; returns how many tickets that were.

    They are looked for without a lock, and again under the lock of their documents, which live work is not kept from.
    """
    with read_connection(engine) as connection:
        found = left_over(connection, document_ids, ground=ground)
    if not found:
        return 0
    with engine.begin() as connection:
        locked = connection.scalars(
            select(documents.c.id)
            .where(documents.c.id.in_(set(found.values())))
            .order_by(documents.c.id)
            .with_for_update(key_share=True, skip_locked=True)
        ).all()
        again = left_over(connection, locked, ground=ground)
        return close_open(connection, outbox.c.id.in_(list(again)), outcome=Outcome.STALE) if again else 0


def left_over(connection: Connection, document_ids: Collection[UUID], *, ground: Ground) -> dict[int, UUID]:
    """Tickets that are left over, with their documents."""
    if not document_ids:
        return {}
    values = parameters(lanes=ground.lanes, graces=ground.graces, now=ground.now)
    values["document_ids"] = list(document_ids)
    ended = {row.id: row.document_id for lane in Lane for row in connection.execute(_ended(lane), values)}
    if not ended:
        return {}
    values["document_ids"] = list(set(ended.values()))
    waited_for = set(connection.scalars(_waited_for(), values))
    return {ticket: document for ticket, document in ended.items() if ticket not in waited_for}


@cache
def _ended(lane: Lane) -> Select[Any]:
    """Open tickets of the lane that nobody will handle; by document."""
    opened = (
        select(*outbox.c, dead_at())
        .where(
            outbox.c.document_id == any_(_IDS),
            outbox.c.lane == word(lane.value),
            outbox.c.handled_at.is_(None),
        )
        .subquery("opened")
    )
    return select(opened.c.id, opened.c.document_id).where(among(life_of(opened, LaneColumns.of(lane.value)), _ENDED))


@cache
def _waited_for() -> CompoundSelect[Any]:
    """What the aspects of living documents wait for."""
    members = ((s, member) for s in map(situation, Aspect) for member in (s.ticket, s.letter) if member is not None)
    return union_all(
        *(
            select(member.c.id)
            .select_from(s.source)
            .where(s.document.c.id == any_(_IDS), s.document.c.deleted_at.is_(None), member.c.id.is_not(None))
            for s, member in members
        )
    )
