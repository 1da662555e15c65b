"""Everything at once: deletions in the middle of repairs, and loops, redrives and a sweeper on the same documents."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.documents import doors
from baton.reconcilers import limits, looking, redrive
from baton.reconcilers.explain import ground_of
from baton.reconcilers.redrive import Redriver, Request
from baton.reconcilers.repairs import Repairer
from baton.reconcilers.results import Effect, Guard
from baton.reconcilers.selection import Selector
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.matters import Matter
from support.reconciling import Loop
from support.waiting import wait_until


def _delete(loop: Loop, document: Any) -> None:
    with firm_transaction(loop.database.engine(Role.MEMBER_APP), loop.matter.firm) as connection:
        doors.delete(connection, document_id=document, actor="ada")


def _open_tickets(loop: Loop) -> int:
    return loop.matter.count("ops.document_ingest_outbox", "handled_at IS NULL")


def test_a_document_that_is_deleted_before_it_is_locked_is_not_repaired(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found, planned, and gone when its turn comes: nothing is written for it, nor taken of the minute."""
    loop.consumers()
    (document,) = loop.lost()
    real = limits.reserve

    def reserve(*given: Any, **named: Any) -> Any:
        _delete(loop, document)
        return real(*given, **named)

    monkeypatch.setattr(limits, "reserve", reserve)
    result = loop.repair()
    assert (result.total, result.repaired, result.vanished) == (1, 0, 1)
    assert loop.generations(document) == [1]
    assert (loop.ledger(), _open_tickets(loop)) == ([], 0)
    with loop.database.engine(Role.RECONCILER).connect() as connection:
        assert limits.left(connection, config=loop.settings.reconcile) == loop.settings.reconcile.repairs_per_minute


