"""The agent is dark for an hour: nothing is spent on it beyond a set number of runs, and all ends without help."""

import time
from dataclasses import replace

import pytest
from uuid_utils.compat import uuid7

from baton.db.states import RegistrationStatus
from baton.settings.agents import Breaker
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.matters import Matter
from support.reconciling import Loop
from support.scripted_agent import ScriptedAgent, accept
from support.situations import Axis, Combination, Writer, write
from support.worlds import World

CONFIG = Breaker(min_runs=10, cooldown=300.0, trial_runs=3)
#: Turns of half an hour; each is longer than a cool-down, so that each has its trial.
TURNS, TURN = 2, 1800.0
#: Turns after which everything is registered: two trials at most, dispatch, and apply.
BACK = 12
#: Nothing listens there.
DARK = "http://127.0.0.1:9"

pytestmark = [pytest.mark.slow]


@pytest.fixture
def world(database: Database, aws: AwsAccount) -> World:
    """A world whose agent is dark."""
    database.prepares = True
    matter = Matter(database, uuid7(), uuid7())
    loop = Loop(matter)
    return World.around(
        Desk(matter, aws), replace(loop, settings=replace(loop.settings, breaker=CONFIG)), agent_url=DARK
    )


def queued(world: World, count: int) -> None:
    """Documents that are queued, with their tickets before the relay."""
    matter = world.desk.matter
    with matter.database.preparer.begin() as connection:
        writer = Writer(connection.exec_driver_sql("SELECT app.clock()").scalar_one())
        writer.firm = matter.firm
        write(connection, writer, [Combination(status="queued", axis=Axis(ticket="undispatched"))] * count)
        # as services leave them: an attempt is counted where registration is asked for
        connection.exec_driver_sql("UPDATE documents SET registration_attempt = 1")
        connection.exec_driver_sql("UPDATE ops.document_ingest_outbox SET attempt = 1")


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(120, marks=pytest.mark.timeout(600)),
        pytest.param(5000, marks=[pytest.mark.chaos, pytest.mark.timeout(1800)]),
    ],
)
def test_an_hour_without_the_agent_costs_a_set_number_of_runs_and_no_document(world: World, count: int) -> None:
    """The breaker opens after the tenth refusal and lets three trials through each time; no repair is made meanwhile, no
    attempt is spent, and once the agent is back every document is registered.
    """
    matter = world.desk.matter
    queued(world, count)
    began = time.monotonic()
    for _ in range(TURNS):
        world.turn(seconds=TURN)
        result = world.loop.repair()
        assert (result.total, result.repaired, result.failures) == (0, 0, [])
        assert matter.rows("SELECT breaker FROM ops.dispatch_guard")[0][0] != "closed"
    # one trial each time that a cool-down is over: between two turns, and as often as one passes within them
    trials = TURNS - 1 + (time.monotonic() - began) // CONFIG.cooldown
    assert CONFIG.min_runs < world.desk.spent() <= CONFIG.min_runs + CONFIG.trial_runs * trials
    assert world.loop.statuses() == {RegistrationStatus.QUEUED: count}
    assert matter.count("documents", "registration_attempt <> 1") == 0
    with ScriptedAgent([accept]) as agent:
        world.agent_url = agent.url
        for _ in range(BACK):
            world.turn(seconds=TURN)
            world.loop.repair()
            if world.loop.statuses() == {RegistrationStatus.REGISTERED: count}:
                break
    assert world.loop.statuses() == {RegistrationStatus.REGISTERED: count}
    assert matter.count("documents", "registration_attempt <> 1") == 0
    assert world.loop.ledger() == []
