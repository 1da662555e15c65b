"""From a request's ticket to an agent that has the run; every branch of the table, and every branch twice."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text
from uuid_utils.compat import uuid7

from baton.aws.faults import Service
from baton.contract.pages import PAGES_CONTENT_TYPE, parse_pages
from baton.contract.purposes import Purpose
from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import FailureKind, Outcome, Part, RegistrationStatus, RunState
from baton.registration import parts, service
from baton.runs import messages, rows
from baton.runs.inputs import pages_key
from baton.telemetry.labels import DispatchOutcome
from support.aws_answers import answered, failing
from support.dispatching import Desk
from support.scripted_agent import (
    ScriptedAgent,
    accept,
    accept_another,
    reset,
    silent,
    status,
    trickle_headers,
)

REGISTRATION = "document.registration.requested"
NOBODY = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


def test_a_queued_document_gets_one_run_and_the_agent_is_asked(desk: Desk) -> None:
    """The run is minted with its deadline and result key, the document is registering, the ticket is done."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.INVOKED, None)
    document = desk.matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTERING
    run = desk.run(document.registration_run_id)
    assert (run.state, run.invoke_count, run.ticket_id) == (RunState.PENDING, 1, ticket.id)
    assert run.accepted_at is not None
    assert 890 < run.seconds_left <= 900
    assert desk.matter.reload(ticket).outcome is Outcome.DONE
    assert desk.spent() == 1


def test_the_invocation_points_and_never_tells(desk: Desk) -> None:
    """It holds presigned addresses of text and result and names of the matter's documents: no content, and no id."""
    other = desk.matter.document("Exhibit 7.pdf")
    desk.matter.sibling().document("another matter.pdf")
    ticket = desk.queued(pages=("Confidential words.", "More."))
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
    invocation, headers = agent.invocations[0], agent.headers[0]
    document = desk.matter.read(ticket.document_id)
    run = desk.run(document.registration_run_id)
    assert headers["authorization"].startswith("Bearer ")
    assert headers["traceparent"].startswith("00-")
    assert (invocation.run_id, invocation.purpose) == (run.run_id, Purpose.CLASSIFY)
    assert [candidate.name for candidate in invocation.context.candidates] == ["Exhibit 7.pdf"]
    assert (invocation.context.file_name, invocation.context.page_count) == ("letter.pdf", 2)
    assert invocation.result_delivery.deadline == run.deadline_at
    assert invocation.result_delivery.headers["If-None-Match"] == "*"
    assert run.result_key in invocation.result_delivery.url
    pages = desk.store.read(pages_key(run), limit=10_000)
    assert [page.text for page in parse_pages(pages, content_type=PAGES_CONTENT_TYPE)] == [
        "Confidential words.",
        "More.",
    ]
    body = invocation.body().decode()
    assert "Confidential" not in body
    for identity in (document.id, document.firm_id, document.matter_id, other):
        assert str(identity) not in body


def test_a_pass_that_is_another_documents_brings_its_own_text(desk: Desk) -> None:
    """Whoever works for a firm may write a pass into a row: the agent is given what that row's document says, and no
    other firm's text that was put into the store under the same pass.
    """
    theirs = desk.queued(pages=("Privileged.",))
    other = replace(desk, matter=desk.matter.sibling(firm=uuid4()))
    mine = other.queued(pages=("Mine.",))
    tampered = desk.matter.read(theirs.document_id).extraction_run_id
    for statement in (
        "UPDATE document_page SET extraction_run_id = :pass WHERE document_id = :id",
        "UPDATE documents SET extraction_run_id = :pass, registration_pass = :pass WHERE id = :id",
        "UPDATE ops.document_ingest_outbox SET extraction_run_id = :pass WHERE document_id = :id",
    ):
        with desk.database.preparer.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
            connection.execute(text(statement), {"pass": tampered, "id": mine.document_id})
    with ScriptedAgent([accept, accept]) as agent:
        desk.dispatch(theirs, agent.url)
        other.dispatch(mine, agent.url)
    run = desk.run(desk.matter.read(mine.document_id).registration_run_id)
    assert run.extraction_run_id == tampered
    read = [httpx.get(each.inputs[0].url).json()["pages"][0]["text"] for each in agent.invocations]
    assert read == ["Privileged.", "Mine."]


