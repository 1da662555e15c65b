"""Rows that somebody edited by hand: whatever they say, they hide nobody else, and no pass fails for them."""

from uuid import UUID

import pytest
from sqlalchemy import text

from baton.db.access import Role
from baton.db.states import Part
from baton.reconcilers import backstop, explain, gauges, jumps, scrub
from baton.reconcilers.memory import Private
from baton.reconcilers.results import Effect, Guard
from baton.runs import breaker
from support.reconciling import Loop
from support.waiting import wait_until

#: One for each column that is read of a document, a ticket or a run, as far as Postgres takes it and Python does not.
_MOMENTS = (
    "UPDATE documents SET registration_status_since = 'infinity'",
    "UPDATE documents SET processing_status_since = '-infinity'",
    "UPDATE documents SET created_at = '0044-03-15 BC'",
    "UPDATE documents SET deleted_at = 'infinity'",
    "UPDATE ops.document_ingest_outbox SET hold_until = 'infinity'",
    "UPDATE ops.document_ingest_outbox SET created_at = '20000-01-01', first_received_at = '-infinity', hold_until = NULL",
    "UPDATE ops.document_ingest_outbox SET handled_at = '-infinity', outcome = 'done'",
)
#: As a person would write it who means to come back to it.
_FOR_EVER = (
    "INSERT INTO ops.maintenance (id, kind, starts_at, ends_at, reason, set_by)"
    " VALUES (gen_random_uuid(), 'suspension', '-infinity', 'infinity', 'until I say otherwise', 'ops')"
)


def test_a_moment_that_only_postgres_knows_hides_no_other_document(loop: Loop) -> None:
    """``infinity`` and the years before 1 and after 9999 are read as the farthest moments; each neighbour is healed once."""
    loop.consumers()
    edited = loop.lost(len(_MOMENTS))
    others = loop.lost(3)
    for document, statement in zip(edited, _MOMENTS, strict=True):
        key = "id" if "UPDATE documents" in statement else "document_id"
        with loop.database.preparer.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = 'replica'"))  # past every trigger
            connection.execute(text(f"{statement} WHERE {key} = :id"), {"id": document})
    scrubbing = loop.limited(scrub_rate=100_000.0, scrub_slice=100)
    results = [scrubbing.repair() for _ in range(2)]
    assert [result.failures for result in results] == [[], []]
    assert [len(loop.ledger(document)) for document in others] == [1, 1, 1]
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        assert all(explain.explain(connection, each, settings=loop.settings) for each in edited)


@pytest.mark.parametrize(
    ("statement", "guard"),
    [
        (_FOR_EVER, Guard.SUSPENDED),
        ("UPDATE ops.dispatch_guard SET breaker = 'open', retry_at = 'infinity'", Guard.BREAKER),
    ],
)
def test_what_is_held_back_for_ever_is_held_back_and_no_pass_fails(loop: Loop, statement: str, guard: Guard) -> None:
    """An end that is ``infinity`` is no error; what waits for it asks again before a day is over."""
    loop.consumers()
    loop.lost(2)
    loop.matter.prepare(statement)
    result = loop.repair()
    assert (result.repaired, result.refused[guard], result.failures) == (0, 2, [])


@pytest.mark.parametrize(
    "written",
    [
        '"x"',
        "[]",
        '{"state": "uploaded", "at": "2026-01-01T00:00:00", "id": 5, "after": "zz", "count": "many", "completed_at": 7}',
        '{"state": ["x"], "at": null, "id": null, "after": 5, "count": null, "walked": "x", "began_at": "soon"}',
    ],
)
def test_a_cursor_that_makes_no_sense_begins_anew(loop: Loop, written: str) -> None:
    """Scrub, backstop and the breaker's level go on from the beginning, and the pass leaves them in order."""
    loop.consumers()
    loop.lost(2)
    for name in (backstop.NAME, scrub.NAME, jumps.NAME):
        loop.matter.prepare(
            "INSERT INTO ops.reconcile_state (name, value) VALUES (:name, CAST(:value AS jsonb))",
            name=name,
            value=written,
        )
    reconciler = loop.limited(scrub_rate=100_000.0, scrub_slice=1).reconciler()
    wait_until(lambda: reconciler.run_once().scrubbed == 2)
    result = reconciler.run_once()
    gauges.tell(loop.database.engine(Role.RECONCILER), result, memory=reconciler.memory)
    with loop.database.engine(Role.RECONCILER).connect() as connection:
        assert scrub.completed_at(connection, reconciler.memory) is not None
    assert (len(loop.ledger()), result.failures) == (2, [])


@pytest.mark.parametrize("backstop_rows", [0, 1000])
def test_a_document_that_cannot_be_judged_hides_no_other(loop: Loop, backstop_rows: int) -> None:
    """Arithmetic on its values fails in Postgres itself: it is told, and everything beside and behind it is healed."""
    loop.consumers()
    others = loop.lost(2)
    (edited,) = loop.lost()
    others += loop.lost(2)
    _out_of_range(loop, edited)
    result = loop.limited(page_size=1, backstop_rows=backstop_rows).repair()
    assert [len(loop.ledger(document)) for document in (*others, edited)] == [1, 1, 1, 1, 0]
    assert "judging" in result.failures


def test_a_slice_of_the_scrub_is_judged_but_for_the_one_that_cannot_be(loop: Loop) -> None:
    """What nothing but the scrub sees is found beside it all the same."""
    others = [loop.without_parts() for _ in range(3)]
    edited, _ = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = '294276-12-31 23:59:59', message_id = 'm'"
        " WHERE document_id = :id",
        id=edited,
    )
    reconciler = loop.limited(backstop_rows=0, scrub_rate=100_000.0, scrub_slice=5).reconciler()
    result = reconciler.run_once()
    while not result.scrubbed:  # the slice is due within a moment
        result = reconciler.run_once()
    assert (result.scrubbed, result.failures) == (4, ["judging"])
    assert [len(loop.ledger(document)) for document in (*others, edited)] == [1, 1, 1, 0]


