"""The breaker: a dark agent costs neither receives nor attempts nor money, and trial runs decide when it is back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import event
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.reconcilers.results import Guard
from baton.runs import breaker
from baton.runs.breaker import State
from baton.runs.dispatch import Dispatcher
from baton.runs.inputs import Inputs
from baton.runs.invocation import AgentClient
from baton.settings.agents import Agent, Breaker, Runs
from baton.settings.secret import Secret
from baton.telemetry.labels import DispatchOutcome
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.matters import Matter, turn
from support.reconciling import Loop
from support.scripted_agent import TOKEN, ScriptedAgent, accept

CONFIG = Breaker(window_runs=8, min_runs=4, cooldown=300.0, trial_runs=3)
LIMITS = Runs(deadline=900.0, upload_slack=60.0)


class Switch:
    """A matter whose runs end as they are told to, and the breaker that judges them."""

    def __init__(self, matter: Matter, config: Breaker = CONFIG) -> None:
        self.matter = matter
        self.config = config

    def ends(self, *states: str) -> None:
        """One run for each state."""
        for state in states:
            run = self.matter.dispatch(self.matter.document())
            if state == "delivered":
                self.matter.deliver(run, turn())
            else:
                self.matter.prepare(
                    "UPDATE agents.agent_run SET state = :state, settled_at = app.clock() WHERE run_id = :run",
                    state=state,
                    run=run,
                )

    def judge(self, role: Role = Role.RECONCILER) -> State:
        """What it is now."""
        with self.matter.database.engine(role).begin() as connection:
            return breaker.judge(connection, config=self.config, limits=LIMITS)

    def open(self) -> None:
        """Open it."""
        self.ends(*["expired"] * 4)
        assert self.judge() is State.OPEN

    def on_trial(self) -> None:
        """Open it, and let its cool-down pass."""
        self.open()
        self.matter.database.move_clock(301)
        assert self.judge() is State.TRIAL


@pytest.fixture
def switch(database: Database) -> Switch:
    """A breaker that is closed."""
    return Switch(Matter(database, uuid7(), uuid7()))


@pytest.mark.parametrize("state", ["rejected", "expired", "undispatched"])
def test_half_of_the_runs_failing_opens_it(switch: Switch, state: str) -> None:
    """In whichever way they fail."""
    switch.ends("delivered", "delivered", state)
    assert switch.judge() is State.CLOSED
    switch.ends(state)
    assert switch.judge() is State.OPEN


def test_few_runs_say_nothing(switch: Switch) -> None:
    """Three failures of three are no outage."""
    switch.ends("expired", "expired", "expired")
    assert switch.judge() is State.CLOSED


def test_runs_that_were_superseded_say_nothing(switch: Switch) -> None:
    """They were replaced; the agent is not to blame."""
    switch.ends(*["superseded"] * 6, "delivered", "delivered", "delivered", "expired")
    assert switch.judge() is State.CLOSED


def test_more_runs_than_the_window_holds_count_where_they_are_of_its_time(switch: Switch) -> None:
    """All of the last ten minutes; afterwards only the last few."""
    switch.ends(*["expired"] * 3, *["delivered"] * 9)
    assert switch.judge() is State.CLOSED
    switch.matter.database.move_clock(700)
    switch.ends(*["expired"] * 4)
    assert switch.judge() is State.OPEN, "of the last eight, four failed"


@pytest.mark.parametrize(("hours", "then"), [(0.5, State.OPEN), (5, State.OPEN), (23, State.OPEN), (25, State.CLOSED)])
def test_where_little_happens_the_last_runs_of_a_day_count(switch: Switch, hours: float, then: State) -> None:
    """However few of them are of the last minutes."""
    switch.ends(*["expired"] * 4)
    switch.matter.database.move_clock(hours * 3600)
    assert switch.judge() is then


def test_the_runs_are_asked_about_once(switch: Switch) -> None:
    """Though neither the last minutes nor the last hours have enough of them."""
    switch.ends("delivered")
    switch.matter.database.move_clock(20 * 3600)
    said = []
    event.listen(
        switch.matter.database.engine(Role.RECONCILER),
        "before_cursor_execute",
        lambda _c, _cursor, statement, *_: said.append(statement),
    )
    assert switch.judge() is State.CLOSED
    assert len([each for each in said if "agent_run" in each]) == 1


def test_it_stays_open_until_its_cool_down_is_over(switch: Switch) -> None:
    """Then it goes on trial, with its runs to grant."""
    switch.open()
    switch.matter.database.move_clock(299)
    assert switch.judge() is State.OPEN
    switch.matter.database.move_clock(301)
    assert switch.judge() is State.TRIAL
    assert switch.matter.rows("SELECT trial_runs_left FROM ops.dispatch_guard")[0][0] == 3


def test_a_majority_of_trial_runs_closes_it(switch: Switch) -> None:
    """And what failed before it closed does not open it again."""
    switch.on_trial()
    switch.ends("delivered")
    assert switch.judge() is State.TRIAL
    switch.ends("expired", "delivered")
    assert switch.judge() is State.CLOSED
    assert switch.judge() is State.CLOSED


def test_trial_runs_that_fail_open_it_again(switch: Switch) -> None:
    """For another cool-down."""
    switch.on_trial()
    switch.ends("undispatched", "undispatched")
    assert switch.judge() is State.OPEN
    switch.matter.database.move_clock(590)
    assert switch.judge() is State.OPEN
    switch.matter.database.move_clock(602)
    assert switch.judge() is State.TRIAL


def test_a_run_from_before_the_trial_decides_nothing(switch: Switch) -> None:
    """What was minted earlier may deliver late, or expire; the agent of now is what is asked about."""
    runs = [switch.matter.dispatch(switch.matter.document()) for _ in range(CONFIG.trial_runs)]
    switch.on_trial()
    for run in runs:
        switch.matter.deliver(run, turn())
    assert switch.judge() is State.TRIAL


def test_trial_runs_that_come_to_nothing_are_granted_anew(switch: Switch) -> None:
    """Deleted with their documents, they would leave the breaker on trial for ever."""
    switch.on_trial()
    switch.matter.prepare("UPDATE ops.dispatch_guard SET trial_runs_left = 0")
    switch.ends("superseded", "superseded", "superseded")
    assert switch.judge() is State.TRIAL
    switch.matter.database.move_clock(301 + 2 * 960 + 1)
    switch.judge()
    assert switch.matter.rows("SELECT trial_runs_left FROM ops.dispatch_guard")[0][0] == 3


def test_a_reason_of_another_kind_opens_it_too(switch: Switch) -> None:
    """Once; it is not opened again while it is open."""
    with switch.matter.database.engine(Role.RECONCILER).begin() as connection:
        assert breaker.trip(connection, reason="900 new discrepancies", config=CONFIG)
        assert not breaker.trip(connection, reason="900 new discrepancies", config=CONFIG)
    assert switch.judge() is State.OPEN


def test_a_jump_of_discrepancies_opens_it_once(database: Database) -> None:
    """More new trouble than the cap; the same trouble seen again does not open it again."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop = replace(loop, settings=replace(loop.settings, breaker=replace(CONFIG, discrepancy_cap=3)), _kept={})
    loop.consumers()
    held = loop.limited(repairs_per_minute=0)
    held.repair()
    loop.lost(3)
    held.repair()
    assert _state(database) == "closed"
    loop.lost(4)
    held.repair()
    assert _state(database) == "open"
    with database.preparer.begin() as connection:
        connection.exec_driver_sql("UPDATE ops.dispatch_guard SET breaker = 'closed'")
    held.repair()
    assert _state(database) == "closed"


