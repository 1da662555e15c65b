"""A run is settled once, by whoever is first, with one ticket; its settlers know no document."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from baton.aws.faults import Service
from baton.aws.receiving import Message
from baton.consumers.verdicts import Ack, Retry
from baton.contract.artifacts import build_artifact
from baton.contract.errors import ArtifactTooLarge, ArtifactWrongDigest, ArtifactWrongSchema
from baton.contract.purposes import SchemaName
from baton.db.access import Role
from baton.db.states import Outcome, Part, RegistrationStatus
from baton.runs import messages
from baton.runs.findings import Delivered, Expired, look
from baton.runs.rows import Run, result_key
from baton.runs.settling import Result, settle
from support.aws_answers import answered, failing
from support.dispatching import Desk
from support.matters import turn
from support.scripted_agent import ScriptedAgent, accept
from support.transactions import Second

ARTIFACT = "document.artifact.delivered"


def pending(desk: Desk) -> Run:
    """A run that the agent has accepted."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
    return desk.run(desk.runs(ticket.document_id)[0].run_id)


def announced(desk: Desk, *keys: str, bucket: str | None = None) -> Message:
    """What the store tells the results queue."""
    records = [
        {
            "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": bucket or desk.store.name}, "object": {"key": key}},
        }
        for key in keys
    ]
    return Message(message_id="m", receipt="r", body=json.dumps({"Records": records}))


def found(desk: Desk, run: Run) -> Delivered:
    """The delivered artifact, looked at."""
    finding = look(desk.store, run, max_bytes=1_000_000)
    assert isinstance(finding, Delivered)
    return finding


def settled(desk: Desk, run: Run) -> tuple[str, int, int]:
    """State, artifact tickets, and effects of a run, counted in rows."""
    state = str(desk.run(run.run_id).state)
    tickets = desk.matter.count("ops.document_ingest_outbox", "run_id = :run", run=run.run_id)
    return state, tickets, desk.matter.count("agents.agent_effect", "run_id = :run", run=run.run_id)


def test_an_announced_artifact_settles_its_run(desk: Desk) -> None:
    """Delivered, its effects kept, ONE ticket that points where the dispatch's ticket did, and the mark on the run."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    assert desk.results().handle(announced(desk, run.result_key)) == Ack()
    assert settled(desk, run) == ("delivered", 1, 1)
    origin = desk.newest_ticket(run.document_id)
    ticket = desk.newest_ticket(run.document_id, ARTIFACT)
    assert desk.runs(run.document_id)[0].artifact_ticket_id == ticket.id
    assert ticket.idempotency_key == f"document_artifact:{run.run_id}"
    assert (ticket.pointer, ticket.extraction_epoch, ticket.extraction_run_id, ticket.attempt) == (
        origin.pointer,
        origin.extraction_epoch,
        run.extraction_run_id,
        1,
    )
    assert desk.matter.read(run.document_id).registration_status is RegistrationStatus.REGISTERING


def test_what_was_settled_can_be_applied(desk: Desk) -> None:
    """The letter that is written here is one that the Record opens."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    desk.results().handle(announced(desk, run.result_key))
    assert desk.matter.apply(desk.newest_ticket(run.document_id, ARTIFACT)) is Outcome.DONE
    assert desk.matter.read(run.document_id).registration_status is RegistrationStatus.REGISTERED


def test_a_replayed_artifact_writes_one_ticket(desk: Desk) -> None:
    """However often it is announced, and by how many messages: rows are counted."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    for _ in range(3):
        assert desk.results().handle(announced(desk, run.result_key, run.result_key)) == Ack()
    desk.database.move_clock(2000)
    desk.sweeper().run_once()
    assert settled(desk, run) == ("delivered", 1, 1)


def test_of_two_settlers_at_once_the_second_waits_and_does_nothing(desk: Desk) -> None:
    """The run's lock decides in the database: one state, one ticket, one set of effects."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    finding = found(desk, run)
    with desk.database.engine(Role.SETTLER).begin() as first:
        assert settle(first, run.run_id, finding).result is Result.SETTLED
        second = Second(desk.database, lambda c: settle(c, run.run_id, Expired()).result, role=Role.SETTLER)
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is Result.TOO_LATE
    assert settled(desk, run) == ("delivered", 1, 1)


