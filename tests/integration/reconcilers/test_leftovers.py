"""Tickets that nothing waits for any more are closed, and hold nobody up; what is waited for never is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from baton.db.access import Role
from baton.db.states import PartState, RegistrationStatus
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import classify
from baton.reconcilers.graces import graces
from baton.reconcilers.lanes import LaneState
from support.reconciling import Loop
from support.situations import Axis, Combination, PartOf, Writer, lanes, write

RESTING = dict.fromkeys(("card", "sections", "brief"), PartOf("ready"))
#: A registered document whose card waits behind nothing of its own.
REGISTERED = Combination(
    status="registered",
    axis=Axis(run="delivered", letter="handled"),
    parts={"card": PartOf("requested", Axis(ticket="passed_by")), "sections": PartOf(), "brief": PartOf()},
)


def wrote(loop: Loop, given: Combination) -> UUID:
    """The document's id."""
    with loop.database.preparer.begin() as connection:
        now = connection.exec_driver_sql("SELECT app.clock()").scalar_one()
        writer = Writer(now)
        last = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM ops.document_ingest_outbox").scalar_one()
        writer.begin_after(int(last))
        (written,) = write(connection, writer, [given])
    return written.id


def emptied(loop: Loop) -> None:
    """Both queues were seen empty, again and again, and somebody polls."""
    loop.consumers(since=7200.0)
    for minutes in (12, 9, 6):
        loop.matter.prepare(
            "INSERT INTO ops.lane_reading (lane, at, visible, in_flight, delayed)"
            " SELECT lane, app.clock() - make_interval(mins => :minutes), 0, 0, 0"
            " FROM unnest(ARRAY['ingest', 'registrar']) lane",
            minutes=minutes,
        )


def tickets(loop: Loop, document: UUID) -> list[Any]:
    """The document's tickets, in order: event type, outcome, and whether it was ever sent."""
    return loop.matter.rows(
        "SELECT event_type, outcome, dispatched_at IS NOT NULL FROM ops.document_ingest_outbox"
        " WHERE document_id = :id ORDER BY id",
        id=document,
    )


def outcomes(loop: Loop, document: UUID) -> list[str | None]:
    """The outcomes of the document's tickets, in order."""
    return [row.outcome for row in tickets(loop, document)]


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(replace(REGISTERED, axis=Axis(run="delivered", letter="passed_by")), id="a letter"),
        pytest.param(replace(REGISTERED, axis=Axis(ticket="released")), id="a request"),
    ],
)
def test_what_is_left_over_and_lost_holds_nothing_up(loop: Loop, left: Combination) -> None:
    """An older ticket that nothing waits for is closed in one pass; the ticket behind it, which is lost too, is asked for
    again in the next, and not only when the queue's retention is over.
    """
    document = wrote(loop, left)
    emptied(loop)
    result = loop.repair()
    assert (result.total, result.repaired, result.left_over) == (0, 0, 1)
    assert outcomes(loop, document) == ["stale", None]
    assert loop.ledger() == []
    result = loop.repair()
    assert dict(result.found) == {"understanding_stalled": 1}
    assert outcomes(loop, document) == ["stale", "replaced", None]
    assert loop.repair().left_over == 0


def test_what_is_left_over_is_not_shown_again(loop: Loop) -> None:
    """Lost, released, older than the retention or parked: afterwards no index over open tickets shows a document at
    rest; nor one that was deleted, whatever it had been waiting for.
    """
    made = [
        Combination(status="registered", axis=Axis(ticket=life, run="delivered", letter=life), parts=RESTING)
        for life in ("passed_by", "released", "retained", "parked")
    ]
    deleted = (
        replace(made[0], deleted=True),
        Combination(deleted=True, status="queued", axis=Axis(ticket="passed_by")),
        Combination(deleted=True, processing="uploaded", ingest="released"),
    )
    documents = [wrote(loop, each) for each in (*made, *deleted)]
    emptied(loop)
    assert loop.limited(backstop_rows=0).repair().judged == len(documents)
    for _ in range(2):  # what stood behind another is lost now
        loop.limited(backstop_rows=0).repair()
    assert {outcome for document in documents for outcome in outcomes(loop, document)} == {"stale"}
    assert loop.limited(backstop_rows=0).repair().judged == 0


@pytest.mark.parametrize("life", ["waiting", "held", "undispatched", "dead", "handled"])
def test_what_may_still_be_handled_is_left_alone(loop: Loop, life: str) -> None:
    """On its way, with a worker, or a person's: nobody closes it."""
    left = Axis(ticket=life, run="delivered", letter=life)
    document = wrote(loop, Combination(status="registered", axis=left, parts=RESTING))
    emptied(loop)
    before = tickets(loop, document)
    assert loop.repair().left_over == 0
    assert tickets(loop, document) == before


def test_nothing_is_closed_where_nobody_consumes_or_repairs_are_held(loop: Loop) -> None:
    """A stalled lane has lost nothing; a suspension holds back whatever writes; an observing pass writes nothing, nor does one
    whose resource does not work here.
    """
    document = wrote(loop, replace(REGISTERED, axis=Axis(run="delivered", letter="released")))
    assert loop.repair().left_over == 0
    loop.consumers(since=7200.0)
    assert loop.observe().left_over == 0
    loop.matter.prepare(
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (gen_random_uuid(), 'suspension', 'r', 'ops')"
    )
    assert loop.repair().left_over == 0
    assert outcomes(loop, document) == [None, None]
    loop.matter.prepare("UPDATE ops.maintenance SET lifted_at = app.clock()")
    assert loop.limited(resource="another").repair().left_over == 0
    assert loop.repair().left_over == 1