def test_the_first_invocation_is_counted_before_it_is_made(desk: Desk) -> None:
    """While the agent is being asked, the count is committed: a crash then is known to be ambiguous."""
    ticket = desk.queued()
    counts: list[int] = []

    def peek(asked: object) -> None:
        counts.append(desk.runs(ticket.document_id)[0].invoke_count)
        status(503)(asked)  # type: ignore[arg-type]

    with ScriptedAgent([peek]) as agent:
        desk.dispatch(ticket, agent.url)
    assert counts == [1]


@pytest.mark.parametrize("code", [400, 409, 422])
def test_a_definite_refusal_fails_the_document_visibly(desk: Desk, code: int) -> None:
    """The run was never dispatched; the document says why, and nobody asks again by himself."""
    ticket = desk.queued()
    with ScriptedAgent([status(code)]) as agent:
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.REFUSED, None)
    document = desk.matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTRATION_FAILED
    assert (document.failure_kind, document.registration_message) == (FailureKind.AGENT_REFUSED, messages.REFUSED)
    assert document.next_attempt_at is None
    assert [(run.state, run.invoke_count) for run in desk.runs(document.id)] == [("undispatched", 1)]


@pytest.mark.parametrize("code", [401, 403, 404, 429, 503])
def test_an_agent_that_does_not_serve_costs_no_attempt(desk: Desk, code: int) -> None:
    """Its first answer sends the document back to queued, with the next generation of the ticket some time later."""
    ticket = desk.queued()
    with ScriptedAgent([status(code)]) as agent:
        done = desk.dispatch(ticket, agent.url)
    assert_taken_back(desk, ticket.document_id, done.outcome, done.again)


def test_no_connection_costs_no_attempt(desk: Desk) -> None:
    """Nothing was sent, so nothing was taken."""
    ticket = desk.queued()
    done = desk.dispatch(ticket, NOBODY)
    assert_taken_back(desk, ticket.document_id, done.outcome, done.again)


def test_a_store_that_is_away_costs_no_attempt(desk: Desk) -> None:
    """The invocation could not be prepared and was never sent."""
    ticket = desk.queued()
    with (
        ScriptedAgent([accept]) as agent,
        answered(desk.clients, Service.S3, "PutObject", failing(ConnectionError("away"))),
    ):
        done = desk.dispatch(ticket, agent.url)
    assert agent.invocations == []
    assert_taken_back(desk, ticket.document_id, done.outcome, done.again, invokes=0)


def assert_taken_back(
    desk: Desk, document_id: object, outcome: DispatchOutcome, again: timedelta | None, *, invokes: int = 1
) -> None:
    """The document is queued as before, and exactly one successor of its ticket waits."""
    assert (outcome, again) == (DispatchOutcome.AGENT_AWAY, None)
    document = desk.matter.read(document_id)  # type: ignore[arg-type]
    assert document.registration_status is RegistrationStatus.QUEUED
    assert document.registration_attempt == 1
    assert [(run.state, run.invoke_count) for run in desk.runs(document.id)] == [("undispatched", invokes)]
    assert desk.tickets(document.id, REGISTRATION) == 2
    again_ticket = desk.newest_ticket(document.id)
    assert (again_ticket.id, again_ticket.generation) == (document.registration_ticket_id, 2)
    assert again_ticket.undispatched
    wait = desk.matter.rows(
        "SELECT extract(epoch FROM not_before - app.clock()) FROM ops.document_ingest_outbox WHERE id = :id",
        id=again_ticket.id,
    )[0][0]
    assert 8 < wait <= 10


def test_an_agent_that_names_its_wait_is_not_asked_before(desk: Desk) -> None:
    """A Retry-After that is longer than our own wait is kept, up to the longest wait."""
    ticket = desk.queued()
    with ScriptedAgent([status(429, Retry_After="45")]) as agent:
        desk.dispatch(ticket, agent.url)
    wait = desk.matter.rows(
        "SELECT extract(epoch FROM not_before - app.clock()) FROM ops.document_ingest_outbox WHERE id = :id",
        id=desk.newest_ticket(ticket.document_id).id,
    )[0][0]
    assert 40 < wait <= 45