def test_a_sweeper_that_was_first_is_not_overwritten(desk: Desk) -> None:
    """The other way round: expired stays expired, and the artifact that came after is ignored."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    finding = found(desk, run)
    with desk.database.engine(Role.SETTLER).begin() as first:
        assert settle(first, run.run_id, Expired()).result is Result.SETTLED
        second = Second(desk.database, lambda c: settle(c, run.run_id, finding).result, role=Role.SETTLER)
        second.start()
        second.wait_until_blocked_by(first)
    assert second.result() is Result.TOO_LATE
    assert settled(desk, run) == ("expired", 1, 0)


def test_a_settler_that_gives_up_leaves_the_run_to_the_other(desk: Desk) -> None:
    """A transaction that is rolled back has settled nothing, and left no ticket."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    finding = found(desk, run)
    first = desk.database.engine(Role.SETTLER).connect()
    transaction = first.begin()
    assert settle(first, run.run_id, Expired()).result is Result.SETTLED
    second = Second(desk.database, lambda c: settle(c, run.run_id, finding).result, role=Role.SETTLER)
    second.start()
    second.wait_until_blocked_by(first)
    transaction.rollback()
    first.close()
    assert second.result() is Result.SETTLED
    assert settled(desk, run) == ("delivered", 1, 1)


def test_an_older_runs_late_artifact_settles_nothing(desk: Desk) -> None:
    """A run that was taken over is never settled again, whichever of the settlers finds its artifact."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
        desk.database.move_clock(901)
        desk.dispatch(ticket, agent.url)
    old, new = (desk.run(row.run_id) for row in desk.runs(ticket.document_id))
    desk.put_artifact(old, turn())
    desk.results().handle(announced(desk, old.result_key))
    desk.sweeper().run_once()
    assert settled(desk, old) == ("superseded", 0, 0)
    assert settled(desk, new) == ("pending", 0, 0)
    assert desk.matter.read(ticket.document_id).registration_run_id == new.run_id


def test_a_settler_that_was_faster_makes_a_takeover_stand_back(desk: Desk) -> None:
    """Dispatch waits for the settler's lock, wakes to a settled run, and mints nothing."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        dispatcher.dispatch(ticket)
        run = desk.run(desk.runs(ticket.document_id)[0].run_id)
        desk.database.move_clock(901)
        with desk.database.engine(Role.SETTLER).begin() as first:
            settle(first, run.run_id, Expired())
            second = Second(desk.database, lambda c: dispatcher._decide(c, ticket))
            second.start()
            second.wait_until_blocked_by(first)
        assert second.result().run is None
    assert len(desk.runs(ticket.document_id)) == 1
    assert settled(desk, run) == ("expired", 1, 0)


def test_a_takeover_that_was_faster_makes_a_settler_stand_back(desk: Desk) -> None:
    """The other order: the settler waits, wakes to a superseded run, and writes nothing."""
    ticket = desk.queued()
    with ScriptedAgent([accept]) as agent, desk.dispatcher(agent.url) as dispatcher:
        dispatcher.dispatch(ticket)
        run = desk.run(desk.runs(ticket.document_id)[0].run_id)
        desk.database.move_clock(901)
        with desk.database.engine(Role.REGISTRAR).begin() as first:
            assert dispatcher._decide(first, ticket).run is not None
            second = Second(desk.database, lambda c: settle(c, run.run_id, Expired()).result, role=Role.SETTLER)
            second.start()
            second.wait_until_blocked_by(first)
        assert second.result() is Result.TOO_LATE
    assert settled(desk, run) == ("superseded", 0, 0)
    assert [row.state for row in desk.runs(ticket.document_id)] == ["superseded", "pending"]


def test_settling_does_not_wait_for_the_documents_lock(desk: Desk) -> None:
    """An apply or dispatch that holds the document holds up no settler: the ticket's foreign key needs no more."""
    run = pending(desk)
    with desk.database.engine(Role.REGISTRAR).begin() as holder:
        holder.execute(text("SELECT 1 FROM documents WHERE id = :id FOR NO KEY UPDATE"), {"id": run.document_id})
        second = Second(desk.database, lambda c: settle(c, run.run_id, Expired()).result, role=Role.SETTLER)
        second.start()
        assert second.result() is Result.SETTLED


def spoilt(desk: Desk, run: Run, kind: str) -> bytes:
    """An artifact that is none."""
    if kind == "wrong digest":
        return build_artifact([turn()], schema=run.result_schema, run_id=run.run_id).replace(b"sha256:", b"sha256:0")
    if kind == "wrong schema":
        return build_artifact([turn()], schema=SchemaName.CARD_V1, run_id=run.run_id)
    return b" " * 5000


