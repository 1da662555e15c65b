"""Redrive: what was chosen, through the services, with a reason, once per request, and past every deduplication."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from uuid_utils.compat import uuid7

from baton.aws.queues import Queue, QueueSpec
from baton.db.access import Role
from baton.db.states import EventType, FailureKind, Lane, Part, ProcessingStatus, RegistrationStatus
from baton.db.tables import outbox
from baton.outbox import envelope
from baton.outbox.relay import Relay
from baton.outbox.senders import QueueSender
from baton.outbox.tickets import TICKET_COLUMNS, Ticket, as_ticket
from baton.reconcilers import choosing, redrive, rehearsal, tallies
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.choosing import Choice
from baton.reconcilers.explain import ground_of
from baton.reconcilers.redrive import Progress, Redriver, RedriveRefused, Request, State
from baton.reconcilers.rows import Case
from baton.reconcilers.selection import Selector, SelectorRefused
from baton.settings.work import Relay as RelaySettings
from support.aws_accounts import AwsAccount
from support.dispatching import Desk
from support.fuses import Crash, Fuse
from support.matters import Matter
from support.reconciling import Loop
from support.scripted_agent import ScriptedAgent, status

FAST = 1e9


def _redriver(loop: Loop, *, per_minute: float = FAST) -> Redriver:
    return Redriver(
        engine=loop.database.engine(Role.RECONCILER),
        settings=loop.settings,
        ground_of=partial(ground_of, settings=loop.settings),
        per_minute=per_minute,
    )


def _request(selector: Selector, *, reason: str = "the agent is back", request_id: UUID | None = None) -> Request:
    return Request(id=request_id or uuid7(), selector=selector, reason=reason, requested_by="ada")


def _run(loop: Loop, request: Request, *, tell: Callable[[Any], object] = lambda counts: None) -> Progress:
    redrive.begin(loop.database.engine(Role.RECONCILER), request)
    return _redriver(loop).run(request, stop=threading.Event(), tell=tell)


def _failed(loop: Loop, *, matter: Matter | None = None, retry: bool = False) -> UUID:
    """A document whose registration failed."""
    within = matter or loop.matter
    document = within.document()
    run = within.dispatch(document)
    within.apply(within.settle(run, "expired", message="No answer came."))
    if not retry:
        within.prepare("UPDATE documents SET next_attempt_at = NULL WHERE id = :id", id=document)
    return document


def _status(loop: Loop, document: UUID) -> RegistrationStatus:
    return loop.matter.read(document).registration_status


def test_a_selector_that_names_nothing_is_refused(loop: Loop) -> None:
    """Neither age nor aspect alone chooses everybody's documents; a matter needs its firm; names must be names."""
    for selector in (
        Selector(),
        Selector(older_than=timedelta(hours=1)),
        Selector(aspects=(Aspect.CARD,)),
        Selector(matter=uuid7(), documents=(uuid7(),)),
        Selector(discrepancies=("nonsense",)),
    ):
        with pytest.raises(SelectorRefused):
            redrive.begin(loop.database.engine(Role.RECONCILER), _request(selector))
    with pytest.raises(RedriveRefused):
        redrive.begin(loop.database.engine(Role.RECONCILER), _request(Selector(firm=loop.matter.firm), reason=" "))
    assert loop.matter.count("ops.redrive") == 0


def test_a_selector_survives_being_written_down() -> None:
    """What is resumed is what was asked for."""
    selector = Selector(
        documents=(uuid7(), uuid7()),
        firm=uuid7(),
        matter=uuid7(),
        discrepancies=("ticket_parked",),
        processing=(ProcessingStatus.FAILED,),
        registration=(RegistrationStatus.REGISTRATION_FAILED,),
        errors=(FailureKind.RUN_EXPIRED,),
        aspects=(Aspect.BRIEF,),
        older_than=timedelta(minutes=90),
        under_way=True,
    )
    assert Selector.from_json(selector.as_json()) == selector
    assert Selector.from_json(Selector(firm=selector.firm).as_json()) == Selector(firm=selector.firm)


