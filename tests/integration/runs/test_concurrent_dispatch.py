"""Two dispatches of one request at once, and what stands between decision and answer."""

import threading

import pytest

from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import RegistrationStatus, RunState
from baton.registration import service
from baton.runs import rows
from baton.runs.calling import Dispatched
from support.dispatching import Desk
from support.scripted_agent import Answer, Asked, ScriptedAgent, accept, reset, status
from support.transactions import Second
from support.waiting import wait_until

PARTIES = 2


def at_once(desk: Desk, ticket: object, url: str) -> list[Dispatched]:
    """What two dispatches of one ticket report."""
    done: list[Dispatched] = []
    with desk.dispatcher(url) as dispatcher:
        threads = [
            threading.Thread(target=lambda: done.append(dispatcher.dispatch(ticket)))  # type: ignore[arg-type]
            for _ in range(PARTIES)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    return done


def test_two_dispatches_at_once_are_one_run_and_one_paid_work(desk: Desk) -> None:
    """One pending run; both may ask the agent, by the same run id, and it works once."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        done = at_once(desk, ticket, agent.url)
    assert all(each.again is None for each in done)
    assert [run.state for run in desk.runs(ticket.document_id)] == ["pending"]
    assert len(set(agent.taken)) == 1
    assert desk.spent() == 1


def test_the_second_of_two_really_waits_for_the_first(desk: Desk) -> None:
    """The document's lock is held by the minting transaction, and the second wakes to the run that was minted."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        with desk.database.engine(Role.REGISTRAR).begin() as first:
            minted = dispatcher._decide(first, ticket).run
            second = Second(desk.database, lambda c: dispatcher._decide(c, ticket).run)
            second.start()
            second.wait_until_blocked_by(first)
        seen = second.result()
    assert minted is not None
    assert seen is not None
    assert seen.run_id == minted.run_id
    assert len(desk.runs(ticket.document_id)) == 1


@pytest.mark.parametrize("second", [accept, reset], ids=["accepted", "lost"])
def test_a_first_refusal_does_not_withdraw_a_run_that_another_caller_has_begun(desk: Desk, second: Answer) -> None:
    """While the first waits for its 503, the second is taken, or perhaps: the run is kept, and the first comes again."""
    ticket = desk.queued()
    release = threading.Event()

    def refuse_late(asked: Asked) -> None:
        release.wait(20)
        status(503)(asked)

    with ScriptedAgent([refuse_late, second]) as agent, desk.dispatcher(agent.url, patience=20) as dispatcher:
        done: list[Dispatched] = []
        first = threading.Thread(target=lambda: done.append(dispatcher.dispatch(ticket)))
        first.start()
        wait_for_invocations(agent, 1)
        assert (dispatcher.dispatch(ticket).again is None) is (second is accept)
        release.set()
        first.join(30)
    assert done[0].again is not None
    run = desk.runs(ticket.document_id)[0]
    assert (run.state, run.invoke_count) == ("pending", 2)
    assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING


def test_a_refusal_of_a_superseded_run_touches_nothing(desk: Desk) -> None:
    """The document was re-extracted while the agent was being asked: its new state stands."""
    ticket = desk.queued()

    def re_extracted(asked: Asked) -> None:
        with desk.database.engine(Role.REGISTRAR).begin() as connection:
            document = lock_document(connection, ticket.document_id)
            assert document is not None
            rows.supersede_pending(connection, document, purpose=asked.invocation.purpose, message="newer")
        desk.matter.prepare(
            "UPDATE documents SET extraction_epoch = 2, processing_status = 'uploaded', extraction_run_id = NULL,"
            " registration_status = 'not_requested' WHERE id = :id",
            id=ticket.document_id,
        )
        status(422)(asked)

    with ScriptedAgent([re_extracted]) as agent:
        desk.dispatch(ticket, agent.url)
        assert desk.dispatch(ticket, agent.url).again is None
    document = desk.matter.read(ticket.document_id)
    assert (document.registration_status, document.registration_message) == (RegistrationStatus.NOT_REQUESTED, None)
    assert [run.state for run in desk.runs(document.id)] == ["superseded"]


def test_a_deletion_while_the_agent_is_asked_ends_in_acknowledgement(desk: Desk) -> None:
    """A refusal settles the run and leaves the deleted document alone."""
    ticket = desk.queued()

    def deleted(asked: Asked) -> None:
        desk.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=ticket.document_id)
        status(503)(asked)

    with ScriptedAgent([deleted]) as agent:
        assert desk.dispatch(ticket, agent.url).again is None
    assert [run.state for run in desk.runs(ticket.document_id)] == ["undispatched"]
    assert desk.tickets(ticket.document_id, "document.registration.requested") == 1


@pytest.mark.parametrize(
    "answer", [accept, reset, status(422), status(503)], ids=["accepted", "lost", "refused", "away"]
)
def test_a_crash_after_the_answer_is_mended_by_the_redelivery(desk: Desk, answer: object) -> None:
    """The answer is not written down; the same run is invoked again, and its acceptance ends it: one run, one work."""
    ticket = desk.queued()
    with (
        desk.dispatcher("http://127.0.0.1:9") as dispatcher,
        desk.database.engine(Role.REGISTRAR).begin() as connection,
    ):
        run = dispatcher._decide(connection, ticket).run
        assert run is not None
        rows.count_invoke(connection, run.run_id)
    with ScriptedAgent([answer, accept]) as agent:  # type: ignore[list-item]
        first = desk.dispatch(ticket, agent.url)
        if first.again is not None:
            desk.dispatch(ticket, agent.url)
    assert set(agent.taken) == {run.run_id}
    assert desk.run(run.run_id).state is RunState.PENDING
    assert desk.run(run.run_id).accepted_at is not None
    assert desk.spent() == 1


def test_a_crash_before_the_first_invocation_is_mended_by_the_redelivery(desk: Desk) -> None:
    """The run stands with no invocation counted, and the redelivery's is the first: a refusal may still withdraw it."""
    ticket = desk.queued()
    with desk.dispatcher("http://127.0.0.1:9") as dispatcher:
        with desk.database.engine(Role.REGISTRAR).begin() as connection:
            assert dispatcher._decide(connection, ticket).run is not None
        assert dispatcher.dispatch(ticket).again is None
    assert desk.matter.read(ticket.document_id).registration_status is RegistrationStatus.QUEUED
    assert [run.state for run in desk.runs(ticket.document_id)] == ["undispatched"]


def test_an_agent_outage_is_no_upload_outage(desk: Desk) -> None:
    """With no agent at all a document can still be asked for, and its request survives until one is back."""
    ticket = desk.queued()
    for _ in range(3):
        assert desk.dispatch(ticket, "http://127.0.0.1:9").again is None
        ticket = desk.sent(desk.newest_ticket(ticket.document_id))
    other = desk.matter.document()
    with desk.database.engine(Role.REGISTRAR).begin() as connection:
        document = lock_document(connection, other)
        assert document is not None
        assert service.request(connection, document) is not None
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
    document = desk.matter.read(ticket.document_id)
    assert (document.registration_status, document.registration_attempt) == (RegistrationStatus.REGISTERING, 1)


def wait_for_invocations(agent: ScriptedAgent, count: int) -> None:
    """Until the agent was asked so often."""
    wait_until(lambda: len(agent.invocations) >= count, 20)
