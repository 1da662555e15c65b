"""A repairing process that dies leaves nothing half done, whichever statement of whichever repair it was at."""

from collections import Counter
from dataclasses import replace
from typing import Final

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.judging import findings, judge
from baton.reconcilers.repairs import Repairer
from baton.reconcilers.results import Finding, Mode
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.fuses import Crash, Fuse
from support.matters import Matter
from support.reconciling import Loop
from support.troubles import troubles, write_one

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

#: More statements than a batch of one has.
BOUND: Final = 120
#: The parts are alike; the first of them stands for the others.
ASPECTS: Final = (Aspect.INGEST, Aspect.REGISTRATION, Aspect.CARD)
#: Tried by every run of the tests; all the others by the chaos tests.
ALWAYS: Final = (("run_missing", Aspect.REGISTRATION), ("understanding_stalled", Aspect.CARD))
REPAIRED: Final = [
    pytest.param(name, aspect, id=f"{name}-{aspect}", marks=[] if (name, aspect) in ALWAYS else [pytest.mark.chaos])
    for name, row in DISCREPANCIES.items()
    if row.repair is not None
    for aspect in row.aspects
    if aspect in ASPECTS
]


@pytest.fixture
def loop(database: Database, aws: AwsAccount) -> Loop:
    """A loop with a store, on lanes that are consumed."""
    troubles()  # worked out once, which takes longer than a consumer may be silent where the machine is busy
    matter = Matter(database, uuid7(), uuid7())
    loop = Loop(matter, store=Desk(matter, aws).store).limited(repairs_per_minute=10_000)
    loop.consumers(since=1e6)
    return loop


def the_finding(loop: Loop, name: str, aspect: Aspect) -> Finding:
    """The one that is looked for, on the only document."""
    ground_of = loop.reconciler(Mode.OBSERVE).ground
    documents = [row[0] for row in loop.matter.rows("SELECT id FROM documents")]
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        ground = ground_of(connection)
        found = {
            (each.name, each.aspect): each
            for each in findings(judge(connection, documents, ground=ground), ground=ground)
        }
    return found[name, aspect]


@pytest.mark.parametrize(("name", "aspect"), REPAIRED)
def test_a_crash_at_any_step_of_any_repair_leaves_nothing_or_all_of_it(loop: Loop, name: str, aspect: Aspect) -> None:
    """No ticket, no mark, no run, no row of the ledger before the commit; then each of them once, whoever comes next; and
    passes come to rest on it, none of which repairs the same thing twice.
    """
    with loop.database.preparer.begin() as connection:
        write_one(connection, loop.matter, troubles()[name, aspect])
    finding = the_finding(loop, name, aspect)
    before = loop.everything()
    engine = loop.database.engine(Role.RECONCILER)
    fuse = Fuse(engine)
    repairer = Repairer(engine=engine, settings=loop.settings, store=loop.store, requested_by="test")
    with engine.connect() as connection:
        ground = loop.reconciler().ground(connection)
    crashed: list[str] = []
    for step in range(1, BOUND):
        fuse.light(step)
        try:
            done = repairer.repair([finding], ground=ground)
        except Crash:
            crashed.append(fuse.reached[-1])
            assert loop.everything() == before, f"something stands of a repair that crashed before {crashed[-1]}"
            continue
        break
    else:
        raise AssertionError("the repair never came to its end")
    fuse.light(0)
    assert [effect.value for _, effect in done.effects] == ["repaired"]
    assert crashed[-1] == "COMMIT"
    assert len(crashed) >= 8
    assert sum(each.startswith("INSERT INTO ops.registration_repair") for each in crashed) == 1
    assert [(entry.discrepancy, entry.aspect) for entry in loop.ledger()] == [(name, aspect)]
    # the process that died after the commit tells nobody: the next one finds the rest, and this no more
    for _ in range(12):
        result = replace(loop, _kept={}).repair()
        assert result.errors == 0
        if result.repaired == result.left_over == 0:
            break
    else:
        raise AssertionError("no rest")
    made = Counter((entry.aspect, entry.discrepancy, entry.detail["round"], entry.action) for entry in loop.ledger())
    assert set(made.values()) == {1}


@pytest.mark.chaos
def test_a_crash_of_one_pass_leaves_every_other_document_to_the_next(loop: Loop) -> None:
    """A whole pass over a document of each disagreement, dead at one step after the other: nothing is repaired twice."""
    with loop.database.preparer.begin() as connection:
        for each in troubles().values():
            last = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM ops.document_ingest_outbox")
            write_one(connection, loop.matter, each, after=int(last.scalar_one()))
    fuse = Fuse(loop.database.engine(Role.RECONCILER))
    step, crashed = 40, 0
    for _ in range(400):
        loop.matter.prepare("UPDATE ops.consumer_heartbeat SET polled_at = app.clock()")
        fuse.light(step)
        try:
            result = replace(loop, _kept={}).limited(batch_size=3).repair()
        except Crash:
            crashed += 1
            step += 37
            continue
        assert result.errors == 0
        if result.repaired == result.left_over == 0:
            break
        step += 37
    else:
        raise AssertionError("no rest")
    assert crashed >= 8
    made = Counter(
        (entry.document_id, entry.aspect, entry.discrepancy, entry.detail["round"], entry.action)
        for entry in loop.ledger()
    )
    assert set(made.values()) == {1}
    assert {entry.discrepancy for entry in loop.ledger()} >= {
        name for name, row in DISCREPANCIES.items() if row.repair is not None
    }