def test_each_way_of_choosing_finds_its_documents(loop: Loop) -> None:
    """By document, matter, firm, discrepancy, status, error and age; the dry run says so by firm and writes nothing."""
    loop.consumers()
    elsewhere = loop.matter.sibling(firm=uuid7())
    beside = loop.matter.sibling()
    failed, others, neighbours = _failed(loop), _failed(loop, matter=elsewhere), _failed(loop, matter=beside)
    (lost,) = loop.lost()
    loop.matter.registered()
    loop.age(failed, seconds=7200)
    firm = loop.matter.firm
    chosen: dict[str, tuple[Selector, set[UUID]]] = {
        "document": (Selector(documents=(failed,)), {failed}),
        "matter": (Selector(firm=firm, matter=beside.id), {neighbours}),
        "firm": (Selector(firm=firm), {failed, neighbours, lost}),
        "discrepancy": (Selector(discrepancies=("request_stalled",)), {lost}),
        "status": (Selector(registration=(RegistrationStatus.REGISTRATION_FAILED,)), {failed, others, neighbours}),
        "error": (Selector(errors=(FailureKind.RUN_EXPIRED,)), {failed, others, neighbours}),
        "another error": (Selector(errors=(FailureKind.INFECTED,)), set()),
        "age": (
            Selector(firm=firm, registration=(RegistrationStatus.REGISTRATION_FAILED,), older_than=timedelta(hours=1)),
            {failed},
        ),
    }
    engine, ground = loop.database.engine(Role.OBSERVER), partial(ground_of, settings=loop.settings)
    for name, (selector, wanted) in chosen.items():
        counts, complete = rehearsal.preview(engine, selector, ground_of=ground, most=10_000)
        assert complete
        assert counts.redriven == len(wanted), name
        assert set(counts.firms) == {str(elsewhere.firm if each == others else firm) for each in wanted}, name
    assert loop.ledger() == []
    assert loop.matter.count("ops.redrive") == 0
    done = _run(loop, _request(chosen["error"][0]))
    assert (done.state, done.counts.redriven) == (State.FINISHED, 3)
    assert {_status(loop, each) for each in (failed, others, neighbours)} == {RegistrationStatus.QUEUED}
    assert {(row.reason, row.requested_by, row.detail["redrive"]) for row in loop.ledger()} == {
        ("the agent is back", "ada", str(done.request.id))
    }


def test_what_is_healthy_or_a_persons_is_left_alone(loop: Loop) -> None:
    """Before the relay, on the queue, with the agent: left. A person's decision is taken back only where it is named."""
    loop.consumers()
    queued, _ = loop.queued()
    waiting, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock(), message_id = 'm' WHERE id = :id",
        id=ticket.id,
    )
    running = loop.matter.document()
    loop.matter.dispatch(running)
    review = _failed(loop)
    loop.matter.prepare("ALTER TABLE documents DISABLE TRIGGER USER")
    loop.matter.prepare(
        "UPDATE documents SET registration_status = 'registration_needs_review' WHERE id = :id", id=review
    )
    loop.matter.prepare("ALTER TABLE documents ENABLE TRIGGER USER")
    done = _run(loop, _request(Selector(firm=loop.matter.firm)))
    assert done.counts.redriven == 0
    assert done.counts.totals == {
        Choice.LEFT_TO_RELAY: 1,
        Choice.LEFT_UNDER_WAY: 2,
        Choice.LEFT_TO_PERSON: 1,
    }
    assert {entry.document_id: (entry.result, entry.action) for entry in loop.ledger()} == {
        queued: ("left", Choice.LEFT_TO_RELAY),
        waiting: ("left", Choice.LEFT_UNDER_WAY),
        running: ("left", Choice.LEFT_UNDER_WAY),
        review: ("left", Choice.LEFT_TO_PERSON),
    }
    done = _run(loop, _request(Selector(firm=loop.matter.firm, under_way=True)))
    assert done.counts.totals[Choice.AGAIN] == 1
    assert loop.generations(waiting) == [1, 2]
    assert loop.generations(queued) == [1]
    done = _run(loop, _request(Selector(documents=(review,))))
    assert done.counts.totals == {Choice.RETRY: 1}
    assert _status(loop, review) is RegistrationStatus.QUEUED


