"""Observing writes nothing, and its plan is what a repairing pass then does."""

from typing import Any

import pytest
from sqlalchemy.exc import ProgrammingError

from baton.db.access import Role
from baton.reconcilers.results import Guard, Mode
from support.reconciling import Loop

_TABLES = (
    "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
    " WHERE schemaname IN ('public', 'app', 'ops', 'agents', 'record', 'inbox') ORDER BY 1"
)


def _everything(loop: Loop) -> dict[str, Any]:
    tables = [row[0] for row in loop.matter.rows(_TABLES)]
    assert len(tables) > 20
    # with xmin: not even a row that was written as it was, or locked and released, goes unseen
    return {
        table: sorted(
            str(row) for row in loop.matter.rows(f"SELECT t.xmin::text, t.xmax::text, t::text FROM {table} t")
        )
        for table in tables
    }


def _trouble(loop: Loop) -> None:
    loop.consumers()
    loop.lost(4)
    for _ in range(2):
        document, _ = loop.queued()
        loop.erase_request(document)
    loop.age(loop.matter.document())
    loop.matter.registered()
    run = loop.matter.dispatch(loop.matter.document())
    loop.matter.prepare(
        "UPDATE agents.agent_run SET deadline_at = app.clock() - interval '1 day' WHERE run_id = :r", r=run
    )


def test_the_database_is_unchanged(loop: Loop) -> None:
    """Row by row, whatever there is to repair."""
    _trouble(loop)
    before = _everything(loop)
    result = loop.limited(scrub_rate=1000.0, scrub_slice=3).observe()
    assert result.total >= 8
    assert _everything(loop) == before


def test_the_role_could_not_write(loop: Loop) -> None:
    """Its own grants prove it: a repairing pass of the observer's fails at its first write, and changes nothing."""
    _trouble(loop)
    before = _everything(loop)
    reconciler = loop.reconciler(Mode.REPAIR)
    reconciler._engine = loop.database.engine(Role.OBSERVER)
    with pytest.raises(ProgrammingError, match="permission denied"):
        reconciler.run_once()
    assert _everything(loop) == before


def test_the_plan_is_what_a_repair_then_does(loop: Loop) -> None:
    """The same discrepancies on the same aspects of the same documents, by the same actions."""
    _trouble(loop)
    observed = loop.observe()
    planned = {
        (each.finding.document_id, each.finding.aspect.value, each.finding.name)
        for each in observed.plans
        if each.ready and each.finding.name != "run_lapsed"
    }
    assert len(planned) >= 7
    loop.repair()
    done = {(entry.document_id, entry.aspect, entry.discrepancy) for entry in loop.ledger()}
    assert done == planned


def test_the_plan_says_what_is_held_back(loop: Loop) -> None:
    """What a minute does not allow is planned as held, one by one; so is what a suspension holds."""
    loop.consumers()
    loop.lost(5)
    limited = loop.limited(repairs_per_minute=3)
    result = limited.observe()
    assert (sum(each.ready for each in result.plans), result.refused[Guard.RATE]) == (3, 2)
    loop.matter.prepare(
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (gen_random_uuid(), 'suspension', 'r', 'ops')"
    )
    assert loop.observe().refused[Guard.SUSPENDED] == 5


def test_its_cursors_are_kept_in_the_process(loop: Loop) -> None:
    """Slice after slice, over several passes, the whole table is walked without a row written."""
    for _ in range(5):
        loop.matter.document()
    watched = loop.limited(scrub_rate=100_000.0, scrub_slice=2, backstop_rows=1)
    reconciler = watched.reconciler(Mode.OBSERVE)
    scrubbed = sum(reconciler.run_once().scrubbed for _ in range(3))
    assert scrubbed >= 5
    assert loop.matter.count("ops.reconcile_state") == 0
