"""What the loops' questions touch, under generic plans and as their own role: their index, and little else.

Fifty thousand documents at rest, with a hundred thousand tickets, and beside them thousands that wait as they should,
on the queue and for the relay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers import glance, resting
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.candidates import Candidates
from baton.reconcilers.classification import DISCREPANCIES, parameters, question
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.graces import graces
from baton.reconcilers.lanes import NEVER, OVERTAKEN_FOR, LaneState, first_question
from baton.reconcilers.results import Mode
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from support import atscale
from support.databases import Database
from support.plans import Plan, explain
from support.sickness import OF_EACH, sicken

pytestmark = pytest.mark.check

QUESTIONS = [
    pytest.param(candidates, name, id=f"{name}-{candidates.index}")
    for name, row in DISCREPANCIES.items()
    for candidates in row.candidates
]
RESTING, SENT, WRITTEN = 50_000, 8_000, 4_000
SICK = 100


@dataclass(frozen=True)
class Crowd:
    """The database, and what its loop knows."""

    database: Database
    now: datetime
    lanes: dict[Lane, LaneState]

    def first_page(self, name: str, candidates: Candidates) -> Plan:
        """Of one question."""
        horizon = candidates.bound.horizon(now=self.now, grace=DISCREPANCIES[name].grace, lanes=self.lanes)
        first: Any = 0 if candidates.by_number else UUID(int=0)
        values = {"horizon": horizon, "after_at": NEVER, "after_id": first, "page": 100}
        return explain(self.database, Role.RECONCILER, candidates.statement, values)

    def all_pages(self) -> Plan:
        """The first pages of all questions."""
        plans = [self.first_page(name, each) for name, row in DISCREPANCIES.items() for each in row.candidates]
        return sum(plans[1:], plans[0])


@pytest.fixture(scope="module")
def crowd(cluster: Any) -> Iterator[Crowd]:
    """In health."""
    database = cluster.create()
    try:
        atscale.load(database, RESTING)
        atscale.queue(database, SENT, sent=True)
        atscale.queue(database, WRITTEN, sent=False)
        engine = database.engine(Role.RECONCILER)
        with atscale.consumed(database), engine.connect() as connection:
            ground = Reconciler(engine, settings=Settings(), mode=Mode.REPAIR).ground(connection)
        yield Crowd(database, ground.now, dict(ground.lanes))
    finally:
        database.close()


@pytest.fixture(scope="module")
def sick(crowd: Crowd) -> Crowd:
    """The same with a hundred of each discrepancy; asked for after everything about health."""
    sicken(crowd.database, SICK)
    return crowd


@pytest.mark.parametrize(("candidates", "name"), QUESTIONS)
def test_in_health_a_question_costs_next_to_nothing(crowd: Crowd, candidates: Candidates, name: str) -> None:
    """With thousands waiting and many more at rest a question finds nothing in a dozen buffers, by its own index."""
    plan = crowd.first_page(name, candidates)
    assert f'"{candidates.index}"' in plan.text
    assert "Seq Scan" not in plan.text
    assert plan.rows == 0
    assert plan.buffers <= 12, plan.text


def test_one_look_at_all_of_them_stays_within_its_bound(crowd: Crowd) -> None:
    """All indexes at once, each by itself: no more than 200 buffers, and no table is read."""
    values = glance.values(now=crowd.now, graces=graces(), lanes=crowd.lanes)
    plan = explain(crowd.database, Role.RECONCILER, glance.question(), values)
    assert "Seq Scan" not in plan.text
    for row in DISCREPANCIES.values():
        for candidates in row.candidates:
            assert f'"{candidates.index}"' in plan.text
    assert plan.buffers <= 200, plan.text
    assert crowd.all_pages().buffers <= 200


def test_what_is_known_of_a_lane_costs_a_few_buffers(crowd: Crowd) -> None:
    """A queue hours long, whose consumers work at its beginning: what they received is not read to know that."""
    with crowd.database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        before = _touched(connection)
        engine = crowd.database.engine(Role.RECONCILER)
        with engine.connect() as asking:
            ground = Reconciler(engine, settings=Settings(), mode=Mode.OBSERVE).ground(asking)
            asking.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            asking.rollback()
            asking.exec_driver_sql("SELECT 1")
        assert _touched(connection) - before <= 60
    assert ground.lanes[Lane.REGISTRAR].alive
    assert ground.lanes[Lane.REGISTRAR].overtaken_before == NEVER


def test_whether_a_ticket_waits_is_never_asked_of_all_receipts(crowd: Crowd) -> None:
    """Not even where its own index has become so dear that the planner would rather do without: it is taken away here."""
    with crowd.database.preparer.connect() as connection:
        for statement in ("SET LOCAL enable_seqscan TO off", "DROP INDEX ops.o_open", "DROP INDEX ops.o_received"):
            connection.exec_driver_sql(statement)
        asked = first_question().compile(connection)
        values = {**asked.params, "now": crowd.now, "begin": crowd.now - OVERTAKEN_FOR}
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {asked}", values).scalars())
        connection.rollback()
    assert "document_ingest_outbox" in plan
    assert "o_received_brin" not in plan


def _touched(connection: Any) -> int:
    statement = (
        "SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) FROM pg_statio_user_tables"
        " WHERE relname = 'document_ingest_outbox'"
    )
    return int(connection.exec_driver_sql(statement).scalar_one())


@pytest.mark.parametrize("generic", [False, True])
def test_the_scrub_reads_a_slice_once(crowd: Crowd, generic: bool) -> None:
    """A thousand documents at rest: well below ten buffers each, and none of them is looked at closer but the deleted."""
    ids = next(atscale.identities(crowd.database, size=1000))
    values = parameters(lanes=crowd.lanes, graces=graces(), now=crowd.now) | {"document_ids": ids}
    plan = explain(crowd.database, Role.RECONCILER, resting.question(), values, generic=generic)
    assert "Seq Scan" not in plan.text
    assert plan.rows == len(ids) // 100
    assert plan.buffers <= 10 * len(ids)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("aspect", Aspect)
def test_judging_what_rests_costs_a_few_buffers_each(crowd: Crowd, aspect: Aspect, generic: bool) -> None:
    """A thousand documents: no table is read whole, and nothing is looked for that rest need not."""
    ids = next(atscale.identities(crowd.database, size=1000))
    values = parameters(lanes=crowd.lanes, graces=graces(), now=crowd.now) | {"document_ids": ids}
    plan = explain(crowd.database, Role.RECONCILER, question(aspect), values, generic=generic)
    assert "Seq Scan" not in plan.text.replace('"Relation Name": "dead_letter"', "")
    assert plan.buffers <= 10 * len(ids)


def test_cost_follows_what_is_wrong(sick: Crowd) -> None:
    """A hundred of each discrepancy: a page of each is within 2,500 buffers, by the same indexes, and shows all of them."""
    total = 0
    for name, row in DISCREPANCIES.items():
        for candidates in row.candidates:
            plan = sick.first_page(name, candidates)
            assert f'"{candidates.index}"' in plan.text
            assert "Seq Scan" not in plan.text.replace('"Relation Name": "dead_letter"', "")
            total += plan.buffers
    assert total <= 2_500
    engine = sick.database.engine(Role.OBSERVER)
    by_index = Settings(reconcile=Reconcile(backstop_rows=0, scrub_rate=0))
    found = Reconciler(engine, settings=by_index, mode=Mode.OBSERVE).run_once().found
    assert {name: found[name] for name in OF_EACH} == dict.fromkeys(OF_EACH, SICK)