def test_a_file_that_could_not_be_read_is_read_again_as_a_new_epoch(loop: Loop) -> None:
    """By status and error; a part that failed for good is asked for again beside the registration."""
    unread = loop.matter.document()
    loop.matter.prepare("ALTER TABLE documents DISABLE TRIGGER USER")
    loop.matter.prepare(
        "UPDATE documents SET processing_status = 'failed', failure_kind = 'extraction_crashed' WHERE id = :id",
        id=unread,
    )
    loop.matter.prepare("ALTER TABLE documents ENABLE TRIGGER USER")
    done = _run(loop, _request(Selector(errors=(FailureKind.EXTRACTION_CRASHED,))))
    assert done.counts.totals == {Choice.RE_EXTRACT: 1}
    found = loop.matter.read(unread)
    assert (found.processing_status, found.extraction_epoch) == (ProcessingStatus.UPLOADED, 2)
    registered = loop.matter.registered()
    run = loop.matter.dispatch_part(registered, Part.CARD)
    loop.matter.apply(loop.matter.settle(run, "rejected", message="It was no card."))
    loop.matter.prepare("UPDATE record.understanding_part SET next_attempt_at = NULL WHERE part = 'card'")
    done = _run(loop, _request(Selector(documents=(registered,), aspects=(Aspect.CARD,))))
    assert done.counts.totals == {Choice.RETRY: 1}
    assert loop.matter.part(registered, Part.CARD).state == "requested"


def test_parked_tickets_are_written_anew(loop: Loop) -> None:
    """The relay's own refusals are forgotten by a new generation, and the parked row is closed."""
    parked = [loop.queued() for _ in range(3)]
    for _document, ticket in parked:
        loop.matter.prepare(
            "UPDATE ops.document_ingest_outbox SET parked_at = app.clock(), attempts = 5, last_error = 'x' WHERE id = :id",
            id=ticket.id,
        )
    done = _run(loop, _request(Selector(discrepancies=("ticket_parked",))))
    assert done.counts.totals == {Choice.REPAIR: 3}
    assert loop.matter.count("ops.document_ingest_outbox", "parked_at IS NOT NULL AND handled_at IS NULL") == 0
    for document, _ticket in parked:
        assert loop.generations(document) == [1, 2]


