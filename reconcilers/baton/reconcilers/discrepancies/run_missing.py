"""A document that is registering, and no run that could win it."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, or_

from baton.db.states import RunState
from baton.db.tables import documents
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.conditions import is_running, run_mark, run_of
from baton.reconcilers.questions import among, word
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_d = documents.c
#: States of a run that will never have anything to say.
SILENT = (RunState.SUPERSEDED, RunState.UNDISPATCHED)


def no_run(s: Situation) -> ColumnElement[bool]:
    """Nothing that is named can win: no run, a silent one, or no mark."""
    run = run_of(s).c
    return or_(run_mark(s).is_(None), run.run_id.is_(None), among(run.state, SILENT))


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return is_running(s), Clause("its run is not there, not named, superseded or was never dispatched", no_run(s))


def repair(case: Case) -> Repaired | None:
    """Name the run of this pass that may still win; where there is none, back to asked for."""
    if case.exhausted:
        return moves.fail(case)
    run = None if moves.winning_run(case) is not None else moves.newest_run(case)
    if run is not None and run.state not in SILENT:
        return moves.adopt_run(case, run.run_id)
    return moves.requeue(case)


RUN_MISSING = Discrepancy(
    name="run_missing",
    aspects=(Aspect.REGISTRATION,),
    meaning="registration is registering, and no run that is named could end it",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: s.document.c.registration_status_since,
    reads=frozenset(
        (
            "document.registration_status",
            "document.registration_status_since",
            "document.registration_run_id",
            "run.run_id",
            "run.state",
        )
    ),
    candidates=(
        by_index(
            "m_run_missing",
            documents,
            _d.registration_status == word("registering"),
            _d.registration_run_id.is_(None),
            _d.deleted_at.is_(None),
            document=_d.id,
            at=_d.registration_status_since,
            identity=_d.id,
        ),
    ),
    action="name the run of the pass that may still win; else back to queued with the next generation",
    repair=repair,
    spends_run=True,
)