def test_a_document_that_live_work_holds_is_left_for_the_next_pass(loop: Loop) -> None:
    """Nobody waits for it, and it waits for nobody."""
    wrote(loop, replace(REGISTERED, axis=Axis(run="delivered", letter="passed_by")))
    emptied(loop)
    with loop.database.engine(Role.REGISTRAR).begin() as connection:
        connection.execute(text("SELECT id FROM documents FOR NO KEY UPDATE"))
        assert loop.repair().left_over == 0
    assert loop.repair().left_over == 1


@pytest.mark.parametrize("part", [None, "card"])
def test_back_to_asked_for_closes_what_announced_the_runs(loop: Loop, part: str | None) -> None:
    """A run that is not named any more has a letter on its way: once the aspect is asked for again it is pointless."""
    running = Axis(run="delivered", run_mark="foreign", letter="waiting")
    given = (
        Combination(status="registering", axis=running)
        if part is None
        else replace(REGISTERED, parts={**REGISTERED.parts, part: PartOf("running", running)})
    )
    document = wrote(loop, given)
    assert loop.repair().repaired == 1
    assert loop.ledger()[0].action == "requeued"
    letters = [row.outcome for row in tickets(loop, document) if row.event_type == "document.artifact.delivered"]
    assert letters == (["replaced"] if part is None else ["stale", "replaced"])


@pytest.mark.parametrize("part", [None, "card"])
def test_a_visible_failure_closes_everything_of_its_aspect(loop: Loop, part: str | None) -> None:
    """Requests, and the letters of all its runs, whichever of them was named."""
    running = Axis(ticket="waiting", run="delivered", run_mark="foreign", letter="waiting")
    given = (
        Combination(status="registering", axis=running)
        if part is None
        else replace(REGISTERED, parts={**REGISTERED.parts, part: PartOf("running", running)})
    )
    document = wrote(loop, given)
    assert loop.limited(max_attempts=0).repair().repaired == 1
    assert loop.ledger()[0].action == "failed"
    if part is None:
        assert loop.matter.read(document).registration_status is RegistrationStatus.REGISTRATION_FAILED
    else:
        states = loop.matter.rows("SELECT state FROM record.understanding_part WHERE part = :part", part=part)
        assert states[0][0] == PartState.FAILED
    unsent = [row for row in tickets(loop, document) if row.outcome is None]
    assert [(row.event_type, row[2]) for row in unsent] == (
        [] if part is None else [("document.understanding.requested", False)]
    ), "only what the chain asks for next is open"


def test_closing_changes_no_verdict_but_that_of_what_stood_behind(loop: Loop) -> None:
    """Whatever is left over, the answers before and after are the same, or what waited turns out to be lost."""
    documents = [
        wrote(loop, replace(REGISTERED, axis=Axis(ticket=life, run="delivered", letter=life)))
        for life in ("passed_by", "released", "retained", "parked", "waiting", "held")
    ]
    emptied(loop)
    with loop.database.preparer.connect() as connection:
        now = connection.exec_driver_sql("SELECT app.clock()").scalar_one()
    known: dict[Any, LaneState] = dict(lanes(now, "emptied"))

    def verdicts() -> dict[UUID, dict[Aspect, str]]:
        with loop.database.engine(Role.OBSERVER).connect() as connection:
            found = classify(connection, documents, lanes=known, graces=graces(), now=now + timedelta(seconds=1))
        return {each: {aspect: verdict.name for aspect, verdict in of.items()} for each, of in found.items()}

    before = verdicts()
    assert loop.limited(repairs_per_minute=0).repair().left_over >= 5
    after = verdicts()
    for document in documents:
        for aspect, name in after[document].items():
            assert name == before[document][aspect] or (before[document][aspect], name) == (
                "waiting",
                "understanding_stalled",
            )


def test_a_left_over_of_an_earlier_pass_is_closed(loop: Loop) -> None:
    """A pass that ended leaves nothing open for ever, though no repair of the present one ever looks at it."""
    document = wrote(loop, Combination(status="registered", axis=Axis(ticket="blocked"), parts=RESTING))
    emptied(loop)
    passes = loop.matter.rows("SELECT DISTINCT extraction_run_id FROM ops.document_ingest_outbox")
    assert len(passes) == 2
    # one behind the other: in one pass where the index that shows the second is read later, else in two
    closed = [loop.repair().left_over for _ in range(3)]
    assert (sum(closed), closed[-1]) == (2, 0)
    assert outcomes(loop, document) == ["stale", "stale"]


def test_what_is_waited_for_is_never_closed(loop: Loop) -> None:
    """Lost requests and announcements whose repair has to wait for its minute stay open: they are what is repaired."""
    lost = Axis(run="delivered", letter="released")
    for given in (
        Combination(status="queued", axis=Axis(ticket="released")),
        Combination(status="registering", axis=lost),
        replace(REGISTERED, parts={**REGISTERED.parts, "card": PartOf("requested", Axis(ticket="released"))}),
        replace(REGISTERED, parts={**REGISTERED.parts, "card": PartOf("running", lost)}),
    ):
        wrote(loop, given)
    emptied(loop)
    result = loop.limited(repairs_per_minute=0).repair()
    assert (result.total, result.left_over) == (4, 0)
