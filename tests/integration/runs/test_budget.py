"""Budget and breaker hold a run back before it costs anything: no receive, no attempt, no money."""

import threading
from datetime import timedelta

import pytest

from baton.db.access import Role
from baton.db.states import Outcome, Part, RegistrationStatus
from baton.runs import budget
from baton.telemetry.labels import DispatchOutcome
from support.dispatching import Desk
from support.scripted_agent import ScriptedAgent, accept
from support.transactions import Second


def guard(desk: Desk, **columns: object) -> None:
    """Set the guard's row."""
    desk.matter.prepare(
        f"UPDATE ops.dispatch_guard SET {', '.join(f'{name} = :{name}' for name in columns)}", **columns
    )


def wait_of(desk: Desk, ticket_id: int) -> float:
    """Seconds until a ticket is due."""
    statement = "SELECT extract(epoch FROM not_before - app.clock()) FROM ops.document_ingest_outbox WHERE id = :id"
    return float(desk.matter.rows(statement, id=ticket_id)[0][0])


def test_an_exhausted_budget_postpones_the_request(desk: Desk) -> None:
    """The next generation waits, this ticket is closed, and neither a run nor an attempt is spent."""
    desk = desk.limited(hourly_budget=1)
    first, second = desk.queued(), desk.queued()
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(first, agent.url).outcome is DispatchOutcome.INVOKED
        done = desk.dispatch(second, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.HELD_BACK, None)
    document = desk.matter.read(second.document_id)
    assert (document.registration_status, document.registration_attempt) == (RegistrationStatus.QUEUED, 1)
    assert desk.runs(document.id) == []
    assert desk.matter.reload(second).outcome is Outcome.REPLACED
    successor = desk.newest_ticket(document.id)
    assert (successor.id, successor.generation) == (document.registration_ticket_id, 2)
    assert 3500 < wait_of(desk, successor.id) < 3660 * 1.25
    assert len(agent.invocations) == 1
    assert desk.spent() == 1


def test_what_was_postponed_goes_on_when_the_hour_is_over(desk: Desk) -> None:
    """The budget looks back on one hour by the database's clock."""
    desk = desk.limited(hourly_budget=1)
    first, second = desk.queued(), desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(first, agent.url)
        desk.dispatch(second, agent.url)
        desk.database.move_clock(3661)
        successor = desk.sent(desk.newest_ticket(second.document_id))
        assert desk.dispatch(successor, agent.url).outcome is DispatchOutcome.INVOKED


def test_the_lower_of_two_limits_holds(desk: Desk) -> None:
    """The guard's row, which all replicas share, can only tighten the setting."""
    desk = desk.limited(hourly_budget=100)
    guard(desk, runs_per_hour=0)
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.HELD_BACK
    assert agent.invocations == []


def test_an_open_breaker_postpones_until_its_time(desk: Desk) -> None:
    """A dark agent costs neither receives nor money; the wait is the breaker's own."""
    ticket = desk.queued()
    desk.matter.prepare("UPDATE ops.dispatch_guard SET breaker = 'open', retry_at = app.clock() + interval '200 s'")
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.HELD_BACK
    assert agent.invocations == []
    assert 190 < wait_of(desk, desk.newest_ticket(ticket.document_id).id) <= 250


def test_an_open_breaker_whose_time_has_come_waits_for_the_reconcilers(desk: Desk) -> None:
    """Dispatch never moves the breaker by itself, nor does it ask again in a hot loop."""
    ticket = desk.queued()
    desk.matter.prepare("UPDATE ops.dispatch_guard SET breaker = 'open', retry_at = app.clock() - interval '1 s'")
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.HELD_BACK
    assert wait_of(desk, desk.newest_ticket(ticket.document_id).id) > 25


def test_a_request_that_is_held_back_again_and_again_waits_longer(desk: Desk) -> None:
    """Where nobody can say when, the waits double up to the longest: tickets are rows, and rows are not free."""
    guard(desk, breaker="trial", trial_runs_left=0)
    ticket = desk.queued()
    waits = []
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        for _ in range(5):
            dispatcher.dispatch(ticket)
            ticket = desk.sent(desk.newest_ticket(ticket.document_id))
            waits.append(wait_of(desk, ticket.id))
    assert agent.invocations == []
    for wait, least in zip(waits, (30, 30, 40, 80, 80), strict=True):
        assert least - 5 < wait < least * 1.25


