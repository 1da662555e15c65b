"""A run far past its deadline that no settler has settled."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import agent_run
from baton.reconcilers import moves
from baton.reconcilers.aspects import PARTS, Aspect, Owner, Severity
from baton.reconcilers.candidates import by_index
from baton.reconcilers.conditions import is_running, run_is_pending, run_of
from baton.reconcilers.questions import NOW, word
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_r = agent_run.c

#: Pending runs whose deadline has passed, whatever has become of their documents: few, for settlers settle them.
PAST_DEADLINE = by_index(
    "run_deadline",
    agent_run,
    _r.state == word("pending"),
    document=_r.document_id,
    at=_r.deadline_at,
    identity=_r.run_id,
)


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return (
        is_running(s),
        Clause("its run is pending", run_is_pending(s)),
        Clause("the run's deadline has passed", run_of(s).c.deadline_at <= NOW),
    )


def _repair(case: Case) -> Repaired | None:
    return moves.settle(case)


RUN_LAPSED = Discrepancy(
    name="run_lapsed",
    aspects=(Aspect.REGISTRATION, *PARTS),
    meaning="the run is far past its deadline, and no settler has settled it",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(minutes=20),
    clauses=_clauses,
    since=lambda s: run_of(s).c.deadline_at,
    reads=frozenset(
        (
            "document.registration_status",
            "part.state",
            "document.registration_run_id",
            "part.run_id",
            "run.state",
            "run.deadline_at",
        )
    ),
    candidates=(PAST_DEADLINE,),
    action="look for the artifact, then settle the run as delivered, rejected or expired",
    repair=_repair,
    limited=False,
    looks_in_store=True,
    while_young=Owner.SWEEPER,
)
