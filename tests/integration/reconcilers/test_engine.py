"""A pass finds what is lost, puts it right once, writes it down, and isolates what fails."""

import threading
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import event, text

from baton.db.access import Role
from baton.db.connect import database_engine, read_connection
from baton.db.states import Part
from baton.reconcilers import glance, limits, repairs
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import Effect, Guard, Mode
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from support.reconciling import Loop


def test_a_lost_ticket_is_asked_for_again_once(loop: Loop) -> None:
    """One new generation, one row in the ledger that names it, and then nothing more is found."""
    loop.consumers()
    (document,) = loop.lost()
    result = loop.repair()
    assert dict(result.found) == {"request_stalled": 1}
    assert dict(result.effects) == {("request_stalled", Effect.REPAIRED): 1}
    (entry,) = loop.ledger()
    found = loop.matter.read(document)
    assert (entry.document_id, entry.firm_id, entry.ticket_id) == (
        document,
        loop.matter.firm,
        found.registration_ticket_id,
    )
    assert (entry.aspect, entry.discrepancy, entry.result) == ("registration", "request_stalled", "repaired")
    assert loop.generations(document) == [1, 2]
    again = loop.repair()
    assert (again.total, again.repaired) == (0, 0)


def test_what_no_mark_shows_is_found_by_the_backstop(loop: Loop) -> None:
    """A ticket that was handled without its effect stands in no index, and is found all the same."""
    loop.consumers()
    document, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() - interval '2 hours', handled_at ="
        " app.clock() - interval '1 hour', outcome = 'done' WHERE id = :id",
        id=ticket.id,
    )
    assert loop.limited(backstop_rows=0).repair().total == 0
    assert loop.repair().repaired == 1
    assert loop.generations(document) == [1, 2]


def test_what_is_in_no_open_state_is_found_by_the_scrub(loop: Loop) -> None:
    """Neither index nor backstop shows it; whatever they say, every document is judged within one period."""
    healthy = loop.matter.registered()
    document = loop.without_parts()
    result = loop.repair()
    assert (result.total, loop.ledger()) == (0, [])
    reconciler = loop.limited(backstop_rows=0, scrub_rate=100_000.0, scrub_slice=1).reconciler()
    scrubbed = 0
    while scrubbed < 2:  # a slice is due every hundred-thousandth second
        scrubbed += reconciler.run_once().scrubbed
    assert [len(loop.ledger(each)) for each in (healthy, document)] == [0, 1]
    assert loop.matter.part(document, Part.CARD).state == "requested"


def test_a_document_that_live_work_holds_is_left_for_the_next_pass(loop: Loop) -> None:
    """Nobody waits: the others are repaired, and the held one is once it is free."""
    loop.consumers()
    held, free = loop.lost(2)
    with loop.database.engine(Role.REGISTRAR).begin() as connection:
        connection.execute(text("SELECT id FROM documents WHERE id = :id FOR NO KEY UPDATE"), {"id": held})
        result = loop.repair()
    assert (result.repaired, result.refused[Guard.LOCKED]) == (1, 1)
    assert loop.generations(free) == [1, 2]
    assert loop.repair().repaired == 1
    assert loop.generations(held) == [1, 2]


def test_a_row_that_fails_is_undone_alone(loop: Loop) -> None:
    """The rest of its batch is repaired; the failure stands in the ledger and counts as an attempt."""
    loop.consumers()
    broken, *others = loop.lost(4)
    loop.matter.prepare(
        "CREATE FUNCTION app.planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$;"
        f" CREATE TRIGGER planted BEFORE INSERT ON ops.document_ingest_outbox FOR EACH ROW"
        f" WHEN (NEW.document_id = '{broken}') EXECUTE FUNCTION app.planted()"
    )
    result = loop.repair()
    assert (result.repaired, result.errors) == (3, 1)
    assert loop.generations(broken) == [1]
    assert [loop.generations(each) for each in others] == [[1, 2]] * 3
    assert [entry.result for entry in loop.ledger(broken)] == ["error"]
    loop.matter.prepare("DROP TRIGGER planted ON ops.document_ingest_outbox")
    assert loop.repair().repaired == 1