@pytest.mark.parametrize(
    "answer",
    [status(500), status(502), status(504), status(200, b"yes"), status(302), accept_another, reset],
    ids=["500", "502", "504", "wrong body", "redirect", "wrong run", "reset"],
)
def test_an_ambiguous_answer_keeps_the_run_and_asks_it_again(desk: Desk, answer: object) -> None:
    """Perhaps the agent took it: the same run id is invoked again, and no second run is paid for."""
    ticket = desk.queued()
    with ScriptedAgent([answer, accept]) as agent:  # type: ignore[list-item]
        first = desk.dispatch(ticket, agent.url)
        second = desk.dispatch(ticket, agent.url)
    assert first.again == timedelta(seconds=10)
    assert (second.outcome, second.again) == (DispatchOutcome.INVOKED_AGAIN, None)
    assert len({invocation.run_id for invocation in agent.invocations}) == 1
    assert [(run.state, run.invoke_count) for run in desk.runs(ticket.document_id)] == [("pending", 2)]
    assert desk.spent() == 1


@pytest.mark.parametrize("answer", [silent, trickle_headers], ids=["silent", "trickling"])
def test_an_agent_that_drags_on_is_cut_off(desk: Desk, answer: object) -> None:
    """Silent or trickling, a call ends within its bound and is ambiguous."""
    ticket = desk.queued()
    with ScriptedAgent([answer]) as agent:  # type: ignore[list-item]
        done = desk.dispatch(ticket, agent.url, patience=0.3)
    assert done.again is not None
    assert [run.state for run in desk.runs(ticket.document_id)] == ["pending"]


@pytest.mark.parametrize("code", [401, 422, 429, 503])
def test_a_refusal_after_an_earlier_invocation_proves_nothing(desk: Desk, code: int) -> None:
    """The run that was perhaps taken is neither withdrawn nor failed."""
    ticket = desk.queued()
    with ScriptedAgent([reset, status(code), accept]) as agent:
        desk.dispatch(ticket, agent.url)
        refused = desk.dispatch(ticket, agent.url)
        assert refused.again is not None
        assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING
        desk.dispatch(ticket, agent.url)
    assert [(run.state, run.invoke_count) for run in desk.runs(ticket.document_id)] == [("pending", 3)]


def test_the_last_wait_ends_just_past_the_deadline(desk: Desk) -> None:
    """An ambiguous run is looked at again when it has lapsed, however long the waits have grown."""
    desk = desk.limited(deadline=5.0)
    ticket = desk.queued()
    with ScriptedAgent([status(500)]) as agent:
        done = desk.dispatch(ticket, agent.url)
    assert done.again is not None
    assert timedelta(seconds=3) < done.again <= timedelta(seconds=6)


def test_doubt_holds_up_the_documents_group_for_a_minute_at_most(desk: Desk) -> None:
    """The artifact of a call whose answer was lost waits behind this message in the FIFO group."""
    desk = desk.limited(retry_initial=500.0, retry_max=500.0)
    ticket = desk.queued()
    with ScriptedAgent([status(500)]) as agent:
        assert desk.dispatch(ticket, agent.url).again == timedelta(seconds=60)


def test_an_accepted_run_inside_its_deadline_makes_dispatch_stand_down(desk: Desk) -> None:
    """A redelivery asks nobody, mints nothing, and lets its message go."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.STOOD_DOWN, None)
    assert len(agent.invocations) == 1
    assert len(desk.runs(ticket.document_id)) == 1


def test_a_lapsed_run_is_superseded_inside_dispatch(desk: Desk) -> None:
    """Past the deadline a redelivery settles the old run, spends an attempt and mints another."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        desk.database.move_clock(901)
        done = desk.dispatch(ticket, agent.url)
    assert done.outcome is DispatchOutcome.TAKEN_OVER
    first, second = desk.runs(ticket.document_id)
    assert (first.state, second.state, second.attempt) == ("superseded", "pending", 2)
    document = desk.matter.read(ticket.document_id)
    assert (document.registration_run_id, document.registration_attempt) == (second.run_id, 2)
    assert [invocation.run_id for invocation in agent.invocations] == [first.run_id, second.run_id]
    assert desk.spent() == 2


