"""Two at one document: in whichever order their statements come, the rows say that it happened once."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from baton.aws.errors import AwsError
from baton.aws.receiving import Message
from baton.aws.sending import Entry, SendResult, SendState, Sent
from baton.contract.classification import SetName, intent_key
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.db.states import Lane
from baton.documents import doors, upload
from baton.outbox.relay import Relay
from baton.settings.work import Relay as RelaySettings
from support.crashing.interleaving import ALL, Merge, schedules
from support.dispatching import Desk
from support.matters import turn
from support.scripted_agent import ScriptedAgent, accept

Work = Callable[[], Any]

_NAME = SetName(key=intent_key("set_name"), confidence=0.9, name="Order of 3 March")
#: Of the merges with three switches, how many are left out between two that are played.
_EVERY = 17
#: Statements, more than either of two has.
_MORE = 200
_SAMPLE = 4


@dataclass(frozen=True)
class Pair:
    """Two pieces of work on something made for them, and what must hold when both are over."""

    name: str
    prepare: Callable[[Desk, ExitStack], tuple[Work, Work, Callable[[], None]]]


def _two_dispatches(desk: Desk, ends: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    ticket = desk.queued()
    agent = ends.enter_context(ScriptedAgent([accept]))
    one, two = (ends.enter_context(desk.dispatcher(agent.url, patience=30.0)) for _ in range(2))

    def holds() -> None:
        runs = desk.runs(ticket.document_id)
        assert [run.state for run in runs] == ["pending"]
        assert set(agent.taken) == {runs[0].run_id}
        document = desk.matter.read(ticket.document_id)
        assert (document.registration_status, document.registration_run_id) == ("registering", runs[0].run_id)
        assert desk.matter.reload(ticket).handled_at is not None

    fresh = desk.matter.reload(ticket)
    return lambda: one.dispatch(fresh), lambda: two.dispatch(fresh), holds


def _sweeper_and_results(desk: Desk, ends: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    ticket = desk.queued()
    document = ticket.document_id
    agent = ends.enter_context(ScriptedAgent([accept]))
    desk.dispatch(ticket, agent.url, patience=30.0)
    run = desk.run(desk.matter.read(document).registration_run_id)
    desk.put_artifact(run, turn(_NAME))
    desk.matter.prepare(
        "UPDATE agents.agent_run SET accepted_at = app.clock() - interval '10 minutes',"
        " deadline_at = app.clock() + interval '5 minutes' WHERE run_id = :run",
        run=run.run_id,
    )
    results, sweeper = desk.results(), desk.sweeper(early_look=300.0)
    record = {
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": desk.store.name}, "object": {"key": run.result_key, "size": 1}},
    }
    message = Message(message_id="m", receipt="r", body=json.dumps({"Records": [record]}))

    def holds() -> None:
        assert [each.state for each in desk.runs(document)] == ["delivered"]
        assert desk.matter.count("agents.agent_effect", "run_id = :run", run=run.run_id) == 1
        assert desk.tickets(document, "document.artifact.delivered") == 1

    def sweep() -> None:
        swept = sweeper.run_once()
        assert swept.failed == 0, "the sweeper stumbled over the other's settlement"

    return sweep, lambda: results.handle(message), holds


def _two_appliers(desk: Desk, _: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    document = desk.matter.document()
    ticket = desk.matter.deliver(desk.matter.dispatch(document), turn(_NAME))

    def holds() -> None:
        assert desk.matter.read(document).registration_status == "registered"
        _applied_once(desk, document)

    return lambda: desk.matter.apply(ticket), lambda: desk.matter.apply(ticket), holds


def _re_extraction_and_apply(desk: Desk, _: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    document = desk.matter.document()
    ticket = desk.matter.deliver(desk.matter.dispatch(document), turn(_NAME))

    def again() -> None:
        with firm_transaction(desk.database.engine(Role.MEMBER_APP), desk.matter.firm) as connection:
            doors.re_extract(connection, document_id=document, actor="counsel")

    def holds() -> None:
        found = desk.matter.read(document)
        assert (found.processing_status, found.registration_status) == ("uploaded", "not_requested")
        assert found.extraction_epoch == 2
        assert desk.matter.reload(ticket).handled_at is not None
        assert desk.tickets(document, "document.ingest.requested") == 1
        assert desk.matter.count("record.assertion", "document_id = :id AND kind = 'name'", id=document) <= 1
        _chained(desk, document)

    return again, lambda: desk.matter.apply(ticket), holds


def _deletion_and_apply(desk: Desk, _: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    document = desk.matter.document()
    ticket = desk.matter.deliver(desk.matter.dispatch(document), turn(_NAME))

    def delete() -> None:
        with firm_transaction(desk.database.engine(Role.MEMBER_APP), desk.matter.firm) as connection:
            doors.delete(connection, document_id=document, actor="counsel")

    def holds() -> None:
        assert not desk.matter.read(document).live
        assert desk.matter.reload(ticket).handled_at is not None
        assert desk.matter.count("record.assertion", "document_id = :id AND kind = 'name'", id=document) <= 1
        waiting = "document_id = :id AND handled_at IS NULL"
        assert desk.matter.count("ops.document_ingest_outbox", waiting, id=document) == 0
        _chained(desk, document)

    return delete, lambda: desk.matter.apply(ticket), holds


def _two_finalizers(desk: Desk, _: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    engine, firm = desk.database.engine(Role.MEMBER_APP), desk.matter.firm
    with firm_transaction(engine, firm) as connection:
        document = upload.create_document(
            connection, firm_id=firm, matter_id=desk.matter.id, name="a.txt", content_type="text/plain"
        )
    desk.store.put(document.object_key, b"text", content_type="text/plain")

    def finalize() -> None:
        with firm_transaction(engine, firm) as connection:
            upload.finalize_upload(connection, document_id=document.id, store=desk.store, actor="counsel")

    def holds() -> None:
        assert desk.matter.read(document.id).processing_status == "uploaded"
        assert desk.tickets(document.id, "document.ingest.requested") == 1
        assert desk.matter.count("ops.audit_event", "document_id = :id", id=document.id) == 1
        _chained(desk, document.id)

    return finalize, finalize, holds


@dataclass
class _Noting:
    """Takes whatever is sent."""

    sent: list[str] = field(default_factory=list)

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """All of it."""
        self.sent += [each.key for each in entries]
        return Sent(tuple(SendResult(each.key, SendState.SENT, f"m-{each.key}") for each in entries), None)

    def mend(self, failure: AwsError) -> None:
        """Nothing ever fails."""


def _two_relays(desk: Desk, ends: ExitStack) -> tuple[Work, Work, Callable[[], None]]:
    desk.matter.prepare("UPDATE ops.document_ingest_outbox SET parked_at = app.clock() WHERE dispatched_at IS NULL")
    documents = [desk.matter.document() for _ in range(3)]
    for document in documents:
        desk.matter.dispatch(document)
    sender = _Noting()
    engine = desk.database.engine(Role.RELAY)
    # neither can take all of them, so both have something to send in every order
    config = RelaySettings(batch_size=2)
    one, two = (Relay(engine, lane=Lane.REGISTRAR, sender=sender, config=config) for _ in range(2))
    ends.callback(one.close)
    ends.callback(two.close)

    def holds() -> None:
        mine = desk.matter.rows(
            "SELECT id::text, message_id FROM ops.document_ingest_outbox WHERE document_id = ANY(:ids)"
            " AND dispatched_at IS NOT NULL AND handled_at IS NULL OR id::text = ANY(:sent)",
            ids=documents,
            sent=sender.sent,
        )
        assert len(sender.sent) == len(set(sender.sent)) >= 3
        assert {row[0] for row in mine} == set(sender.sent)
        assert all(row[1] == f"m-{row[0]}" for row in mine)

    return one.run_once, two.run_once, holds


PAIRS = (
    Pair("two-dispatches", _two_dispatches),
    Pair("sweeper-results", _sweeper_and_results),
    Pair("two-appliers", _two_appliers),
    Pair("finalize-twice", _two_finalizers),
    Pair("re-extraction-apply", _re_extraction_and_apply),
    Pair("deletion-apply", _deletion_and_apply),
    Pair("two-relays", _two_relays),
)
_named = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


@_named
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_sample_of_the_merges_of_two_ends_in_the_same_rows(desk: Desk, pair: Pair) -> None:
    """The first statements of one, then the other to its end, at a few places."""
    first, second = _statements(desk, pair)
    played, which = schedules(first, second, every=10**6)
    step = len(played) // _SAMPLE if which == ALL else 1  # else the first cuts: what was read, and not locked yet
    for schedule in played[1 :: max(1, step)][:_SAMPLE]:
        _play(desk, pair, schedule)


@_named
@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_every_merge_of_two_ends_in_the_same_rows(desk: Desk, pair: Pair, tell: Callable[[str], None]) -> None:
    """All merges where they are fewer than 300; otherwise all of two switches, and a share of those of three."""
    first, second = _statements(desk, pair)
    played, which = schedules(first, second, every=_EVERY)
    waited = sum(_play(desk, pair, schedule)[2] for schedule in played)
    tell(f"{pair.name}: {first} and {second} statements, {which}: {len(played)}; in {waited} one waited")
    assert len(played) > 10


def _statements(desk: Desk, pair: Pair) -> tuple[int, int]:
    """How many each says where it comes first: whoever comes second may find little left to do."""
    first, _, _ = _play(desk, pair, ())
    _, second, _ = _play(desk, pair, (1,) * _MORE)
    return first, second


def _play(desk: Desk, pair: Pair, schedule: Sequence[int]) -> tuple[int, int, bool]:
    _connect(desk)
    with ExitStack() as ends:
        first, second, holds = pair.prepare(desk, ends)
        merge = Merge(desk.database, first, second)
        try:
            made = merge.play(schedule)
            holds()
        except Exception as error:
            raise AssertionError(f"{pair.name} in the order {''.join(map(str, schedule))}") from error
        return *made, merge.waited


def _connect(desk: Desk) -> None:
    """Two sessions of each role, greeted before anybody is held: an engine's first one is waited for by the others."""
    for role in (Role.REGISTRAR, Role.SETTLER, Role.MEMBER_APP, Role.RELAY):
        with desk.database.engine(role).connect(), desk.database.engine(role).connect():
            pass


def _applied_once(desk: Desk, document: UUID) -> None:
    assert desk.matter.count("record.assertion", "document_id = :id AND kind = 'name'", id=document) == 1
    assert desk.matter.count("record.intent_claim", "document_id = :id", id=document) == 1
    assert desk.tickets(document, "document.understanding.requested") == 1
    became = "document_id = :id AND to_status = 'registered'"
    assert desk.matter.count("ops.document_status_transition", became, id=document) == 1
    _chained(desk, document)


def _chained(desk: Desk, document: UUID) -> None:
    rows = desk.matter.rows(
        "SELECT axis, from_status, to_status FROM ops.document_status_transition WHERE document_id = :id ORDER BY id",
        id=document,
    )
    last: dict[str, str] = {}
    for axis, before, after in rows:
        assert last.get(axis, before) == before
        last[axis] = after
