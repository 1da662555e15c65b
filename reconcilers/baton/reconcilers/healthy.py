"""The states that need no repair: somebody named has the next move and a time for it, or nobody has one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, and_, or_

from baton.reconcilers.aspects import PARTS, Aspect, Owner
from baton.reconcilers.conditions import RUN_READS, WAIT_READS, of_ticket, run_is_pending, run_of, running, waits_for
from baton.reconcilers.lost import Life, released_at
from baton.reconcilers.questions import NOW, among, word
from baton.reconcilers.rows import Clause, Healthy
from baton.reconcilers.situation import IN_EXTRACTION, Situation

_ALL: Final = tuple(Aspect)
_RUNNING: Final = (Aspect.REGISTRATION, *PARTS)


def _one(
    text: str, expression: Callable[[Situation], ColumnElement[bool]]
) -> Callable[[Situation], tuple[Clause, ...]]:
    return lambda s: (Clause(text, expression(s)),)


def _status(s: Situation) -> ColumnElement[Any]:
    return s.document.c.processing_status


def _registration(s: Situation, status: str) -> ColumnElement[bool]:
    return s.document.c.registration_status == word(status)


def _awaits_text(s: Situation) -> ColumnElement[bool]:
    """The registration's next move needs text: it was not asked for, or it failed and is to be tried again."""
    again = and_(_registration(s, "registration_failed"), s.document.c.next_attempt_at.is_not(None))
    return or_(_registration(s, "not_requested"), again)


_AWAITS_TEXT_READS: Final = frozenset(
    ("document.registration_status", "document.next_attempt_at", "document.processing_status")
)


def _part(s: Situation) -> FromClause:
    if s.part is None:
        raise LookupError(f"{s.aspect} is no part")
    return s.part


def _next_attempt(s: Situation) -> ColumnElement[datetime]:
    return s.document.c.next_attempt_at if s.part is None else s.part.c.next_attempt_at


def _failed(s: Situation) -> ColumnElement[bool]:
    return _registration(s, "registration_failed") if s.part is None else s.part.c.state == word("failed")


_FAILED_READS: Final = frozenset(
    ("document.registration_status", "document.next_attempt_at", "part.state", "part.next_attempt_at")
)


