"""A settled run whose result no ticket announces."""

from __future__ import annotations

from datetime import timedelta

from baton.db.tables import agent_run
from baton.reconcilers import marks, moves
from baton.reconcilers.aspects import Aspect, Owner, Severity
from baton.reconcilers.conditions import is_running, is_settled, letter_missing, run_of
from baton.reconcilers.rows import Case, Clause, Discrepancy, Repaired
from baton.reconcilers.situation import Situation

_r = agent_run.c


def _clauses(s: Situation) -> tuple[Clause, ...]:
    return is_running(s), is_settled(s), Clause("no ticket announces it", letter_missing(s))


def _repair(case: Case) -> Repaired | None:
    return moves.fail(case) if case.exhausted else moves.announce(case)


ARTIFACT_UNOPENED = Discrepancy(
    name="artifact_unopened",
    aspects=(Aspect.REGISTRATION,),
    meaning="the run is settled, and no ticket announces its result",
    owner=Owner.RECONCILER,
    severity=Severity.WARNING,
    grace=timedelta(seconds=30),
    clauses=_clauses,
    since=lambda s: run_of(s).c.settled_at,
    reads=frozenset(("document.registration_status", "document.registration_run_id", "run.state"))
    | {"run.settled_at", "letter.id"},
    candidates=(marks.LETTER,),
    action="write the ticket",
    repair=_repair,
)