def test_without_the_row_of_the_guard_what_costs_no_run_goes_on(loop: Loop) -> None:
    """Somebody deleted it: no run is granted and nothing that leads to one is repaired; all else is, and explained."""
    loop.consumers()
    (lost,) = loop.lost()
    document = loop.matter.document()
    loop.matter.deliver(loop.matter.dispatch(document))
    loop.matter.prepare(
        "UPDATE agents.agent_run SET artifact_ticket_id = NULL, settled_at = app.clock() - interval '1 hour';"
        " DELETE FROM ops.document_ingest_outbox WHERE event_type = 'document.artifact.delivered';"
        " DELETE FROM ops.dispatch_guard"
    )
    observed, result = loop.observe(), loop.repair()
    assert observed.refused[Guard.BREAKER] == result.refused[Guard.BREAKER] == 1
    assert [len(loop.ledger(each)) for each in (lost, document)] == [0, 1]
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        assert explain.explain(connection, lost, settings=loop.settings) is not None
    gauges.tell(loop.database.engine(Role.OBSERVER), result, memory=Private())
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert not breaker.trip(connection, reason="too much", config=loop.settings.breaker)
    loop.matter.prepare("INSERT INTO ops.dispatch_guard DEFAULT VALUES")
    assert loop.repair().repaired == 1


def test_what_was_under_way_for_another_pass_ends_with_it(loop: Loop) -> None:
    """In the repair itself: its ticket is closed as stale, and its run, which is paid for, is waited for no more."""
    queued, ticket = loop.queued()
    running = loop.matter.document()
    run = loop.matter.dispatch(running)
    loop.matter.prepare("UPDATE documents SET registration_pass = gen_random_uuid()")
    for document in (queued, running):
        loop.age(document)
    assert dict(loop.repair().effects) == {("pass_superseded", Effect.REPAIRED): 2}
    ended = "SELECT outcome FROM ops.document_ingest_outbox WHERE id = :id"
    assert loop.matter.rows(ended, id=ticket.id) == [("stale",)]
    assert loop.matter.rows("SELECT run_id, state FROM agents.agent_run") == [(run, "superseded")]
    assert loop.statuses() == {"not_requested": 2}


def _unnamed(loop: Loop, document: UUID) -> None:
    """The mark of the document's run is gone, and has been for long."""
    loop.matter.prepare("UPDATE documents SET registration_run_id = NULL WHERE id = :id", id=document)
    loop.age(document)


def test_of_several_runs_the_newest_is_the_one_that_is_named_again(loop: Loop) -> None:
    """An earlier one was taken over by it."""
    loop.consumers()
    document = loop.matter.document()
    loop.matter.settle(loop.matter.dispatch(document), "expired")
    newest = loop.matter.take_over(document)
    _unnamed(loop, document)
    assert loop.repair().repaired == 1
    assert loop.ledger()[-1].action == "adopted"
    assert loop.matter.read(document).registration_run_id == newest


def test_a_run_of_an_earlier_pass_is_never_named_again(loop: Loop) -> None:
    """Whatever it found, it found in another text: the present one is asked about anew."""
    loop.consumers()
    document = loop.matter.document()
    loop.matter.dispatch(document)
    loop.matter.prepare("UPDATE agents.agent_run SET extraction_run_id = gen_random_uuid()")
    _unnamed(loop, document)
    assert loop.repair().repaired == 1
    assert loop.ledger()[-1].action == "requeued"
    found = loop.matter.read(document)
    assert (found.registration_status, found.registration_run_id) == ("queued", None)


@pytest.mark.parametrize("of", ["another document", "another pass", "another part"])
def test_a_part_whose_mark_names_a_run_that_is_not_its_own_is_asked_for_again(loop: Loop, of: str) -> None:
    """That run's result is announced to nobody for it."""
    loop.consumers()
    document, other = loop.matter.registered(), loop.matter.registered()
    mine, its = (loop.matter.dispatch_part(each, Part.CARD) for each in (document, other))
    loop.matter.settle(its if of == "another document" else mine, "expired")
    loop.matter.prepare(
        "UPDATE record.understanding_part SET run_id = :run, state_since = app.clock() - interval '1 day'"
        " WHERE document_id = :id AND part = 'card'",
        run=its if of == "another document" else mine,
        id=document,
    )
    if of == "another pass":
        loop.matter.prepare(
            "UPDATE agents.agent_run SET extraction_run_id = gen_random_uuid() WHERE run_id = :run", run=mine
        )
    elif of == "another part":
        loop.matter.prepare("UPDATE agents.agent_run SET purpose = 'brief' WHERE run_id = :run", run=mine)
    else:
        loop.matter.prepare(
            "UPDATE agents.agent_run SET extraction_run_id = (SELECT extraction_run_id FROM documents WHERE id = :id)"
            " WHERE run_id = :run",
            id=document,
            run=its,
        )
    announced = "SELECT id FROM ops.document_ingest_outbox WHERE event_type = 'document.artifact.delivered' ORDER BY id"
    before = loop.matter.rows(announced)
    loop.repair()
    assert [entry.action for entry in loop.ledger(document)] == ["requeued"]
    assert loop.matter.rows(announced) == before


def _out_of_range(loop: Loop, document: UUID) -> None:
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET hold_until = '294276-12-31 23:59:59' WHERE document_id = :id",
        id=document,
    )