DELETED = Healthy(
    name="deleted",
    aspects=_ALL,
    owner=Owner.NOBODY,
    meaning="the document is deleted",
    clauses=_one("the document is deleted", lambda s: s.document.c.deleted_at.is_not(None)),
    reads=frozenset(("document.deleted_at",)),
    due=None,
)
UNDISPATCHED = Healthy(
    name="undispatched",
    aspects=_ALL,
    owner=Owner.RELAY,
    meaning="its ticket is before the relay",
    clauses=_one("the ticket was not sent yet", lambda s: waits_for(s, Life.UNDISPATCHED)),
    reads=WAIT_READS,
    due=lambda s: of_ticket(s, lambda ticket: ticket.c.not_before),
)
WAITING = Healthy(
    name="waiting",
    aspects=_ALL,
    owner=Owner.QUEUE,
    meaning="its ticket is on the queue; at the latest when the queue's retention is over it counts as lost",
    clauses=_one("the ticket was sent, and not received yet", lambda s: waits_for(s, Life.WAITING)),
    reads=WAIT_READS,
    due=lambda s: of_ticket(s, lambda ticket: ticket.c.dispatched_at + s.lane.retention),
)
HELD = Healthy(
    name="held",
    aspects=_ALL,
    owner=Owner.WORKER,
    meaning="a worker has its ticket; one visibility time after its hold it counts as lost",
    clauses=_one("the ticket was received", lambda s: waits_for(s, Life.HELD)),
    reads=WAIT_READS,
    due=lambda s: of_ticket(s, lambda ticket: released_at(ticket, s.lane)),
)
EXTRACTED = Healthy(
    name="extracted",
    aspects=(Aspect.INGEST,),
    owner=Owner.NOBODY,
    meaning="the text is there",
    clauses=_one("the text is indexed", lambda s: _status(s) == word("indexed")),
    reads=frozenset(("document.processing_status",)),
    due=None,
)
TEXT_NEEDS_REVIEW = Healthy(
    name="text_needs_review",
    aspects=(Aspect.INGEST,),
    owner=Owner.PERSON,
    meaning="a person must look at the text",
    clauses=_one("the text needs a person", lambda s: _status(s) == word("needs_review")),
    reads=frozenset(("document.processing_status",)),
    due=None,
)
UNREADABLE = Healthy(
    name="unreadable",
    aspects=(Aspect.INGEST,),
    owner=Owner.NOBODY,
    meaning="the file cannot be read, and counsel was told why",
    clauses=_one("extraction failed", lambda s: _status(s) == word("failed")),
    reads=frozenset(("document.processing_status",)),
    due=None,
)
AWAITING_TEXT = Healthy(
    name="awaiting_text",
    aspects=(Aspect.REGISTRATION,),
    owner=Owner.INGEST,
    meaning="registration waits for the document's text",
    clauses=lambda s: (
        Clause("its next move needs the text", _awaits_text(s)),
        Clause("the text is not there yet", among(_status(s), ("pending", *IN_EXTRACTION))),
    ),
    reads=_AWAITS_TEXT_READS,
    due=None,
)
TEXT_UNDER_REVIEW = Healthy(
    name="text_under_review",
    aspects=(Aspect.REGISTRATION,),
    owner=Owner.PERSON,
    meaning="registration waits for a person's look at the text",
    clauses=lambda s: (
        Clause("its next move needs the text", _awaits_text(s)),
        Clause("the text needs a person", _status(s) == word("needs_review")),
    ),
    reads=_AWAITS_TEXT_READS,
    due=None,
)
WITHOUT_TEXT = Healthy(
    name="without_text",
    aspects=(Aspect.REGISTRATION,),
    owner=Owner.NOBODY,
    meaning="the file cannot be read, so there is nothing to register",
    clauses=lambda s: (
        Clause("its next move needs the text", _awaits_text(s)),
        Clause("extraction failed", _status(s) == word("failed")),
    ),
    reads=_AWAITS_TEXT_READS,
    due=None,
)
WITH_AGENT = Healthy(
    name="with_agent",
    aspects=_RUNNING,
    owner=Owner.AGENT,
    meaning="the agent has the run, and its deadline has not passed",
    clauses=lambda s: (
        Clause("a run was minted, and is pending", and_(running(s), run_is_pending(s))),
        Clause("its deadline has not passed", run_of(s).c.deadline_at > NOW),
    ),
    reads=frozenset(("document.registration_status", "part.state")) | RUN_READS | {"run.deadline_at"},
    due=lambda s: run_of(s).c.deadline_at,
)
AWAITING_RETRY = Healthy(
    name="awaiting_retry",
    aspects=_RUNNING,
    owner=Owner.RECONCILER,
    meaning="it failed, and is tried again at its time",
    clauses=lambda s: (
        Clause("it failed", _failed(s)),
        Clause("the time of the next attempt has not come", _next_attempt(s) > NOW),
    ),
    reads=_FAILED_READS,
    due=_next_attempt,
)
FAILED = Healthy(
    name="failed",
    aspects=_RUNNING,
    owner=Owner.NOBODY,
    meaning="it failed for good, and counsel was told why",
    clauses=lambda s: (
        Clause("it failed", _failed(s)),
        Clause("no further attempt is planned", _next_attempt(s).is_(None)),
    ),
    reads=_FAILED_READS,
    due=None,
)
REGISTRATION_NEEDS_REVIEW = Healthy(
    name="registration_needs_review",
    aspects=(Aspect.REGISTRATION,),
    owner=Owner.PERSON,
    meaning="a person must decide on the registration; nothing automatic ever does",
    clauses=_one("the registration needs a person", lambda s: _registration(s, "registration_needs_review")),
    reads=frozenset(("document.registration_status",)),
    due=None,
)
REGISTERED = Healthy(
    name="registered",
    aspects=(Aspect.REGISTRATION,),
    owner=Owner.NOBODY,
    meaning="the document is registered, and its understanding was asked for",
    clauses=_one("the document is registered", lambda s: _registration(s, "registered")),
    reads=frozenset(("document.registration_status",)),
    due=None,
)
AWAITING_TURN = Healthy(
    name="awaiting_turn",
    aspects=PARTS,
    owner=Owner.REGISTRATION,
    meaning="the part waits for the registration, or for the part before it",
    clauses=_one("the part was not asked for yet", lambda s: _part(s).c.document_id.is_(None)),
    reads=frozenset(("part.document_id",)),
    due=None,
)
READY = Healthy(
    name="ready",
    aspects=PARTS,
    owner=Owner.NOBODY,
    meaning="the part is there",
    clauses=_one("the part is ready", lambda s: _part(s).c.state == word("ready")),
    reads=frozenset(("part.state",)),
    due=None,
)
