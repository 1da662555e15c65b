"""Runs whose time is over are settled whether or not anybody announced anything."""

import threading

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, OperationalError

from baton.aws.faults import Service
from baton.contract.purposes import Purpose
from baton.db.access import Role
from baton.runs import messages
from baton.runs.rows import Run
from baton.settings.agents import Sweeper as SweeperSettings
from support.aws_answers import answered, failing
from support.dispatching import Desk
from support.matters import turn
from support.scripted_agent import ScriptedAgent, accept
from support.waiting import wait_until

PAST = 961
"""Seconds after which a run is past its deadline and the upload's slack."""


def accepted(desk: Desk, count: int = 1) -> list[Run]:
    """Runs that the agent has accepted, of a document each."""
    runs = []
    with ScriptedAgent([accept]) as agent:
        for _ in range(count):
            ticket = desk.queued()
            desk.dispatch(ticket, agent.url)
            runs.append(desk.run(desk.runs(ticket.document_id)[0].run_id))
    return runs


def state(desk: Desk, run: Run) -> str:
    """The run's state now."""
    return str(desk.run(run.run_id).state)


def tickets(desk: Desk, run: Run) -> int:
    """Artifact tickets of the run, in rows."""
    return desk.matter.count("ops.document_ingest_outbox", "run_id = :run", run=run.run_id)


def test_a_run_without_an_artifact_expires(desk: Desk) -> None:
    """Past deadline and slack it is settled with a sentence for a lawyer, and its one ticket."""
    (run,) = accepted(desk)
    desk.database.move_clock(PAST)
    swept = desk.sweeper().run_once()
    assert (swept.looked, swept.expired, swept.finished) == (1, 1, True)
    row = desk.runs(run.document_id)[0]
    assert (row.state, row.message) == ("expired", messages.EXPIRED)
    assert tickets(desk, run) == 1


def test_a_run_inside_the_slack_is_let_be(desk: Desk) -> None:
    """An upload that began before the deadline may still be under way."""
    (run,) = accepted(desk)
    desk.database.move_clock(930)
    desk.sweeper().run_once()
    assert state(desk, run) == "pending"


def test_an_artifact_that_nobody_announced_is_delivered(desk: Desk) -> None:
    """The artifact is looked for before the run is given up."""
    (run,) = accepted(desk)
    desk.put_artifact(run, turn())
    desk.database.move_clock(PAST)
    assert desk.sweeper().run_once().delivered == 1
    assert (state(desk, run), tickets(desk, run)) == ("delivered", 1)


def test_an_overdue_accepted_run_is_looked_at_early(desk: Desk) -> None:
    """Its artifact is found long before the deadline; without one it goes on, and is not looked at in every pass."""
    found, empty = accepted(desk, 2)
    desk.put_artifact(found, turn())
    sweeper = desk.sweeper(early_look=300.0)
    assert sweeper.run_once().looked == 0
    desk.database.move_clock(310)
    first, second = sweeper.run_once(), sweeper.run_once()
    assert (first.looked, first.delivered, first.waiting, second.looked) == (2, 1, 1, 0)
    assert (state(desk, found), state(desk, empty)) == ("delivered", "pending")


def test_where_nothing_was_announced_the_first_pass_looks_at_every_accepted_run(desk: Desk) -> None:
    """An artifact that came before the bucket was told to announce is found at once; the next pass is like any."""
    found, empty = accepted(desk, 2)
    desk.put_artifact(found, turn())
    sweeper = desk.sweeper(unannounced=True)
    first, second = sweeper.run_once(), sweeper.run_once()
    assert (first.looked, first.delivered, first.waiting, second.looked) == (2, 1, 1, 0)
    assert (state(desk, found), state(desk, empty)) == ("delivered", "pending")


def test_a_store_in_error_is_no_absence(desk: Desk) -> None:
    """The run stays pending and is looked for in the next pass."""
    (run,) = accepted(desk)
    desk.put_artifact(run, turn())
    desk.database.move_clock(PAST)
    with answered(desk.clients, Service.S3, "GetObject", failing(ConnectionError("away"))):
        swept = desk.sweeper().run_once()
    assert (swept.unanswered, swept.expired) == (1, 0)
    assert state(desk, run) == "pending"
    assert desk.sweeper().run_once().delivered == 1


def test_the_stores_patience_ends_a_day_after_the_deadline(desk: Desk) -> None:
    """Then the run expires with a reason of its own: no document waits for a store for ever."""
    (run,) = accepted(desk)
    desk.database.move_clock(900 + 86_401)
    with answered(desk.clients, Service.S3, "GetObject", failing(ConnectionError("away"))):
        assert desk.sweeper().run_once().expired == 1
    assert desk.runs(run.document_id)[0].message == messages.UNREADABLE_STORE


def test_a_delivery_between_look_and_lock_wins(desk: Desk) -> None:
    """The sweeper has seen nothing, a delivery commits, and only then the sweeper locks: the delivery stands."""
    (run,) = accepted(desk)
    desk.database.move_clock(PAST)
    done: list[bool] = []

    def deliver(_request: object) -> None:
        if not done:
            done.append(True)
            desk.matter.deliver(run.run_id, turn())

    with answered(desk.clients, Service.S3, "GetObject", deliver):
        swept = desk.sweeper().run_once()
    assert (swept.too_late, swept.expired) == (1, 0)
    assert (state(desk, run), tickets(desk, run)) == ("delivered", 1)


