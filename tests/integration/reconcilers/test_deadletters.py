"""Dead letters: read, matched to their tickets, redriven or kept with a reason; never dropped."""

import json
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.aws.faults import Service
from baton.aws.queues import Queue, QueueSpec
from baton.db.access import Role
from baton.db.states import Part
from baton.outbox import envelope
from baton.outbox.tickets import Ticket
from baton.reconcilers import deadletters
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import classify
from baton.reconcilers.deadletters import Letter, Outcome, Postmaster
from baton.reconcilers.explain import ground_of
from baton.reconcilers.planning import Ground
from support.aws_accounts import AwsAccount
from support.dispatching import Desk
from support.matters import turn
from support.reconciling import Loop


@pytest.fixture
def desk(loop: Loop, aws: AwsAccount) -> Desk:
    """The loop's matter, with a store."""
    return Desk(loop.matter, aws)


@pytest.fixture
def dead(desk: Desk) -> Queue:
    """A dead-letter queue."""
    queue = Queue(desk.clients, QueueSpec("registrar-dead.fifo", visibility=30))
    queue.ensure()
    return queue


def _message(ticket: Ticket, **changes: Any) -> str:
    body = envelope.write(
        ticket_id=ticket.id,
        idempotency_key=ticket.idempotency_key,
        event_type=ticket.event_type,
        firm_id=ticket.firm_id,
        matter_id=ticket.matter_id,
        document_id=ticket.document_id,
        object_key=ticket.object_key,
        content_type=ticket.content_type,
    )
    return json.dumps({**json.loads(body), **changes})


def _lay(desk: Desk, dead: Queue, *bodies: str) -> None:
    for body in bodies:
        desk.clients.sqs.send_message(
            QueueUrl=dead.url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=uuid4().hex
        )


def _collect(loop: Loop, dead: Queue, name: str = "registrar") -> int:
    return deadletters.collect(loop.database.engine(Role.RECONCILER), name, dead)


def _letters(loop: Loop, **chosen: Any) -> list[Letter]:
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        return deadletters.opened(connection, **chosen)


def _ground(loop: Loop) -> Ground:
    with loop.database.engine(Role.RECONCILER).connect() as connection:
        return ground_of(connection, settings=loop.settings)


def _master(loop: Loop, desk: Desk, reason: str = "mended in 1.4.2") -> Postmaster:
    return Postmaster(
        engine=loop.database.engine(Role.RECONCILER),
        settings=loop.settings,
        store=desk.store,
        reason=reason,
        requested_by="ada",
    )


def _sent(loop: Loop, desk: Desk) -> tuple[UUID, Ticket]:
    document, ticket = loop.queued()
    return document, desk.sent(ticket)


def _verdict(loop: Loop, document: UUID, aspect: Aspect = Aspect.REGISTRATION) -> str:
    ground = _ground(loop)
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        found = classify(connection, [document], lanes=ground.lanes, graces=ground.graces, now=ground.now)
    return found[document][aspect].name