def test_another_documents_run_is_left_alone(desk: Desk) -> None:
    """Though a mark names it and it lapsed: the registrar sees every firm's runs, and a mark is no proof of whose it is."""
    ticket = desk.queued()
    other = desk.matter.sibling(firm=uuid7())
    foreign = other.dispatch(other.document())
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        desk.matter.prepare(
            "UPDATE documents SET registration_run_id = :run WHERE id = :id", id=ticket.document_id, run=foreign
        )
        desk.database.move_clock(901)
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.OBSOLETE, None)
    assert desk.run(foreign).pending
    assert len(agent.invocations) == 1


def test_takeovers_end_at_the_limit_in_a_visible_failure(desk: Desk) -> None:
    """The last attempt that lapses fails the document, with the reason, and mints nothing."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        done = desk.dispatch(ticket, agent.url)
        for lapse in range(1, 4):
            desk.database.move_clock(901 * lapse)
            done = desk.dispatch(ticket, agent.url)
    assert done.outcome is DispatchOutcome.EXHAUSTED
    document = desk.matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTRATION_FAILED
    assert (document.failure_kind, document.registration_message) == (
        FailureKind.ATTEMPTS_EXHAUSTED,
        messages.EXHAUSTED,
    )
    assert [run.state for run in desk.runs(document.id)] == ["superseded"] * 3


@pytest.mark.parametrize("state", ["delivered", "rejected", "expired"])
def test_a_settled_run_is_left_to_apply(desk: Desk, state: str) -> None:
    """Whatever the settler found, its ticket has the next move."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        run = desk.runs(ticket.document_id)[0].run_id
        desk.matter.settle(run, state)
        desk.database.move_clock(901)
        done = desk.dispatch(ticket, agent.url)
    assert (done.outcome, done.again) == (DispatchOutcome.OBSOLETE, None)
    assert len(desk.runs(ticket.document_id)) == 1
    assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING


def test_a_deleted_document_is_acknowledged(desk: Desk) -> None:
    """No run, no invocation; the ticket says why it is closed."""
    ticket = desk.queued()
    desk.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=ticket.document_id)
    assert desk.dispatch(ticket, NOBODY).again is None
    assert desk.runs(ticket.document_id) == []
    assert desk.matter.reload(ticket).outcome is Outcome.DOCUMENT_DELETED


def test_a_ticket_of_another_pass_is_stale(desk: Desk) -> None:
    """A re-extraction's new request is the only one that is served."""
    ticket = desk.queued()
    desk.matter.prepare(
        "UPDATE documents SET extraction_epoch = 2, processing_status = 'uploaded', extraction_run_id = NULL,"
        " registration_status = 'not_requested' WHERE id = :id",
        id=ticket.document_id,
    )
    desk.matter.index(ticket.document_id)
    with desk.database.engine(Role.REGISTRAR).begin() as connection:
        document = lock_document(connection, ticket.document_id)
        assert document is not None
        assert service.request(connection, document) is not None
    desk.dispatch(ticket, NOBODY)
    assert desk.matter.reload(ticket).outcome is Outcome.STALE
    assert desk.runs(ticket.document_id) == []


def test_a_ticket_of_an_earlier_attempt_is_stale(desk: Desk) -> None:
    """After a requeue only the newest generation is served, however often the first comes again."""
    ticket = desk.queued()
    desk.dispatch(ticket, NOBODY)
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.OBSOLETE
        assert agent.invocations == []
        successor = desk.sent(desk.newest_ticket(ticket.document_id))
        assert desk.dispatch(successor, agent.url).outcome is DispatchOutcome.INVOKED
    assert [run.state for run in desk.runs(ticket.document_id)] == ["undispatched", "pending"]