@pytest.mark.parametrize(
    ("kind", "error"),
    [("wrong digest", ArtifactWrongDigest), ("wrong schema", ArtifactWrongSchema), ("huge", ArtifactTooLarge)],
)
def test_an_artifact_that_is_none_rejects_the_run_whole(desk: Desk, kind: str, error: Any) -> None:
    """No effect is kept; the reason is a sentence for a lawyer, and one ticket brings it to the document."""
    desk = desk.limited(artifact_max_bytes=4096)
    run = pending(desk)
    desk.store.put(run.result_key, spoilt(desk, run, kind), content_type="application/json")
    desk.results().handle(announced(desk, run.result_key))
    assert settled(desk, run) == ("rejected", 1, 0)
    assert desk.runs(run.document_id)[0].message == error.message


@pytest.mark.parametrize(
    "body",
    ["not json", "[]", '{"Records": [{}]}', '{"Event": "s3:TestEvent"}', "{}"],
    ids=["text", "list", "empty record", "test", "empty"],
)
def test_a_message_that_says_nothing_is_acknowledged(desk: Desk, body: str) -> None:
    """It is no artifact, and coming again would not make it one."""
    assert desk.results().handle(Message(message_id="m", receipt="r", body=body)) == Ack()


def test_a_message_leads_only_to_runs_of_ours(desk: Desk) -> None:
    """Another bucket, another key, an unknown run and a key that is nearly right settle nothing."""
    run = pending(desk)
    desk.put_artifact(run, turn())
    strange = [
        result_key(uuid4()),
        f"agent-runs/{run.run_id}/other.json",
        f"agent-runs/{str(run.run_id).upper()}/artifact.json",
    ]
    assert desk.results().handle(announced(desk, *strange)) == Ack()
    assert desk.results().handle(announced(desk, run.result_key, bucket="another")) == Ack()
    assert settled(desk, run) == ("pending", 0, 0)


def test_a_store_that_is_away_keeps_the_message(desk: Desk) -> None:
    """Nothing is known about the artifact, so nothing is concluded."""
    run = pending(desk)
    with answered(desk.clients, Service.S3, "GetObject", failing(ConnectionError("away"))):
        assert isinstance(desk.results().handle(announced(desk, run.result_key)), Retry)
    assert settled(desk, run) == ("pending", 0, 0)


def test_an_announced_artifact_that_is_gone_is_left_to_the_sweeper(desk: Desk) -> None:
    """The announcement is a hint; only the deadline makes absence mean something."""
    run = pending(desk)
    assert desk.results().handle(announced(desk, run.result_key)) == Ack()
    assert settled(desk, run) == ("pending", 0, 0)


def test_a_parts_run_is_settled_like_any_other(desk: Desk) -> None:
    """Its ticket carries the run; the part is found by it."""
    ticket = desk.part_asked(Part.CARD)
    with ScriptedAgent([accept]) as agent:
        desk.dispatch(ticket, agent.url)
    run = desk.run(desk.runs(ticket.document_id)[0].run_id)
    with desk.database.engine(Role.SETTLER).begin() as connection:
        assert settle(connection, run.run_id, Expired()).result is Result.SETTLED
    assert desk.matter.apply(desk.newest_ticket(ticket.document_id, ARTIFACT)) is Outcome.REFUSED
    part = desk.matter.part(ticket.document_id, Part.CARD)
    assert (part.state, part.message) == ("failed", messages.EXPIRED)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM documents",
        "UPDATE documents SET registration_status = 'registered'",
        "SELECT 1 FROM document_page",
        "SELECT 1 FROM record.assertion",
        "INSERT INTO inbox.item (id) VALUES (gen_random_uuid())",
        "UPDATE ops.document_ingest_outbox SET dispatched_at = now()",
        "UPDATE agents.agent_run SET invoke_count = 7",
        "DELETE FROM agents.agent_run",
    ],
)
def test_a_settler_has_no_document(desk: Desk, statement: str) -> None:
    """By grant, not by good manners: it can neither read nor write one, nor send, nor invoke."""
    with (
        desk.database.engine(Role.SETTLER).connect() as connection,
        pytest.raises(ProgrammingError, match="permission denied"),
    ):
        connection.execute(text(statement))


def test_an_unknown_run_is_not_settled(desk: Desk) -> None:
    """Nothing is written for an id that nobody minted."""
    with desk.database.engine(Role.SETTLER).begin() as connection:
        assert settle(connection, UUID(int=7), Expired()).result is Result.UNKNOWN