def test_a_letter_is_written_down_before_it_leaves_its_queue(
    loop: Loop, desk: Desk, dead: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two: it is on the queue still, comes again, and is one letter."""
    document, ticket = _sent(loop, desk)
    _lay(desk, dead, _message(ticket))

    def dies(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Queue, "delete_batch", dies)
        patched.setattr(deadletters, "_HOLD", 0)
        with pytest.raises(KeyboardInterrupt):
            _collect(loop, dead)
    (letter,) = _letters(loop)
    assert (letter.ticket_id, letter.reason) == (ticket.id, None)
    assert dead.depth().visible == 1
    assert _collect(loop, dead) == 0
    assert dead.depth().empty
    assert _letters(loop) == [letter]
    assert _verdict(loop, document) == "ticket_dead_lettered"


def test_nothing_but_a_person_brings_a_dead_letter_back(loop: Loop, desk: Desk, dead: Queue) -> None:
    """Passes report it however often they run; a redrive with a reason is one new generation, and a row that says why."""
    loop.consumers()
    document, ticket = _sent(loop, desk)
    _lay(desk, dead, _message(ticket))
    assert _collect(loop, dead) == 1
    for _ in range(2):
        result = loop.repair()
        assert (result.repaired, dict(result.reported)) == (0, {"ticket_dead_lettered": 1})
        found_at = loop.matter.rows("SELECT found_at FROM ops.dead_letter")[0][0]
        assert result.oldest == {"ticket_dead_lettered": found_at}
    (letter,) = _letters(loop)
    assert _master(loop, desk).redrive(letter, ground=_ground(loop)) is Outcome.REDRIVEN
    assert loop.generations(document) == [1, 2]
    (entry,) = loop.ledger(document)
    assert (entry.discrepancy, entry.reason, entry.requested_by) == ("ticket_dead_lettered", "mended in 1.4.2", "ada")
    assert loop.matter.read(document).registration_ticket_id == entry.ticket_id
    assert _letters(loop) == []
    assert _verdict(loop, document) == "undispatched"
    # settled is settled
    assert _master(loop, desk).redrive(letter, ground=_ground(loop)) is None
    assert loop.generations(document) == [1, 2]


def test_letters_of_every_aspect_find_their_way(loop: Loop, desk: Desk, dead: Queue) -> None:
    """A settled run's announcement, a part's request and a part's announcement, each by its own service."""
    announced = loop.matter.document()
    letter_of_run = desk.sent(loop.matter.deliver(loop.matter.dispatch(announced), turn()))
    part = desk.part_asked(Part.CARD)
    other = desk.part_asked(Part.CARD)
    run = loop.matter.dispatch_part(other.document_id, Part.CARD)
    letter_of_part = desk.sent(loop.matter.settle(run, "rejected", message="It was no card."))
    tickets = [letter_of_run, part, letter_of_part]
    _lay(desk, dead, *(_message(each) for each in tickets))
    assert _collect(loop, dead) == 3
    outcomes = [_master(loop, desk).redrive(each, ground=_ground(loop)) for each in _letters(loop)]
    assert outcomes == [Outcome.REDRIVEN] * 3
    for ticket in tickets:
        assert loop.matter.reload(ticket).outcome == "replaced"
        newest = desk.newest_ticket(ticket.document_id, ticket.event_type)
        assert (newest.generation, newest.redrive_of) == (2, ticket.id)
    assert {row.aspect for row in loop.ledger()} == {"registration", "card"}


def test_a_message_that_belongs_to_no_ticket_is_kept_and_listed(loop: Loop, desk: Desk, dead: Queue) -> None:
    """Not JSON, a ticket that never was, a ticket of another key: each with why; a redrive keeps them with its reason."""
    _document, ticket = _sent(loop, desk)
    strangers = ("hello", _message(ticket, ticket_id=10**9), _message(ticket, idempotency_key="another"))
    _lay(desk, dead, *strangers)
    assert _collect(loop, dead) == 3
    found = _letters(loop)
    assert [(each.ticket_id, each.body) for each in found] == [(None, body) for body in strangers]
    assert [each.reason for each in found] == [
        "the message is not JSON",
        "there is no such ticket",
        "there is no such ticket",
    ]
    for each in found:
        assert _master(loop, desk).redrive(each, ground=_ground(loop)) is Outcome.KEPT
    assert _letters(loop) == []
    kept = _letters(loop, kept=True)
    assert [each.body for each in kept] == list(strangers)
    assert all("mended in 1.4.2" in (each.reason or "") for each in kept)
    assert loop.generations(ticket.document_id) == [1]


def test_a_letter_whose_ticket_was_closed_is_obsolete(loop: Loop, desk: Desk, dead: Queue) -> None:
    """Handled meanwhile, or its document deleted: nothing is asked for again; one that is waited for stays open."""
    closed, ticket = _sent(loop, desk)
    waited, other = _sent(loop, desk)
    _lay(desk, dead, _message(ticket), _message(other))
    assert _collect(loop, dead) == 2
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET handled_at = app.clock(), outcome = 'done' WHERE id = :id", id=ticket.id
    )
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert deadletters.retire(connection) == 1
    (letter,) = _letters(loop)
    assert letter.ticket_id == other.id
    assert loop.generations(closed) == [1]
    loop.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=waited)
    assert _master(loop, desk).redrive(letter, ground=_ground(loop)) is Outcome.OBSOLETE
    assert loop.matter.reload(other).outcome == "stale"
    assert loop.generations(waited) == [1]


def test_a_letter_may_be_kept_by_decision(loop: Loop, desk: Desk, dead: Queue) -> None:
    """It leaves the list of open ones with its reason, and its ticket counts as lost again, not as dead."""
    document, ticket = _sent(loop, desk)
    _lay(desk, dead, _message(ticket))
    _collect(loop, dead)
    (letter,) = _letters(loop)
    assert _master(loop, desk, "evidence").keep(letter) is Outcome.KEPT
    assert _master(loop, desk, "evidence").keep(letter) is None
    (kept,) = _letters(loop, kept=True)
    assert (kept.reason, kept.body) == ("evidence", letter.body)
    assert _verdict(loop, document) == "waiting"


def test_a_notification_is_settled_from_the_store(loop: Loop, desk: Desk) -> None:
    """A dead letter of the results queue leads to its run: the artifact is there, and the run is settled by it."""
    queue = Queue(desk.clients, QueueSpec("results-dead"))
    queue.ensure()
    document = loop.matter.document()
    run = desk.run(loop.matter.dispatch(document))
    gone = desk.run(loop.matter.dispatch(loop.matter.document()))
    desk.put_artifact(run, turn())

    def told(key: str) -> str:
        record = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": desk.store.name}, "object": {"key": key}}}
        return json.dumps({"Records": [record]})

    for body in (told(run.result_key), told(gone.result_key), "nonsense"):
        desk.clients.sqs.send_message(QueueUrl=queue.url, MessageBody=body)
    assert _collect(loop, queue, deadletters.RESULTS) == 3
    settle = partial(_master(loop, desk).redrive, ground=_ground(loop))
    by_body = {each.body: settle(each) for each in _letters(loop)}
    assert by_body == {
        told(run.result_key): Outcome.REDRIVEN,
        told(gone.result_key): Outcome.KEPT,
        "nonsense": Outcome.KEPT,
    }
    assert desk.run(run.run_id).state == "delivered"
    assert desk.run(gone.run_id).state == "pending"


def test_an_empty_dead_letter_queue_costs_one_call(loop: Loop, desk: Desk, dead: Queue) -> None:
    """No long poll where nothing lies: a loop asks in every pass."""
    calls: list[str] = []
    desk.clients.calls(Service.SQS, calls.append)
    source = Queue(desk.clients, QueueSpec("registrar.fifo", dead="registrar-dead.fifo"))
    source.ensure()
    assert source.dead is not None
    assert source.dead.url
    calls.clear()
    assert deadletters.collect_all(loop.database.engine(Role.RECONCILER), [("registrar", source)]) == 0
    assert calls == ["GetQueueAttributes"]