def test_a_deletion_in_the_middle_of_a_repair_waits_for_it_and_takes_its_ticket_along(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the document is locked and its new ticket is written: both stand, one after the other, and nothing of
    the deleted document is open afterwards.
    """
    loop.consumers()
    (document,) = loop.lost()
    deleting = threading.Thread(target=_delete, args=(loop, document))
    real = Repairer._carry_out

    def carry_out(self: Repairer, *given: Any, **named: Any) -> Any:
        done = real(self, *given, **named)
        deleting.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        wait_until(lambda: loop.matter.rows(waits)[0][0] == 1, 30, what="the deletion waits")
        return done

    monkeypatch.setattr(Repairer, "_carry_out", carry_out)
    assert loop.repair().repaired == 1
    deleting.join(30)
    assert not loop.matter.read(document).live
    assert loop.generations(document) == [1, 2]
    assert _open_tickets(loop) == 0
    assert loop.repair().total == 0


def test_a_deletion_that_is_under_way_is_left_alone(loop: Loop) -> None:
    """Its lock is not waited for; when it is done nothing is left to be repaired."""
    loop.consumers()
    (document,) = loop.lost()
    with firm_transaction(loop.database.engine(Role.MEMBER_APP), loop.matter.firm) as connection:
        doors.delete(connection, document_id=document, actor="ada")
        assert loop.repair().refused[Guard.LOCKED] == 1
    assert loop.repair().total == 0
    assert (loop.ledger(), _open_tickets(loop)) == ([], 0)


def test_loops_redrives_and_a_sweeper_at_once_do_each_thing_once(
    database: Database, aws: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two engines, two redrives and a sweeper over the same documents: no document has two open requests,
    each lost ticket has one successor, each lapsed run was settled once, and everybody finds nothing afterwards.
    """
    desk = Desk(Matter(database, uuid7(), uuid7()), aws)
    loop = Loop(desk.matter, store=desk.store).limited(batch_size=3, page_size=5)
    loop.consumers()
    monkeypatch.setattr(redrive, "BATCH", 3)
    lost = loop.lost(12)
    lapsed = [desk.matter.dispatch(desk.matter.document()) for _ in range(6)]
    desk.matter.prepare(
        "UPDATE agents.agent_run SET accepted_at = created_at - interval '3 hours', created_at = app.clock() -"
        " interval '3 hours', deadline_at = app.clock() - interval '2 hours'"
    )
    requests = [
        Request(id=uuid7(), selector=Selector(firm=desk.matter.firm), reason="all at once", requested_by="ada")
        for _ in range(2)
    ]
    engine = database.engine(Role.RECONCILER)
    for request in requests:
        redrive.begin(engine, request)
    redriver = Redriver(
        engine=engine, settings=loop.settings, ground_of=partial(ground_of, settings=loop.settings), per_minute=1e9
    )
    stop, failed = threading.Event(), []
    start = threading.Barrier(5)

    def work(what: Callable[[], object]) -> None:
        start.wait(30)
        try:
            what()
        except Exception as error:  # noqa: BLE001 - shown at the end
            failed.append(error)

    def redriving(request: Request) -> Callable[[], object]:
        return lambda: redriver.run(request, stop=stop, tell=lambda counts: None)

    reconcilers = [loop.reconciler(), loop.reconciler()]
    works: Sequence[Callable[[], object]] = (
        *(reconciler.run_once for reconciler in reconcilers),
        *(redriving(request) for request in requests),
        desk.sweeper().run_once,
    )
    threads = [threading.Thread(target=work, args=(each,)) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    rest = loop.repair()
    assert (rest.total, rest.errors, rest.failures) == (0, 0, [])
    assert [loop.generations(each) for each in lost] == [[1, 2]] * len(lost)
    states = Counter(dict(desk.matter.rows("SELECT run_id, state FROM agents.agent_run"))[run] for run in lapsed)
    assert states == {"expired": len(lapsed)}
    letters = desk.matter.rows(
        "SELECT run_id, count(*) FROM ops.document_ingest_outbox WHERE event_type = 'document.artifact.delivered'"
        " GROUP BY run_id"
    )
    assert Counter(row[1] for row in letters) == {1: len(lapsed)}
    opened = desk.matter.rows(
        "SELECT document_id, event_type, count(*) FROM ops.document_ingest_outbox WHERE handled_at IS NULL GROUP BY 1, 2"
    )
    assert {row[2] for row in opened} == {1}
    written = Counter((entry.document_id, entry.aspect) for entry in loop.ledger() if entry.result == Effect.REPAIRED)
    assert set(written.values()) == {1}


def test_a_run_that_was_taken_over_while_it_was_looked_for_settles_no_other(
    database: Database, aws: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store said of the one is said of no other: it is looked for in a pass of its own."""
    desk = Desk(Matter(database, uuid7(), uuid7()), aws)
    loop = Loop(desk.matter, store=desk.store)
    document = desk.matter.document()
    runs = [desk.matter.dispatch(document)]
    lapsed = (
        "UPDATE agents.agent_run SET accepted_at = created_at - interval '3 hours', created_at = app.clock() -"
        " interval '3 hours', deadline_at = app.clock() - interval '2 hours' WHERE state = 'pending'"
    )
    desk.matter.prepare(lapsed)
    real = looking.look_for

    def look_for(*given: Any, **named: Any) -> Any:
        found = real(*given, **named)
        if len(runs) == 1:
            desk.matter.settle(runs[0], "expired")
            runs.append(desk.matter.take_over(document))
            desk.matter.prepare(lapsed)
        return found

    monkeypatch.setattr(looking, "look_for", look_for)
    states = "SELECT run_id, state FROM agents.agent_run"
    first = loop.repair()
    assert (first.repaired, first.vanished, first.errors) == (0, 1, 0)
    assert dict(desk.matter.rows(states)) == {runs[0]: "expired", runs[1]: "pending"}
    assert loop.repair().repaired == 1
    assert dict(desk.matter.rows(states)) == {runs[0]: "expired", runs[1]: "expired"}