def test_a_repair_that_changes_nothing_is_no_repair(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is undone and counted as an error."""
    loop.consumers()
    (document,) = loop.lost()
    real = repairs.Repairer._carry_out

    def idle(self: Any, connection: Any, planned: Any, *args: Any, **named: Any) -> Any:
        with connection.begin_nested() as undone:
            done = real(self, connection, planned, *args, **named)
            undone.rollback()
        return done

    monkeypatch.setattr(repairs.Repairer, "_carry_out", idle)
    result = loop.repair()
    assert (result.repaired, result.errors) == (0, 1)
    assert loop.generations(document) == [1]


def test_one_repair_that_changes_nothing_undoes_no_other(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are judged together; the rest of its batch is repaired all the same, once."""
    loop.consumers()
    broken, *others = loop.lost(4)
    real = repairs.Repairer._carry_out

    def idle(self: Any, connection: Any, planned: Any, *args: Any, **named: Any) -> Any:
        with connection.begin_nested() as undone:
            done = real(self, connection, planned, *args, **named)
            if planned.finding.document_id == broken:
                undone.rollback()
        return done

    monkeypatch.setattr(repairs.Repairer, "_carry_out", idle)
    result = loop.repair()
    assert (result.repaired, result.errors) == (3, 1)
    assert [entry.result for entry in loop.ledger(broken)] == ["error"]
    assert loop.generations(broken) == [1]
    for document in others:
        (entry,) = loop.ledger(document)
        assert (entry.result, entry.ticket_id) == ("repaired", loop.matter.read(document).registration_ticket_id)
        assert loop.generations(document) == [1, 2]


def test_two_engines_at_once_repair_each_document_once(loop: Loop) -> None:
    """Each lost ticket gets exactly one successor, whoever was first."""
    loop.consumers()
    lost = loop.lost(40)
    results = []
    start = threading.Barrier(2)

    def work() -> None:
        reconciler = loop.limited(batch_size=5, page_size=10).reconciler()
        start.wait(10)
        results.append(reconciler.run_once())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    loop.repair()
    assert [loop.generations(each) for each in lost] == [[1, 2]] * 40
    assert len(loop.ledger()) == 40
    assert all(result.errors == 0 for result in results)


def test_rows_that_are_exempt_hide_nobody(loop: Loop) -> None:
    """Many that wait for their next turn stand before one that is lost for the first time: one pass finds it."""
    loop.consumers()
    waiting = loop.limited(backoff_initial=3600.0, backoff_max=3600.0, page_size=5, backstop_rows=0)
    exempt = loop.lost(30)
    assert waiting.repair().repaired == 30
    for document in exempt:
        loop.lose(loop.matter.read(document).registration_ticket_id or 0, ago=7200.0)
    (stuck,) = loop.lost()
    result = waiting.repair()
    assert (result.repaired, result.refused[Guard.BACKOFF]) == (1, 30)
    assert loop.generations(stuck) == [1, 2]


def test_a_pass_that_may_read_no_further_goes_on_there_the_next_time(loop: Loop) -> None:
    """The limit of a pass starves nobody."""
    loop.consumers()
    waiting = loop.limited(
        backoff_initial=3600.0, backoff_max=3600.0, page_size=5, page_limit=1, backstop_rows=0, max_attempts=50
    )
    for document in loop.lost(6):
        loop.matter.prepare(
            "INSERT INTO ops.registration_repair (firm_id, document_id, aspect, discrepancy, action, result,"
            " requested_by, extraction_run_id, detail) SELECT firm_id, id, 'registration', 'request_stalled', 'redrove',"
            " 'repaired', 'test', extraction_run_id, jsonb_build_object('round', extraction_run_id || ' attempt 1')"
            " FROM documents WHERE id = :id",
            id=document,
        )
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET first_received_at = first_received_at - interval '1 hour',"
        " hold_until = hold_until - interval '1 hour'"
    )
    (stuck,) = loop.lost()
    assert [waiting.repair().repaired for _ in range(3)].count(1) == 1
    assert loop.generations(stuck) == [1, 2]


def test_an_idle_pass_asks_each_index_once(loop: Loop) -> None:
    """With nothing to do a pass is a few dozen questions, and none is asked again and again."""
    loop.repair()
    asked: list[str] = []
    engine = loop.database.engine(Role.RECONCILER)
    event.listen(engine, "before_cursor_execute", lambda c, cursor, statement, *rest: asked.append(statement))
    loop.repair()
    assert len(asked) < 80
    assert max(asked.count(each) for each in asked) <= 4


@pytest.mark.parametrize("mode", Mode)
def test_what_every_pass_asks_is_prepared_once(loop: Loop, mode: Mode) -> None:
    """On an engine as the product connects: the second pass finds all that it asks prepared by the first."""
    role = Role.RECONCILER if mode is Mode.REPAIR else Role.OBSERVER
    engine = database_engine(loop.database.direct_url(role), application="test", pool_size=1)
    settings = Settings(reconcile=Reconcile(backstop_rows=0, scrub_rate=0.0))
    reconciler = Reconciler(engine, settings=settings, mode=mode)
    known = []
    try:
        for _ in range(2):
            reconciler.run_once()
            with read_connection(engine) as connection:
                known.append(set(connection.exec_driver_sql("SELECT name, statement FROM pg_prepared_statements")))
    finally:
        engine.dispose()
    assert known[0] == known[1]
    assert max(statement.count("(SELECT 1") for _, statement in known[0]) == len(glance._ASKED)


def test_repaired_is_what_changed(loop: Loop) -> None:
    """The ledger has exactly the documents whose rows are other than before."""
    lost = set(loop.lost(5))
    for _ in range(5):
        loop.queued()
    loop.consumers()
    before = dict(loop.matter.rows("SELECT id, documents::text FROM documents"))
    loop.repair()
    after = dict(loop.matter.rows("SELECT id, documents::text FROM documents"))
    changed = {each for each in after if after[each] != before[each]}
    assert changed == lost == {entry.document_id for entry in loop.ledger()}


