"""The table of dispatch, and the sweeper's, without a database."""

from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import pytest

from baton.contract.purposes import Purpose, SchemaName
from baton.db.states import RunState
from baton.runs.decisions import CLOSING, Decision, Phase, decide
from baton.runs.findings import Rejected
from baton.runs.rows import Run
from baton.runs.sweeper import Move
from baton.runs.sweeper import decide as decide_sweep
from baton.settings.agents import Runs

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_run(state: RunState = RunState.PENDING, *, left: float = 100.0, accepted: bool = False) -> Run:
    """A run with so many seconds to its deadline."""
    return Run(
        run_id=UUID(int=1),
        firm_id=UUID(int=2),
        document_id=UUID(int=3),
        extraction_run_id=UUID(int=4),
        attempt=1,
        purpose=Purpose.CLASSIFY,
        result_schema=SchemaName.CLASSIFICATION_V1,
        state=state,
        ticket_id=5,
        traceparent=None,
        invoke_count=1,
        created_at=NOW,
        accepted_at=NOW if accepted else None,
        deadline_at=NOW,
        result_key="agent-runs/x/artifact.json",
        seconds_left=left,
    )


TABLE = [
    # live, current, phase, run → decision
    (False, True, Phase.ASKED, None, Decision.DELETED),
    (False, True, Phase.RUNNING, a_run(), Decision.DELETED),
    (True, True, Phase.OTHER, None, Decision.MOVED_ON),
    (True, False, Phase.OTHER, a_run(RunState.DELIVERED), Decision.MOVED_ON),
    (True, False, Phase.ASKED, None, Decision.STALE),
    (True, False, Phase.RUNNING, a_run(), Decision.STALE),
    (True, True, Phase.ASKED, None, Decision.MINT),
    (True, True, Phase.RUNNING, a_run(), Decision.INVOKE_AGAIN),
    (True, True, Phase.RUNNING, a_run(accepted=True), Decision.STAND_DOWN),
    (True, True, Phase.RUNNING, a_run(left=0.0), Decision.TAKE_OVER),
    (True, True, Phase.RUNNING, a_run(left=-1.0, accepted=True), Decision.TAKE_OVER),
    (True, True, Phase.RUNNING, None, Decision.LEAVE_TO_APPLY),
    *(
        (True, True, Phase.RUNNING, a_run(state, left=left), Decision.LEAVE_TO_APPLY)
        for state, left in product(set(RunState) - {RunState.PENDING}, (100.0, -100.0))
    ),
]


@pytest.mark.parametrize(("live", "current", "phase", "run", "decision"), TABLE)
def test_the_table_of_dispatch(live: bool, current: bool, phase: Phase, run: Run | None, decision: Decision) -> None:
    """What stands under the lock has exactly one answer."""
    assert decide(live=live, current=current, phase=phase, run=run) is decision


def test_every_decision_is_in_the_table_and_either_acts_or_closes() -> None:
    """The set is closed, and none of it is forgotten."""
    assert {row[-1] for row in TABLE} == set(Decision)
    assert set(Decision) - set(CLOSING) == {Decision.MINT, Decision.INVOKE_AGAIN, Decision.TAKE_OVER}


LIMITS = Runs(deadline=900, upload_slack=60, storage_patience=86_400)


@pytest.mark.parametrize(
    ("left", "found", "failed", "move"),
    [
        (-1, None, False, Move.WAIT),
        (-60, None, False, Move.WAIT),
        (-61, None, False, Move.EXPIRE),
        (-61, None, True, Move.WAIT),
        (-86_399, None, True, Move.WAIT),
        (-86_401, None, True, Move.EXPIRE),
        (500, Rejected("c", "m"), False, Move.SETTLE),
        (-90_000, Rejected("c", "m"), False, Move.SETTLE),
        (500, None, False, Move.WAIT),
        (500, None, True, Move.WAIT),
    ],
)
def test_the_table_of_the_sweeper(left: float, found: Rejected | None, failed: bool, move: Move) -> None:
    """What is there is settled; absence counts past the slack, a failing store only past its patience."""
    assert decide_sweep(a_run(left=left), found, store_failed=failed, limits=LIMITS) is move