def test_waits_grow_while_an_agent_stays_away(desk: Desk) -> None:
    """Doubled with each generation up to the longest wait; attempts stay as they were."""
    ticket = desk.queued()
    waits = []
    for _ in range(5):
        desk.dispatch(ticket, NOBODY)
        ticket = desk.sent(desk.newest_ticket(ticket.document_id))
        row = desk.matter.rows(
            "SELECT extract(epoch FROM not_before - created_at) FROM ops.document_ingest_outbox WHERE id = :id",
            id=ticket.id,
        )
        waits.append(round(row[0][0]))
    assert waits == [10, 20, 40, 80, 80]
    assert desk.matter.read(ticket.document_id).registration_attempt == 1


def test_a_run_left_pending_by_no_ones_fault_does_not_block_a_new_one(desk: Desk) -> None:
    """Whatever left it over, it is superseded in the transaction that mints: one pending run per document and purpose."""
    ticket = desk.queued()
    with desk.database.engine(Role.REGISTRAR).begin() as connection:
        document = lock_document(connection, ticket.document_id)
        assert document is not None
        rows.mint(connection, document, purpose=Purpose.CLASSIFY, attempt=1, ticket=ticket, limits=desk.limits)
    with ScriptedAgent([accept]) as agent:
        assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.INVOKED
    assert [run.state for run in desk.runs(ticket.document_id)] == ["superseded", "pending"]


def test_giving_up_on_a_request_ends_in_a_visible_failure(desk: Desk) -> None:
    """A document whose dispatch fails again and again says so, and shows a run that was never dispatched."""
    ticket = desk.queued()
    with desk.dispatcher(NOBODY) as dispatcher:
        assert dispatcher.give_up(desk.matter.reload(ticket)).again is None
    document = desk.matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTRATION_FAILED
    assert document.registration_message == messages.ABANDONED
    assert [run.state for run in desk.runs(document.id)] == ["undispatched"]
    assert desk.matter.reload(ticket).outcome is Outcome.POISON


def test_giving_up_leaves_a_pending_run_to_its_deadline(desk: Desk) -> None:
    """The agent may be at work on it; the sweeper has the next move, at a known time."""
    ticket = desk.queued()
    with ScriptedAgent([status(500)]) as agent, desk.dispatcher(agent.url) as dispatcher:
        dispatcher.dispatch(ticket)
        assert dispatcher.give_up(desk.matter.reload(ticket)).again is None
    assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING
    assert [run.state for run in desk.runs(ticket.document_id)] == ["pending"]


@pytest.mark.parametrize("branch", ["accepted", "refused", "away", "held back", "deleted", "exhausted", "settled"])
def test_a_redelivery_after_the_end_of_any_branch_changes_nothing(desk: Desk, branch: str) -> None:
    """The message came, was served, and comes again twice: no row is different afterwards, and nobody is asked."""
    if branch == "exhausted":
        desk = desk.limited(max_attempts=1)
    ticket = desk.queued()
    with ScriptedAgent([{"refused": status(422), "away": status(503)}.get(branch, accept)]) as agent:
        if branch == "held back":
            desk.matter.prepare("UPDATE ops.dispatch_guard SET runs_per_hour = 0")
        if branch == "deleted":
            desk.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=ticket.document_id)
        desk.dispatch(ticket, agent.url)
        if branch == "exhausted":
            desk.database.move_clock(901)
            desk.dispatch(ticket, agent.url)
        if branch == "settled":
            desk.matter.settle(desk.runs(ticket.document_id)[0].run_id, "expired")
        before, asked = everything(desk), len(agent.invocations)
        for _ in range(2):
            assert desk.dispatch(ticket, agent.url).again is None
        assert (everything(desk), len(agent.invocations)) == (before, asked)


def everything(desk: Desk) -> list[list[object]]:
    """Every row that dispatch can write."""
    tables = ("documents", "agents.agent_run", "ops.document_ingest_outbox", "ops.agent_spend", "ops.dispatch_guard")
    return [
        [tuple(row) for row in desk.matter.rows(f"SELECT t::text FROM {table} t ORDER BY 1")]
        for table in (*tables, "ops.document_status_transition")
    ]