def test_a_part_whose_run_is_neither_named_nor_announced_is_put_right_step_by_step(loop: Loop) -> None:
    """The run is named, then announced: two repairs, neither of which counts as one that changed nothing."""
    loop.consumers()
    document = loop.matter.registered()
    run = loop.matter.dispatch_part(document, Part.CARD)
    loop.matter.settle(run, "expired")
    loop.matter.prepare(
        "DELETE FROM ops.document_ingest_outbox WHERE run_id = :run AND event_type = 'document.artifact.delivered'",
        run=run,
    )
    loop.matter.prepare(
        "UPDATE agents.agent_run SET artifact_ticket_id = NULL, settled_at = app.clock() - interval '1 hour'"
        " WHERE run_id = :run",
        run=run,
    )
    loop.matter.prepare(
        "UPDATE record.understanding_part SET run_id = NULL, state_since = app.clock() - interval '2 hours'"
        " WHERE document_id = :id",
        id=document,
    )
    for action in ("adopted", "redrove"):
        assert dict(loop.repair().effects) == {("understanding_stalled", Effect.REPAIRED): 1}
        assert loop.ledger()[-1].action == action
    assert loop.matter.part(document, Part.CARD).run_id == run
    assert loop.repair().total == 0


def test_a_pending_run_of_a_deleted_document_is_found_before_its_deadline(loop: Loop) -> None:
    """By the backstop, in its turn: whoever deletes supersedes the run, so that this takes a hand or a bug."""
    documents = [loop.matter.document() for _ in range(6)]
    runs = [loop.matter.dispatch(each) for each in documents]
    loop.matter.prepare(
        "UPDATE documents SET deleted_at = app.clock() - interval '1 hour' WHERE id = ANY(:ids)", ids=documents[:4]
    )
    turns = [loop.limited(backstop_rows=2).repair() for _ in range(6)]
    assert sum((turn.effects for turn in turns), Counter()) == {("deleted_in_flight", Effect.REPAIRED): 4}
    states = dict(loop.matter.rows("SELECT run_id, state FROM agents.agent_run"))
    assert [states[run] for run in runs] == ["superseded"] * 4 + ["pending"] * 2


def test_a_run_for_a_part_of_a_deleted_document_is_superseded_too(loop: Loop) -> None:
    """Each part's own; that of a living document goes on."""
    documents = [loop.matter.registered() for _ in range(2)]
    runs = [loop.matter.dispatch_part(each, Part.CARD) for each in documents]
    loop.matter.prepare(
        "UPDATE documents SET deleted_at = app.clock() - interval '1 hour' WHERE id = :id", id=documents[0]
    )
    assert dict(loop.repair().effects) == {("deleted_in_flight", Effect.REPAIRED): 1}
    states = dict(loop.matter.rows("SELECT run_id, state FROM agents.agent_run"))
    assert [states[run] for run in runs] == ["superseded", "pending"]


def test_the_backstop_wastes_no_turn_on_what_was_deleted(loop: Loop) -> None:
    """A document that was deleted while it waited stays in its state for good; its turn is another's."""
    documents = [loop.queued()[0] for _ in range(3)]
    loop.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = ANY(:ids)", ids=documents[:2])
    assert loop.limited(backstop_rows=10).observe().judged == 1


def test_a_batch_that_fails_stops_no_other(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it fails for, unless the database is away: its documents count as errors, and are found again."""
    loop.consumers()
    documents = loop.lost(5)
    real, turns = limits.reserve, iter((True, False, False, False, False))

    def reserve(*given: Any, **named: Any) -> Any:
        if next(turns, False):
            raise ValueError("planted")
        return real(*given, **named)

    monkeypatch.setattr(limits, "reserve", reserve)
    result = loop.limited(batch_size=2).repair()
    assert (result.repaired, result.errors, result.failures) == (3, 2, [])
    assert loop.repair().repaired == 2
    assert [loop.generations(each) for each in documents] == [[1, 2]] * 5


def test_a_pass_that_is_told_to_stop_leaves_what_it_remembers_alone(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not seen everything: neither the level of discrepancies nor the time of the last whole pass is its to say."""
    loop.consumers()
    documents = loop.lost(4)
    limited = loop.limited(batch_size=1, repairs_per_minute=0)
    limited.repair()
    remembered = "SELECT name, value FROM ops.reconcile_state WHERE name IN ('level', 'pass') ORDER BY name"
    before = [tuple(row) for row in loop.matter.rows(remembered)]
    assert [name for name, _ in before] == ["level", "pass"]
    stop = threading.Event()
    real = repairs.Repairer.repair

    def repair(self: Any, *given: Any, **named: Any) -> Any:
        stop.set()
        return real(self, *given, **named)

    monkeypatch.setattr(repairs.Repairer, "repair", repair)
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET handled_at = app.clock(), outcome = 'done' WHERE document_id"
        " = ANY(:ids)",
        ids=documents[2:],
    )
    result = loop.limited(batch_size=1).reconciler().run_once(stop)
    assert (result.finished, result.repaired) == (False, 1)
    assert [tuple(row) for row in loop.matter.rows(remembered)] == before