def test_a_breaker_on_trial_lets_its_trial_runs_through(desk: Desk) -> None:
    """So many, and no more."""
    guard(desk, breaker="trial", trial_runs_left=1)
    first, second = desk.queued(), desk.queued()
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(first, agent.url).outcome is DispatchOutcome.INVOKED
        assert desk.dispatch(second, agent.url).outcome is DispatchOutcome.HELD_BACK


def test_a_lapsed_run_that_may_not_be_replaced_is_left_to_the_sweeper(desk: Desk) -> None:
    """It stays pending, the document stays registering, and the sweeper, which costs nothing, ends it."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        guard(desk, breaker="open")
        desk.database.move_clock(961)
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.HELD_BACK, None)
    assert [run.state for run in desk.runs(ticket.document_id)] == ["pending"]
    assert desk.sweeper().run_once().expired == 1


def test_a_run_that_was_made_is_invoked_again_whatever_the_breaker_says(desk: Desk) -> None:
    """It is paid for already."""
    ticket = desk.queued()
    with ScriptedAgent([lambda asked: asked.send(500, b""), accept]) as agent:
        desk.dispatch(ticket, agent.url)
        guard(desk, breaker="open", runs_per_hour=0)
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.INVOKED_AGAIN


def test_parts_are_held_back_alike(desk: Desk) -> None:
    """Cards, sections and briefs are paid runs too."""
    guard(desk, runs_per_hour=0)
    ticket = desk.part_asked(Part.CARD)
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.HELD_BACK
    part = desk.matter.part(ticket.document_id, Part.CARD)
    successor = desk.newest_ticket(ticket.document_id, "document.understanding.requested")
    assert (part.state, part.attempt, part.ticket_id) == ("requested", 1, successor.id)


def test_a_mint_that_is_rolled_back_has_cost_nothing(desk: Desk) -> None:
    """The spend is written in the transaction that mints."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        connection = desk.database.engine(Role.REGISTRAR).connect()
        with connection.begin() as transaction:
            assert dispatcher._decide(connection, ticket).run is not None
            transaction.rollback()
        connection.close()
    assert (desk.spent(), desk.runs(ticket.document_id)) == (0, [])


def test_a_limit_is_kept_exactly_between_two_that_ask_at_once(desk: Desk) -> None:
    """The second waits for the first one's commit and counts it."""
    limits = desk.limited(hourly_budget=1).limits
    with desk.database.engine(Role.REGISTRAR).begin() as first:
        assert isinstance(budget.ask(first, limits=limits), budget.Granted)
        second = Second(desk.database, lambda c: budget.ask(c, limits=limits))
        second.start()
        second.wait_until_blocked_by(first)
    answer = second.result()
    assert isinstance(answer, budget.Refused)
    assert answer.why is budget.Why.BUDGET
    assert timedelta(minutes=59) < answer.wait <= timedelta(minutes=61)


def test_old_spend_is_swept_away(desk: Desk) -> None:
    """The table stays as small as two hours."""
    desk.matter.prepare(
        "INSERT INTO ops.agent_spend SELECT date_trunc('minute', app.clock()) - make_interval(mins => i), 1"
        " FROM generate_series(1, 600) i"
    )
    with desk.database.engine(Role.REGISTRAR).begin() as connection:
        budget.ask(connection, limits=desk.limits)
    assert desk.matter.count("ops.agent_spend") <= 122


@pytest.mark.parametrize("workers", [4])
def test_many_at_once_stay_inside_the_limit(desk: Desk, workers: int) -> None:
    """Eight documents and a budget of three: three runs, five that wait."""
    desk = desk.limited(hourly_budget=3)
    tickets = [desk.queued() for _ in range(8)]
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        left = list(tickets)
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    if not left:
                        return
                    ticket = left.pop()
                dispatcher.dispatch(ticket)

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert len(agent.taken) == 3
    assert desk.spent() == 3
