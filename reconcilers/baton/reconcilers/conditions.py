"""Clauses that several rows of the table share: where an aspect stands, and where its ticket or letter is in its life.

An aspect is *asked for* when a request of it is on its way (a document in extraction or queued, a part requested), and
*running* when a run has been minted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, FromClause, and_, false, func, or_

from baton.reconcilers.aspects import Aspect
from baton.reconcilers.lost import Life
from baton.reconcilers.questions import among, word
from baton.reconcilers.rows import Clause
from baton.reconcilers.situation import IN_EXTRACTION, WITH_LETTER, Situation

#: What :func:`asked` and :func:`running` ask, over all aspects.
PHASE_READS: Final = frozenset(("document.processing_status", "document.registration_status", "part.state"))


def asked(s: Situation) -> ColumnElement[bool]:
    """A request of the aspect is on its way, or should be."""
    if s.aspect is Aspect.INGEST:
        return among(s.document.c.processing_status, IN_EXTRACTION)
    if s.part is not None:
        return s.part.c.state == word("requested")
    return s.document.c.registration_status == word("queued")


def running(s: Situation) -> ColumnElement[bool]:
    """A run has been minted for the aspect."""
    if s.aspect is Aspect.INGEST:
        return false()
    if s.part is not None:
        return s.part.c.state == word("running")
    return s.document.c.registration_status == word("registering")


def is_asked(s: Situation) -> Clause:
    """:func:`asked`, in words."""
    words = {Aspect.INGEST: "the document waits for extraction", Aspect.REGISTRATION: "registration is queued"}
    return Clause(words.get(s.aspect, "the part is requested"), asked(s))


def is_running(s: Situation) -> Clause:
    """:func:`running`, in words."""
    words = "registration is registering" if s.part is None else "the part is running"
    return Clause(words, running(s))


def request_is(s: Situation, *lives: Life) -> ColumnElement[bool]:
    """The aspect's newest request is in one of these states."""
    return _is(s.ticket, lives)


def letter_is(s: Situation, *lives: Life) -> ColumnElement[bool]:
    """The newest announcement of the run's result is in one of these states."""
    if s.letter is None:
        raise LookupError(f"{s.aspect} has no runs")
    return _is(s.letter, lives)


def _is(ticket: FromClause, lives: Sequence[Life]) -> ColumnElement[bool]:
    return ticket.c.life == word(lives[0]) if len(lives) == 1 else among(ticket.c.life, lives)


def waits_for(s: Situation, *lives: Life) -> ColumnElement[bool]:
    """The ticket that the aspect waits for is in one of these states: its request, or its settled run's letter."""
    requested = and_(asked(s), request_is(s, *lives))
    return requested if s.run is None else or_(requested, and_(running(s), run_is_settled(s), letter_is(s, *lives)))


def letter_missing(s: Situation) -> ColumnElement[bool]:
    """Nothing announces the run's result."""
    if s.letter is None:
        raise LookupError(f"{s.aspect} has no runs")
    return s.letter.c.id.is_(None)


def of_ticket(s: Situation, moment: Callable[[FromClause], ColumnElement[datetime]]) -> ColumnElement[datetime]:
    """A moment of the ticket that the aspect waits for: a situation has the request or the letter, never both."""
    return moment(s.ticket) if s.letter is None else func.coalesce(moment(s.ticket), moment(s.letter))


def run_of(s: Situation) -> FromClause:
    """The run that may win."""
    if s.run is None:
        raise LookupError(f"{s.aspect} has no runs")
    return s.run


def run_mark(s: Situation) -> ColumnElement[object]:
    """The mark that names the run that may win."""
    return s.document.c.registration_run_id if s.part is None else s.part.c.run_id


def ticket_mark(s: Situation) -> ColumnElement[object]:
    """The mark that names the request."""
    if s.aspect is Aspect.INGEST:
        return s.document.c.ingest_ticket_id
    return s.document.c.registration_ticket_id if s.part is None else s.part.c.ticket_id


def run_is_pending(s: Situation) -> ColumnElement[bool]:
    """The run that may win is named by its mark, and nobody has settled it."""
    return and_(run_mark(s).is_not(None), run_of(s).c.state == word("pending"))


def run_is_settled(s: Situation) -> ColumnElement[bool]:
    """The run that may win is named by its mark, and its letter has to be opened."""
    return and_(run_mark(s).is_not(None), among(run_of(s).c.state, WITH_LETTER))


def is_settled(s: Situation) -> Clause:
    """:func:`run_is_settled`, in words."""
    return Clause("its run is settled, with something to say", run_is_settled(s))


#: What the marks read.
MARK_READS: Final = frozenset(
    ("document.ingest_ticket_id", "document.registration_ticket_id", "part.ticket_id", "run.artifact_ticket_id")
)
#: What :func:`run_is_pending` and :func:`run_is_settled` read.
RUN_READS: Final = frozenset(("document.registration_run_id", "part.run_id", "run.state"))
#: What :func:`waits_for` reads.
WAIT_READS: Final = PHASE_READS | RUN_READS | {"ticket.life", "letter.life"}