def test_an_interrupted_redrive_goes_on_where_it_stopped_and_does_nothing_twice(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after two batches, killed inside the third; resumed by its id: each document once. Then its id does nothing."""
    monkeypatch.setattr(redrive, "BATCH", 3)
    failed = {_failed(loop) for _ in range(10)}
    request = _request(Selector(registration=(RegistrationStatus.REGISTRATION_FAILED,)))
    engine = loop.database.engine(Role.RECONCILER)
    redrive.begin(engine, request)
    stop = threading.Event()
    batches: list[int] = []

    def tell(counts: tallies.Counts) -> None:
        batches.append(counts.redriven)
        if len(batches) == 2:
            stop.set()

    done = _redriver(loop).run(request, stop=stop, tell=tell)
    assert (done.state, batches) == (State.RUNNING, [3, 6])

    def dies(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tallies.Counts, "as_json", dies)
        with pytest.raises(KeyboardInterrupt):
            _redriver(loop).batch(request)
    assert loop.matter.count("documents", "registration_status = 'queued'") == 6
    resumed = redrive.resume(engine, request.id)
    assert resumed.request == request
    done = _redriver(loop).run(resumed.request, stop=threading.Event(), tell=lambda counts: None)
    assert (done.state, done.counts.redriven) == (State.FINISHED, 10)
    assert [row.document_id for row in loop.ledger()].count(next(iter(failed))) == 1
    assert {row.document_id for row in loop.ledger()} == failed
    # the very same request again, after everything failed anew
    loop.matter.prepare("ALTER TABLE documents DISABLE TRIGGER USER")
    loop.matter.prepare("UPDATE documents SET registration_status = 'registration_failed'")
    loop.matter.prepare("ALTER TABLE documents ENABLE TRIGGER USER")
    assert _run(loop, request).counts.redriven == 10
    assert len(loop.ledger()) == 10
    with pytest.raises(RedriveRefused):
        redrive.begin(engine, replace(request, reason="another"))


def test_a_request_whose_cursor_was_set_back_does_nothing_twice(loop: Loop) -> None:
    """The ledger knows what it has done, though each document would be redriven again by what it is now."""
    document = _failed(loop)
    request = _request(Selector(documents=(document,), under_way=True))
    assert _run(loop, request).counts.redriven == 1
    ticket = loop.matter.read(document).registration_ticket_id
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock(), message_id = 'm' WHERE id = :id", id=ticket
    )
    loop.matter.prepare("UPDATE ops.redrive SET state = 'running', cursor = NULL, finished_at = NULL")
    again = _redriver(loop).run(request, stop=threading.Event(), tell=lambda counts: None)
    assert again.state is State.FINISHED
    assert loop.matter.read(document).registration_ticket_id == ticket
    assert len(loop.ledger(document)) == 1


def test_two_that_carry_out_one_request_share_it(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side: every document once, and the counts are right."""
    monkeypatch.setattr(redrive, "BATCH", 2)
    for _ in range(8):
        _failed(loop)
    request = _request(Selector(registration=(RegistrationStatus.REGISTRATION_FAILED,)))
    redrive.begin(loop.database.engine(Role.RECONCILER), request)
    threads = [
        threading.Thread(
            target=_redriver(loop).run, args=(request,), kwargs={"stop": threading.Event(), "tell": lambda counts: None}
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done = redrive.resume(loop.database.engine(Role.RECONCILER), request.id)
    assert (done.state, done.counts.redriven, len(loop.ledger())) == (State.FINISHED, 8, 8)


def test_a_document_that_is_busy_stops_no_other(loop: Loop) -> None:
    """Live work holds one document: the others are redriven, and the busy one is counted as such."""
    documents = [_failed(loop) for _ in range(3)]
    with loop.database.preparer.begin() as holder:
        holder.exec_driver_sql(f"SELECT 1 FROM documents WHERE id = '{documents[1]}' FOR NO KEY UPDATE")
        done = _run(loop, _request(Selector(documents=tuple(documents))))
    assert (done.counts.redriven, done.counts.failed) == (2, 1)
    assert set(done.counts.firms) == {str(loop.matter.firm)}
    assert _status(loop, documents[1]) is RegistrationStatus.REGISTRATION_FAILED
    (row,) = loop.ledger(documents[1])
    assert (row.result, row.action, row.detail["redrive"]) == ("left", "busy", str(done.request.id))


def test_a_document_whose_redrive_fails_stands_in_the_ledger(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error, with whose request it was; nothing of it was changed, and a second request may try again."""
    documents = [_failed(loop) for _ in range(3)]

    def fails(choice: Choice, case: Case, *more: Any, **named: Any) -> Any:
        found = choosing.carry_out(choice, case, *more, **named)
        if case.document.id == documents[1]:
            raise ValueError("a row that cannot be counted with")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(redrive, "carry_out", fails)
        done = _run(loop, _request(Selector(documents=tuple(documents))))
    assert (done.state, done.counts.redriven, done.counts.failed) == (State.FINISHED, 2, 1)
    assert _status(loop, documents[1]) is RegistrationStatus.REGISTRATION_FAILED
    (row,) = loop.ledger(documents[1])
    assert (row.result, row.action, row.requested_by) == ("error", "failed", "ada")
    assert _run(loop, _request(Selector(documents=(documents[1],)))).counts.redriven == 1


def test_who_comes_by_again_after_being_busy_is_redriven(loop: Loop) -> None:
    """The ledger's row of having been busy is no row of having been done."""
    document = _failed(loop)
    request = _request(Selector(documents=(document,)))
    with loop.database.preparer.begin() as holder:
        holder.exec_driver_sql(f"SELECT 1 FROM documents WHERE id = '{document}' FOR NO KEY UPDATE")
        assert _run(loop, request).counts.failed == 1
    loop.matter.prepare("UPDATE ops.redrive SET state = 'running', cursor = NULL, finished_at = NULL")
    again = _redriver(loop).run(request, stop=threading.Event(), tell=lambda counts: None)
    assert again.counts.redriven == 1
    assert [row.result for row in loop.ledger(document)] == ["left", "repaired"]


def test_a_crash_at_any_statement_of_a_batch_leaves_nothing_or_all_of_it(loop: Loop) -> None:
    """What is chosen, what is left and what needs nothing: no cursor, no ticket, no row of the ledger before the commit."""
    loop.consumers()
    failed, queued, healthy = [_failed(loop) for _ in range(2)], loop.queued()[0], loop.matter.registered()
    request = _request(Selector(documents=(*failed, queued, healthy, uuid7()), aspects=(Aspect.REGISTRATION,)))
    engine = loop.database.engine(Role.RECONCILER)
    fuse = Fuse(engine)
    redrive.begin(engine, request)
    before, crashed = loop.everything(), []
    for step in range(1, 200):
        fuse.light(step)
        try:
            done = _redriver(loop).batch(request)
        except Crash:
            crashed.append(fuse.reached[-1])
            assert loop.everything() == before, f"something stands of a batch that crashed before {crashed[-1]}"
            continue
        break
    else:
        raise AssertionError("the batch never came to its end")
    fuse.light(0)
    assert crashed[-1] == "COMMIT"
    assert len(crashed) > 20
    assert done is not None
    assert done.counts.totals == {
        Choice.RETRY: 2,
        Choice.LEFT_TO_RELAY: 1,
        Choice.NOTHING: 1,
        tallies.ABSENT: 1,
    }
    assert _redriver(loop).batch(request) is None
    assert sorted((row.document_id, row.result) for row in loop.ledger()) == sorted(
        [*((each, "repaired") for each in failed), (queued, "left"), (healthy, "left")]
    )


def test_the_rate_is_kept(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents a batch at 60 a minute: two seconds of waiting behind each."""
    monkeypatch.setattr(redrive, "BATCH", 2)
    for _ in range(4):
        _failed(loop)

    class Waits(threading.Event):
        waited: list[float | None] = []  # noqa: RUF012 - of this one test

        def wait(self, timeout: float | None = None) -> bool:
            self.waited.append(timeout)
            return False

    request = _request(Selector(registration=(RegistrationStatus.REGISTRATION_FAILED,)))
    redrive.begin(loop.database.engine(Role.RECONCILER), request)
    _redriver(loop, per_minute=60.0).run(request, stop=Waits(), tell=lambda counts: None)
    assert Waits.waited[:2] == [2.0, 2.0]


def test_many_exempt_documents_hide_nobody(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages look at a bounded number of rows, and go on behind those that are not meant."""
    monkeypatch.setattr("baton.reconcilers.selection.EXAMINED", 4)
    monkeypatch.setattr(redrive, "BATCH", 2)
    for _ in range(9):
        loop.matter.document()
    failed = {_failed(loop) for _ in range(5)}
    done = _run(loop, _request(Selector(firm=loop.matter.firm, registration=(RegistrationStatus.REGISTRATION_FAILED,))))
    assert done.counts.redriven == 5
    assert {row.document_id for row in loop.ledger()} == failed


def test_three_redrives_within_five_minutes_are_three_dispatches(loop: Loop, aws: AwsAccount) -> None:
    """On a FIFO queue, through the relay to the agent: a document that fails three times is asked for three times more."""
    desk = Desk(loop.matter, aws)
    queue = Queue(desk.clients, QueueSpec("redriven.fifo", visibility=30))
    queue.ensure()
    document = loop.matter.document()
    desk.write_pages(document, ("Only page.",))
    loop.age(document)
    with ScriptedAgent([status(400)]) as agent:
        done = _run(loop, _request(Selector(documents=(document,))))
        assert done.counts.redriven == 1
        for served in range(1, 5):
            ticket = _through(loop, queue, document)
            assert ticket.generation == served
            desk.dispatch(ticket, agent.url)
            assert _status(loop, document) is RegistrationStatus.REGISTRATION_FAILED
            if served < 4:
                assert _run(loop, _request(Selector(documents=(document,)))).counts.redriven == 1
        assert len(agent.invocations) == 4
    keys = {row[0] for row in loop.matter.rows("SELECT idempotency_key FROM ops.document_ingest_outbox")}
    assert len(keys) == 4


def _through(loop: Loop, queue: Queue, document: UUID) -> Ticket:
    """The relay sends what is due; the one message that arrives leads to its ticket."""
    relay = Relay(
        loop.database.engine(Role.RELAY),
        lane=Lane.REGISTRAR,
        sender=QueueSender(queue, parallel=1),
        config=RelaySettings(),
    )
    try:
        relay.run_once()
    finally:
        relay.close()
    (message,) = queue.receive(wait=5)
    queue.delete_batch([message.receipt])
    found = envelope.parse(message.body)
    assert found.event_type is EventType.REGISTRATION_REQUESTED
    (ticket,) = [each for each in _tickets(loop, document) if each.id == found.ticket_id]
    assert ticket.idempotency_key == found.idempotency_key
    return ticket


def _tickets(loop: Loop, document: UUID) -> list[Ticket]:
    with loop.database.preparer.connect() as connection:
        rows = connection.execute(select(*TICKET_COLUMNS).where(outbox.c.document_id == document))
        return [as_ticket(row) for row in rows]


def test_what_was_chosen_and_left_alone_stands_in_the_ledger_with_why(loop: Loop) -> None:
    """Once for each request; documents that are not there are counted; it is none of the attempts that are counted."""
    loop.consumers()
    queued, failed = loop.queued()[0], _failed(loop)
    gone, healthy = loop.matter.document(), loop.matter.registered()
    loop.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=gone)
    request = _request(Selector(documents=(queued, failed, gone, healthy, uuid7()), aspects=(Aspect.REGISTRATION,)))
    counts, _ = rehearsal.preview(
        loop.database.engine(Role.OBSERVER),
        request.selector,
        ground_of=partial(ground_of, settings=loop.settings),
        most=100,
    )
    done = _run(loop, request)
    assert done.counts.left == counts.left == {Choice.LEFT_TO_RELAY: 1, Choice.NOTHING: 1, tallies.ABSENT: 2}
    (left,) = [row for row in loop.ledger(queued) if row.result == "left"]
    assert [(row.result, row.action) for row in loop.ledger(healthy)] == [("left", Choice.NOTHING)]
    assert (left.document_id, left.action, left.discrepancy) == (queued, Choice.LEFT_TO_RELAY, redrive.BY_HAND)
    assert (left.requested_by, left.detail["redrive"]) == ("ada", str(request.id))
    assert [row.document_id for row in loop.ledger() if row.result == "repaired"] == [failed]


def test_a_request_that_was_stopped_does_nothing_until_it_is_resumed(loop: Loop) -> None:
    """And one that is finished cannot be stopped any more."""
    failed = _failed(loop)
    engine = loop.database.engine(Role.RECONCILER)
    request = _request(Selector(documents=(failed,)))
    assert redrive.find(engine, request.id) is None
    redrive.begin(engine, request)
    redrive.halt(engine, request.id)
    assert _redriver(loop).batch(request) is None
    redrive.resume(engine, request.id)
    assert _redriver(loop).run(request, stop=threading.Event(), tell=lambda counts: None).state is State.FINISHED
    redrive.halt(engine, request.id)
    found = redrive.find(engine, request.id)
    assert found is not None
    assert (found.state, found.counts.redriven) == (State.FINISHED, 1)
