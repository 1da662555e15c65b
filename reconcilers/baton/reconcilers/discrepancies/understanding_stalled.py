"""A part of the understanding that nothing moves any more.

The rows of a queued and of a registering document, for the part's own run and ticket, under one name: whichever it is,
the part is asked for again or its letter announced again. A clause says which.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, case, func, or_

from baton.db.states import EventType, Lane, RunState
from baton.db.tables import agent_run, understanding_part
from baton.reconcilers import marks, moves
from baton.reconcilers.aspects import PARTS, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.conditions import asked, letter_is, letter_missing, request_is, run_is_settled, run_of, running
from baton.reconcilers.discrepancies import run_missing
from baton.reconcilers.lost import GONE, gone_reads, gone_since
from baton.reconcilers.questions import word
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation
from baton.reconcilers.stalls import stalled

_p, _r = understanding_part.c, agent_run.c
_ANSWERED = (RunState.DELIVERED, RunState.REJECTED, RunState.EXPIRED)


def _kinds(s: Situation) -> dict[str, ColumnElement[bool]]:
    """What it may be, of which at most one holds."""
    settled = and_(running(s), run_is_settled(s))
    return {
        "requested without a ticket": and_(asked(s), s.ticket.c.id.is_(None)),
        "requested, and the ticket is lost or was handled without the effect": and_(asked(s), request_is(s, *GONE)),
        "running without a run that could end it": and_(running(s), run_missing.no_run(s)),
        "its run is settled, and no ticket announces it": and_(settled, letter_missing(s)),
        "its run is settled, and the announcement is lost or was handled without the effect": and_(
            settled, letter_is(s, *GONE)
        ),
    }


def _clauses(s: Situation) -> tuple[Clause, ...]:
    kinds = _kinds(s)
    return (Clause("nothing moves the part: " + "; or ".join(kinds), or_(*kinds.values())),)


def _since(s: Situation) -> ColumnElement[datetime]:
    """The ticket's end, else the settlement of the run that nobody announced, else the part's last move.

    Where no run is named it is the part's last move whatever is known of one: naming a run is a step of its own, and
    what is wrong with that run's announcement is told, and timed, after it.
    """
    if s.part is None or s.letter is None:
        raise LookupError(f"{s.aspect} is no part")
    since = func.coalesce(gone_since(s.ticket), gone_since(s.letter), run_of(s).c.settled_at, s.part.c.state_since)
    return case((and_(running(s), run_missing.no_run(s)), s.part.c.state_since), else_=since)


def _repair(case: Case) -> Repaired | None:
    if case.exhausted:
        return moves.fail(case)
    if moves.is_asked(case):
        return moves.ask_again(case)
    run = moves.run_that_may_win(case)
    return moves.announce(case) if run is not None and run.state in _ANSWERED else run_missing.repair(case)


UNDERSTANDING_STALLED = Discrepancy(
    name="understanding_stalled",
    aspects=PARTS,
    meaning="the part was asked for or is running, and its ticket, its run or its announcement is missing or lost",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=_since,
    reads=gone_reads("ticket")
    | gone_reads("letter")
    | {
        "part.state",
        "part.state_since",
        "part.run_id",
        "run.run_id",
        "run.state",
        "run.settled_at",
        "ticket.id",
        "ticket.life",
        "letter.id",
        "letter.life",
    },
    candidates=(
        marks.PART_TICKET,
        by_index(
            "part_run_missing",
            understanding_part,
            _p.state == word("running"),
            _p.run_id.is_(None),
            document=_p.document_id,
            at=_p.state_since,
            identity=_p.document_id,
        ),
        marks.LETTER,
        *stalled(
            Lane.REGISTRAR,
            EventType.UNDERSTANDING_REQUESTED,
            EventType.RESEGMENT_REQUESTED,
            EventType.ARTIFACT_DELIVERED,
        ),
    ),
    action="ask again, name the run, or announce it again; at the limit fail the part with a message",
    repair=_repair,
    spends_run=True,
)