def test_trouble_that_stands_for_longer_than_the_window_is_no_longer_new(database: Database) -> None:
    """Twice within it is a jump; what came before it is where the counting begins."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop = replace(loop, settings=replace(loop.settings, breaker=replace(CONFIG, discrepancy_cap=3)), _kept={})
    held = loop.limited(repairs_per_minute=0)
    loop.consumers()
    loop.lost(3)
    held.repair()
    database.move_clock(CONFIG.window_time + 1)
    loop.consumers()
    held.repair()
    loop.lost(3)
    held.repair()
    assert _state(database) == "closed"
    loop.lost(1)
    held.repair()
    assert _state(database) == "open"


def test_once_trouble_is_healed_as_much_of_it_is_new_again(database: Database) -> None:
    """The counting begins at what there is, as soon as it is less."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop = replace(loop, settings=replace(loop.settings, breaker=replace(CONFIG, discrepancy_cap=3)), _kept={})
    held = loop.limited(repairs_per_minute=0)
    loop.consumers()
    loop.lost(4)
    held.repair()
    assert _state(database) == "open"
    with database.preparer.begin() as connection:
        connection.exec_driver_sql("UPDATE ops.dispatch_guard SET breaker = 'closed'")
    assert [loop.repair().found.total() for _ in range(2)] == [4, 0]
    loop.lost(4)
    held.repair()
    assert _state(database) == "open"


