"""What is known of one aspect of a document, as one FROM clause.

Every condition is an expression over a situation, so that the one condition can scan, verify under the lock, explain and
scrub. The rows beside the document are found by document through ``outbox_document``, ``run_document`` and primary keys,
never by a recomputed key: under row-level security that has no index.

======================  =====================================================================
``document``            the document
``ticket``              the newest request of the aspect for the present epoch or pass
``run``                 the run that may win: the mark's, or without a mark the newest of the pass
``letter``              the newest ticket that announces the run's result
``part``                the understanding part's row, for those aspects
``before``              the row of the part that the chain asks for first, where there is one
``stray``               any pending run of the aspect's purpose, of whichever pass
======================  =====================================================================

``ticket`` and ``letter`` carry their ``life`` (:class:`baton.reconcilers.lost.Life`), worked out once, and ``dead_at``:
since when their message is known to lie on the dead-letter queue.

Rows are looked for only where the document's status can need them, so that a document that rests costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, and_, exists, false, literal_column, or_, select, true

from baton.db.states import EventType, Part, Purpose
from baton.db.tables import agent_run, dead_letter, documents, outbox, understanding_part
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.lost import life_of
from baton.reconcilers.questions import LaneColumns, among, word


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """The FROM clause of an aspect, and its members by name; those that an aspect has not are ``None``."""

    aspect: Aspect
    source: FromClause
    document: FromClause
    ticket: FromClause
    lane: LaneColumns
    stray: ColumnElement[bool]
    run: FromClause | None = None
    letter: FromClause | None = None
    part: FromClause | None = None
    before: FromClause | None = None

    def members(self) -> dict[str, FromClause]:
        """The members that the aspect has, by name."""
        named = {name: getattr(self, name) for name in _MEMBERS}
        return {name: member for name, member in named.items() if member is not None}


_MEMBERS: Final = ("document", "ticket", "run", "letter", "part", "before")
_REQUESTS_OF_PARTS: Final = (EventType.UNDERSTANDING_REQUESTED, EventType.RESEGMENT_REQUESTED)
#: Statuses in which extraction still owes the document an answer.
IN_EXTRACTION: Final = ("uploaded", "stored", "extracting")
#: States of a run whose letter has to be opened.
WITH_LETTER: Final = ("delivered", "rejected", "expired")


def situation(aspect: Aspect) -> Situation:
    """The situation of an aspect, always the same one. Its document carries no condition: the caller says which."""
    return _SITUATIONS[aspect]


def _made(aspect: Aspect) -> Situation:
    d = documents.alias("document")
    lane = LaneColumns.of(aspect.lane)
    if aspect is Aspect.INGEST:
        return _of_ingest(d, lane)
    part = before = None
    source: FromClause = d
    if aspect.part is None:
        ticket = _newest(
            "ticket",
            d,
            lane,
            d.c.registration_status == word("queued"),
            outbox.c.event_type == word(EventType.REGISTRATION_REQUESTED),
            _of_pass(d),
        )
        run = _run(
            d,
            d.c.registration_status == word("registering"),
            mark=d.c.registration_run_id,
            purpose=Purpose.CLASSIFY,
        )
    else:
        part = understanding_part.alias("part")
        source = source.outerjoin(part, _is_part(d, part, aspect.part))
        earlier = preceding(aspect.part)
        if earlier is not None:
            before = understanding_part.alias("before")
            source = source.outerjoin(before, _is_part(d, before, earlier))
        ticket = _newest(
            "ticket",
            d,
            lane,
            part.c.state == word("requested"),
            among(outbox.c.event_type, _REQUESTS_OF_PARTS),
            _of_pass(d),
            outbox.c.part == word(aspect.value),
        )
        run = _run(d, part.c.state == word("running"), mark=part.c.run_id, purpose=Purpose(aspect.value))
    letter = _newest(
        "letter",
        d,
        lane,
        among(run.c.state, WITH_LETTER),
        outbox.c.event_type == word(EventType.ARTIFACT_DELIVERED),
        outbox.c.run_id == run.c.run_id,
    )
    for member in (ticket, run, letter):
        source = source.outerjoin(member, true())
    purpose = Purpose.CLASSIFY if aspect.part is None else Purpose(aspect.value)
    stray = _pending(d, purpose)
    return Situation(aspect, source, d, ticket, lane, stray, run, letter, part, before)


def preceding(part: Part) -> Part | None:
    """The part that the chain asks for before ``part``; ``None`` before the first."""
    order = tuple(Part)
    return order[order.index(part) - 1] if order.index(part) else None


def _of_ingest(d: FromClause, lane: LaneColumns) -> Situation:
    ticket = _newest(
        "ticket",
        d,
        lane,
        among(d.c.processing_status, IN_EXTRACTION),
        outbox.c.event_type == word(EventType.INGEST_REQUESTED),
        outbox.c.extraction_epoch == d.c.extraction_epoch,
    )
    return Situation(Aspect.INGEST, d.outerjoin(ticket, true()), d, ticket, lane, false())


def _of_pass(d: FromClause) -> ColumnElement[bool]:
    return outbox.c.extraction_run_id == d.c.extraction_run_id


#: What is told of a ticket.
_TICKET: Final = (
    "id",
    "document_id",
    "lane",
    "created_at",
    "not_before",
    "dispatched_at",
    "parked_at",
    "first_received_at",
    "hold_until",
    "handled_at",
)


def dead_at() -> ColumnElement[Any]:
    """When a ticket's message was found in a dead-letter queue and not yet dealt with; beside the outbox's own columns."""
    found = (
        select(dead_letter.c.found_at)
        .where(dead_letter.c.ticket_id == outbox.c.id, dead_letter.c.outcome.is_(None))
        .order_by(dead_letter.c.id)
        .limit(literal_column("1"))
        .correlate(outbox)
        .scalar_subquery()
    )
    return found.label("dead_at")


def _newest(
    name: str, d: FromClause, lane: LaneColumns, needed: ColumnElement[bool], *conditions: ColumnElement[bool]
) -> FromClause:
    """Generations of one subject are written one after the other, so the newest has the highest id."""
    newest = (
        select(*(outbox.c[column] for column in _TICKET), dead_at())
        .where(needed, outbox.c.document_id == d.c.id, *conditions)
        .order_by(outbox.c.id.desc())
        .limit(literal_column("1"))
        .correlate_except(outbox)
        .lateral(f"newest_{name}")
    )
    # OFFSET 0: worked out once, and the planner does not copy it into every condition that asks for it
    told = select(*newest.c, life_of(newest, lane).label("life")).offset(literal_column("0"))
    return told.lateral(name)


def _run(d: FromClause, needed: ColumnElement[bool], *, mark: ColumnElement[Any], purpose: Purpose) -> FromClause:
    return (
        select(agent_run)
        .where(
            needed,
            agent_run.c.document_id == d.c.id,
            agent_run.c.purpose == word(purpose),
            agent_run.c.extraction_run_id == d.c.extraction_run_id,
            or_(mark.is_(None), agent_run.c.run_id == mark),
        )
        .order_by(agent_run.c.seq.desc())
        .limit(literal_column("1"))
        .lateral("run")
    )


def _pending(d: FromClause, purpose: Purpose) -> ColumnElement[bool]:
    stray = agent_run.alias("stray")
    return exists(
        select(stray.c.run_id)
        .where(stray.c.document_id == d.c.id, stray.c.purpose == word(purpose), stray.c.state == word("pending"))
        .correlate(d)
    )


def _is_part(d: FromClause, row: FromClause, part: Part) -> ColumnElement[bool]:
    """With the firm, so that the key is whole and the planner knows that there is one row at most."""
    return and_(
        row.c.document_id == d.c.id,
        row.c.extraction_run_id == d.c.extraction_run_id,
        row.c.part == word(part),
        row.c.firm_id == d.c.firm_id,
    )


#: Made once, at import. A condition belongs to the very aliases that it was built on: two threads that each made a
#: situation of their own, and then met the other's, would join every document with every row.
_SITUATIONS: Final = {aspect: _made(aspect) for aspect in Aspect}