class TestParts:
    """The same dispatch serves the parts of understanding; they never touch the document's axes."""

    def test_a_part_gets_its_run(self, desk: Desk) -> None:
        """Requested → running, with a run of the part's own purpose."""
        ticket = desk.part_asked(Part.CARD)
        with ScriptedAgent([accept]) as agent:
            assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.INVOKED
        part = desk.matter.part(ticket.document_id, Part.CARD)
        run = desk.runs(ticket.document_id)[0]
        assert (part.state, part.run_id, run.purpose) == ("running", run.run_id, "card")
        assert agent.invocations[0].purpose is Purpose.CARD
        assert agent.invocations[0].context.candidates == ()
        assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.NOT_REQUESTED

    def test_a_part_whose_agent_is_away_is_requested_again(self, desk: Desk) -> None:
        """No attempt is spent."""
        ticket = desk.part_asked(Part.CARD)
        assert desk.dispatch(ticket, NOBODY).outcome is DispatchOutcome.AGENT_AWAY
        part = desk.matter.part(ticket.document_id, Part.CARD)
        successor = desk.newest_ticket(ticket.document_id, "document.understanding.requested")
        assert (part.state, part.attempt, part.ticket_id, successor.generation) == ("requested", 1, successor.id, 2)

    def test_a_part_that_is_refused_fails_and_the_next_is_asked_for(self, desk: Desk) -> None:
        """The chain goes on behind a part that has failed for good."""
        ticket = desk.part_asked(Part.CARD)
        with ScriptedAgent([status(422)]) as agent:
            desk.dispatch(ticket, agent.url)
        part = desk.matter.part(ticket.document_id, Part.CARD)
        assert (part.state, part.message) == ("failed", messages.REFUSED)
        assert desk.matter.part(ticket.document_id, Part.SECTIONS).state == "requested"

    def test_a_lapsed_part_is_taken_over(self, desk: Desk) -> None:
        """An attempt of the part is spent."""
        ticket = desk.part_asked(Part.BRIEF)
        with ScriptedAgent([accept]) as agent:
            desk.dispatch(ticket, agent.url)
            desk.database.move_clock(901)
            assert desk.dispatch(ticket, agent.url).outcome is DispatchOutcome.TAKEN_OVER
        part = desk.matter.part(ticket.document_id, Part.BRIEF)
        assert (part.attempt, part.run_id) == (2, desk.runs(ticket.document_id)[1].run_id)

    def test_a_resegment_that_must_wait_stays_one(self, desk: Desk) -> None:
        """Its next generation carries the request's id."""
        document = desk.matter.document()
        desk.write_pages(document, ("Only page.",))
        request = desk.matter.id
        with desk.database.engine(Role.REGISTRAR).begin() as connection:
            found = lock_document(connection, document)
            assert found is not None
            ticket = parts.ask_again(connection, found, Part.SECTIONS, request_id=request)
        desk.dispatch(desk.sent(ticket), NOBODY)
        successor = desk.newest_ticket(document, "document.resegment.requested")
        assert (successor.generation, successor.request_id, successor.redrive_of) == (2, request, ticket.id)
        with ScriptedAgent([accept]) as agent:
            desk.dispatch(desk.sent(successor), agent.url)
        assert agent.invocations[0].purpose is Purpose.SECTIONS

    def test_a_part_and_the_registration_have_a_pending_run_each(self, desk: Desk) -> None:
        """One pending run per document and purpose, not per document."""
        registration = desk.queued()
        with desk.database.engine(Role.REGISTRAR).begin() as connection:
            found = lock_document(connection, registration.document_id)
            assert found is not None
            card = parts.request(connection, found, Part.CARD)
        assert card is not None
        with ScriptedAgent([accept]) as agent:
            desk.dispatch(registration, agent.url)
            desk.dispatch(desk.sent(card), agent.url)
        assert [run.state for run in desk.runs(registration.document_id)] == ["pending", "pending"]