def test_a_jump_stops_the_very_pass_that_sees_it(database: Database) -> None:
    """Nothing that costs a run is repaired beyond what was repaired before the cap was passed; what costs none still is."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop = replace(loop, settings=replace(loop.settings, breaker=replace(CONFIG, discrepancy_cap=6)), _kept={})
    loop.consumers()
    loop.repair()
    loop.lost(8)
    result = loop.repair()
    assert (_state(database), result.repaired, result.refused[Guard.BREAKER]) == ("open", 0, 8)
    with database.preparer.begin() as connection:
        connection.exec_driver_sql("UPDATE ops.dispatch_guard SET breaker = 'closed'")
    result = loop.repair()
    assert (_state(database), result.repaired) == ("closed", 8), "the same trouble is not new"


def test_an_observer_opens_nothing(database: Database) -> None:
    """It sees the jump, and leaves the breaker to those that may write."""
    loop = Loop(Matter(database, uuid7(), uuid7()))
    loop = replace(loop, settings=replace(loop.settings, breaker=replace(CONFIG, discrepancy_cap=1)), _kept={})
    loop.consumers()
    loop.lost(4)
    assert loop.observe().total == 4
    assert _state(database) == "closed"


# in dispatch


@contextmanager
def _dispatcher(desk: Desk, url: str, config: Breaker = CONFIG) -> Iterator[Dispatcher]:
    engine = desk.database.engine(Role.REGISTRAR)
    with AgentClient(Agent(url=url, token=Secret(TOKEN), connect_timeout=0.5, read_timeout=1.0)) as agent:
        yield Dispatcher(
            engine,
            agent=agent,
            inputs=Inputs(engine, desk.store, limits=desk.limits),
            limits=desk.limits,
            breaker_config=config,
        )


@pytest.fixture
def desk(database: Database, aws: AwsAccount) -> Desk:
    """A matter with a store."""
    return Desk(Matter(database, uuid7(), uuid7()), aws)


def test_a_dark_agent_stops_dispatch_within_the_set_number_of_runs(desk: Desk) -> None:
    """Without any reconciler: the dispatch that sees the fourth refusal opens it, and the rest wait unspent."""
    tickets = [desk.queued() for _ in range(12)]
    with _dispatcher(desk, "http://127.0.0.1:9") as dispatcher:
        outcomes = [dispatcher.dispatch(ticket).outcome for ticket in tickets]
    assert outcomes == [DispatchOutcome.AGENT_AWAY] * 4 + [DispatchOutcome.HELD_BACK] * 8
    assert desk.spent() == 4
    attempts = {desk.matter.read(ticket.document_id).registration_attempt for ticket in tickets}
    assert attempts == {1}


def test_many_dispatchers_at_once_overshoot_by_their_number_at_most(desk: Desk) -> None:
    """What is on its way when the breaker opens is all that is spent beyond."""
    tickets = [desk.queued() for _ in range(24)]
    lock = threading.Lock()

    def work(dispatcher: Dispatcher) -> None:
        while True:
            with lock:
                if not tickets:
                    return
                ticket = tickets.pop()
            dispatcher.dispatch(ticket)

    with _dispatcher(desk, "http://127.0.0.1:9") as dispatcher:
        threads = [threading.Thread(target=work, args=(dispatcher,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert 4 <= desk.spent() <= 8


def test_dispatch_alone_brings_the_breaker_round(desk: Desk) -> None:
    """When the cool-down is over, tickets that come by put it on trial, and delivered runs close it."""
    tickets = [desk.queued() for _ in range(8)]
    with _dispatcher(desk, "http://127.0.0.1:9") as dispatcher:
        for ticket in tickets:
            dispatcher.dispatch(ticket)
    assert _state(desk.database) == "open"
    desk.database.move_clock(301)
    with ScriptedAgent([accept]) as agent, _dispatcher(desk, agent.url) as dispatcher:
        for _ in range(3):
            for ticket in tickets:
                dispatcher.dispatch(desk.sent(desk.newest_ticket(ticket.document_id)))
            for run in desk.matter.rows("SELECT run_id FROM agents.agent_run WHERE state = 'pending'"):
                desk.matter.deliver(run[0], turn())
    assert _state(desk.database) == "closed"
    assert len(agent.invocations) == 8


def _state(database: Database) -> str:
    with database.preparer.connect() as connection:
        return str(connection.exec_driver_sql("SELECT breaker FROM ops.dispatch_guard").scalar_one())