def test_runs_that_cannot_be_settled_hide_nobody(desk: Desk) -> None:
    """Pages go by key: rows in front whose artifact cannot be looked for do not keep the sweeper from the last one."""
    runs = accepted(desk, 5)
    last = max(runs, key=lambda run: (run.deadline_at, run.run_id))
    desk.put_artifact(last, turn())
    desk.database.move_clock(PAST)

    def refuse(request: object) -> object:
        if str(last.run_id) in request.url:  # type: ignore[attr-defined]
            return None
        raise ConnectionError("away")

    sweeper = desk.sweeper(batch_size=2)
    with answered(desk.clients, Service.S3, "GetObject", refuse):  # type: ignore[arg-type]
        passes = [sweeper.run_once(), sweeper.run_once()]
    assert [swept.finished for swept in passes] == [False, True]
    assert state(desk, last) == "delivered"


def test_a_failing_row_does_not_stop_the_others(desk: Desk) -> None:
    """Its error is counted, the pass goes on, and the next pass tries it again."""
    runs = accepted(desk, 3)
    desk.database.move_clock(PAST)
    broken = min(runs, key=lambda run: (run.deadline_at, run.run_id))
    desk.matter.prepare(
        "CREATE FUNCTION break_one() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.run_id::text = TG_ARGV[0] AND NEW.state = 'expired' THEN RAISE 'no'; END IF; RETURN NEW; END $$"
    )
    desk.matter.prepare(
        "CREATE TRIGGER break_one BEFORE UPDATE ON agents.agent_run FOR EACH ROW"
        f" EXECUTE FUNCTION break_one('{broken.run_id}')"
    )
    sweeper = desk.sweeper()
    swept = sweeper.run_once()
    assert (swept.failed, swept.expired) == (1, 2)
    desk.matter.prepare("DROP TRIGGER break_one ON agents.agent_run")
    assert sweeper.run_once().expired == 1


def test_a_database_that_goes_away_in_mid_pass_ends_the_pass_and_the_next_one_heals(desk: Desk) -> None:
    """The error comes out instead of being swallowed once a row; what was left is settled by the next pass."""
    runs = accepted(desk, 2)
    desk.database.move_clock(PAST)
    engine = desk.database.engine(Role.SETTLER)
    sweeper = desk.sweeper()
    cut = threading.Event()

    def cut_off(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "UPDATE agents.agent_run" in statement and not cut.is_set():
            cut.set()
            desk.matter.prepare(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'baton_settler'"
                " AND datname = current_database()"
            )

    event.listen(engine, "before_cursor_execute", cut_off)
    try:
        with pytest.raises(DBAPIError):
            sweeper.run_once()
    finally:
        event.remove(engine, "before_cursor_execute", cut_off)
    for _ in range(3):  # connections of the pool that were cut are noticed one by one
        try:
            sweeper.run_once()
        except OperationalError:
            continue
    assert [state(desk, run) for run in runs] == ["expired", "expired"]
    assert [tickets(desk, run) for run in runs] == [1, 1]


def test_two_sweepers_at_once_settle_each_run_once(desk: Desk) -> None:
    """Rows are counted: one ticket each."""
    runs = accepted(desk, 6)
    desk.database.move_clock(PAST)
    sweeping = [threading.Thread(target=desk.sweeper(batch_size=2).run_once) for _ in range(2)]
    for each in sweeping:
        each.start()
    for each in sweeping:
        each.join(60)
    assert [tickets(desk, run) for run in runs] == [1] * 6


def test_the_loop_sweeps_until_it_is_stopped(desk: Desk) -> None:
    """It sweeps at its interval, and ends as soon as it is told."""
    (run,) = accepted(desk)
    stop = threading.Event()
    sweeping = threading.Thread(target=desk.sweeper(interval=0.1).run, args=(stop,))
    sweeping.start()
    try:
        desk.database.move_clock(PAST)
        wait_until(lambda: state(desk, run) == "expired", 20)
    finally:
        stop.set()
        sweeping.join(20)
    assert not sweeping.is_alive()


def test_a_page_costs_what_it_finds(desk: Desk) -> None:
    """By its index, as the settler's role, under a generic plan: a page of due runs among many touches few buffers."""
    desk.matter.document()
    desk.matter.prepare(
        "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose, result_schema,"
        " deadline_at, result_key, state, settled_at)"
        " SELECT gen_random_uuid(), d.firm_id, d.id, d.extraction_run_id, 1, :purpose, 'registrar.classification.v1',"
        " app.clock() - make_interval(secs => i), 'k', 'expired', app.clock()"
        " FROM documents d, generate_series(1, 20000) i",
        purpose=Purpose.CLASSIFY.value,
    )
    desk.matter.prepare("ANALYZE agents.agent_run")
    statement, values = desk.sweeper(batch_size=100)._query()
    with desk.database.engine(Role.SETTLER).begin() as connection:
        connection.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
        compiled = statement.compile(connection, compile_kwargs={"render_postcompile": True})
        plan = connection.exec_driver_sql(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", compiled.construct_params(values)
        ).scalar_one()[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 60
    assert SweeperSettings().batch_size == 100
