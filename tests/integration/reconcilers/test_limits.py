"""Limits live in Postgres, by its clock: they hold for all replicas, survive a restart, and hold back repairs, never scans."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Connection

from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import ProcessingStatus, RegistrationStatus
from baton.reconcilers import engine, limits, owner, windows
from baton.reconcilers.judging import findings, judge
from baton.reconcilers.planning import Ground
from baton.reconcilers.repairs import Done, Repairer
from baton.reconcilers.results import Effect, Finding, Guard
from baton.registration import service
from support.reconciling import Loop

BERLIN = ZoneInfo("Europe/Berlin")


def _reconciler(loop: Loop, work: Callable[[Connection], object]) -> None:
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        work(connection)


def _lose_again(loop: Loop, document: UUID, *, ago: float = 3600.0) -> None:
    ticket = loop.matter.read(document).registration_ticket_id
    assert ticket is not None
    loop.lose(ticket, ago=ago)


def test_a_suspension_holds_back_repairs_and_not_scans(loop: Loop) -> None:
    """What is lost is found and counted all the same, and healed once the suspension is lifted."""
    loop.consumers()
    loop.lost(3)
    _reconciler(loop, lambda c: windows.suspend(c, reason="the agent moves house", set_by="ops"))
    result = loop.repair()
    assert (result.found["request_stalled"], result.repaired, result.refused[Guard.SUSPENDED]) == (3, 0, 3)
    _reconciler(loop, windows.resume)
    assert loop.repair().repaired == 3


def test_a_suspension_with_an_end_ends_by_itself(loop: Loop) -> None:
    """By the database's clock."""
    loop.consumers()
    loop.lost()
    _reconciler(
        loop,
        lambda c: windows.suspend(
            c,
            reason="an hour",
            set_by="ops",
            until=c.exec_driver_sql("SELECT app.clock() + interval '1 hour'").scalar_one(),
        ),
    )
    assert loop.repair().repaired == 0
    loop.database.move_clock(3601)
    loop.consumers()
    assert loop.repair().repaired == 1


def test_a_maintenance_window_holds_back_repairs_while_it_is_open(loop: Loop) -> None:
    """Neither before nor after."""
    loop.consumers()
    loop.lost()
    _reconciler(
        loop,
        lambda c: windows.plan_window(
            c,
            reason="upgrade",
            set_by="ops",
            starts_at=c.exec_driver_sql("SELECT app.clock() + interval '10 minutes'").scalar_one(),
            ends_at=c.exec_driver_sql("SELECT app.clock() + interval '20 minutes'").scalar_one(),
        ),
    )
    held = loop.limited(repairs_per_minute=0)
    assert held.repair().refused[Guard.RATE] == 1
    loop.database.move_clock(660)
    loop.consumers()
    assert loop.repair().refused[Guard.WINDOW] == 1
    loop.database.move_clock(1260)
    loop.consumers()
    assert loop.repair().repaired == 1


def test_of_several_the_suspension_is_told_and_then_what_lasts_longest(loop: Loop) -> None:
    """Lifting the suspensions leaves the windows; a window that is over holds nothing."""
    now = loop.matter.rows("SELECT app.clock()")[0][0]

    def window(connection: Connection, reason: str, hours: float) -> None:
        ends = now + timedelta(hours=hours)
        windows.plan_window(connection, reason=reason, set_by="ops", starts_at=now - timedelta(hours=9), ends_at=ends)

    with loop.database.engine(Role.RECONCILER).begin() as connection:
        for reason, hours in (("short", 1), ("long", 5), ("over", -1)):
            window(connection, reason, hours)
        windows.suspend(connection, reason="an hour", set_by="ops", until=now + timedelta(hours=1))
        windows.suspend(connection, reason="for good", set_by="ops")
        held = windows.held(connection)
        assert held is not None
        assert (held.guard, held.reason, held.until) == (Guard.SUSPENDED, "for good", None)
        assert windows.resume(connection) == 2
        held = windows.held(connection)
        assert held is not None
        assert (held.guard, held.reason, held.until) == (Guard.WINDOW, "long", now + timedelta(hours=5))


def test_minutes_that_can_decide_nothing_are_not_kept(loop: Loop) -> None:
    """The first repair of a minute lets go of those that are hours old."""
    loop.matter.prepare(
        "INSERT INTO ops.repair_budget (minute, repairs) SELECT date_trunc('minute', app.clock()) - make_interval(mins => m),"
        " 600 FROM unnest(ARRAY[60, 119, 123, 10000]) m"
    )
    limits.reserve(loop.database.engine(Role.RECONCILER), 1, config=loop.settings.reconcile)
    assert sorted(row[0] for row in loop.matter.rows("SELECT repairs FROM ops.repair_budget")) == [1, 600, 600]


def test_a_minute_has_its_repairs_for_all_replicas(loop: Loop) -> None:
    """Three engines at once make no more than one may, and what one reserved and could not use is another's; the next
    minute has its own.
    """
    loop.consumers()
    loop.lost(12)
    limited = loop.limited(repairs_per_minute=5, batch_size=2)
    loop.database.move_clock(_to_next_minute(loop))
    loop.consumers()
    results = []
    start = threading.Barrier(3)

    def work() -> None:
        reconciler = limited.reconciler()
        start.wait(10)
        results.append(reconciler.run_once())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    made = sum(result.repaired for result in results)
    assert len(results) == 3
    assert 1 <= made <= 5
    assert len(loop.ledger()) == made
    assert limited.repair().repaired == 5 - made
    assert limited.repair().repaired == 0
    loop.database.move_clock(_to_next_minute(loop) + 60)
    loop.consumers()
    assert limited.repair().repaired == 5


def _to_next_minute(loop: Loop) -> float:
    """Seconds by which the server's clock is before the beginning of a minute."""
    return float(loop.matter.rows("SELECT 60.1 - extract(second FROM clock_timestamp())")[0][0])


def test_what_was_reserved_and_not_needed_is_given_back(loop: Loop) -> None:
    """A document that somebody else repaired meanwhile costs nothing of the minute."""
    loop.database.move_clock(_to_next_minute(loop))
    engine = loop.database.engine(Role.RECONCILER)
    config = replace(loop.settings.reconcile, repairs_per_minute=4)
    reserved = limits.reserve(engine, 3, config=config)
    assert reserved.count == 3
    assert limits.reserve(engine, 3, config=config).count == 1
    with engine.begin() as connection:
        limits.give_back(connection, reserved, 2)
        assert limits.left(connection, config=config) == 2


@pytest.mark.parametrize("left", [0, 2])
def test_a_batch_makes_no_more_repairs_than_it_could_reserve(loop: Loop, left: int) -> None:
    """Whatever was planned: another replica may have had the minute since."""
    loop.database.move_clock(_to_next_minute(loop))
    loop.consumers()
    loop.lost(5)
    limited = loop.limited(repairs_per_minute=left)
    engine = loop.database.engine(Role.RECONCILER)
    with engine.connect() as connection:
        ground = limited.reconciler().ground(connection)
        documents = [row[0] for row in loop.matter.rows("SELECT id FROM documents")]
        found = list(findings(judge(connection, documents, ground=ground), ground=ground))
    done = Repairer(engine=engine, settings=limited.settings, store=None, requested_by="test").repair(
        found, ground=ground
    )
    assert [effect for _, effect in done.effects] == [Effect.REPAIRED] * left
    assert [plan.guard for plan in done.plans] == [Guard.RATE] * (5 - left)
    assert len(loop.ledger()) == left


def test_each_further_repair_waits_twice_as_long(loop: Loop) -> None:
    """By the ledger, whoever wrote it; a restart forgets nothing."""
    loop.consumers()
    (document,) = loop.lost()
    patient = loop.limited(backoff_initial=100.0, backoff_max=1000.0, max_attempts=9)
    assert patient.repair().repaired == 1
    for moved, repaired in ((90, 0), (110, 1), (300, 0), (320, 1), (700, 0), (725, 1)):
        loop.database.move_clock(moved)
        loop.consumers()
        _lose_again(loop, document)
        fresh = replace(patient, _kept={})
        result = fresh.repair()
        assert result.repaired == repaired, moved
        if not repaired:
            assert result.refused[Guard.BACKOFF] == 1


def test_when_attempts_are_used_up_registration_fails_visibly(loop: Loop) -> None:
    """With a sentence for counsel, in one transaction, and the loop lets go of it."""
    loop.consumers()
    (document,) = loop.lost()
    limited = loop.limited(max_attempts=2)
    for _ in range(2):
        assert limited.repair().effects[("request_stalled", Effect.REPAIRED)] == 1
        _lose_again(loop, document)
    assert limited.repair().effects[("request_stalled", Effect.GAVE_UP)] == 1
    found = loop.matter.read(document)
    assert found.registration_status is RegistrationStatus.REGISTRATION_FAILED
    assert found.registration_message is not None
    assert str(document) not in found.registration_message
    assert found.next_attempt_at is None
    steps = loop.matter.rows(
        "SELECT from_status, to_status FROM ops.document_status_transition WHERE document_id = :id"
        " AND axis = 'registration' ORDER BY id",
        id=document,
    )
    assert [tuple(step) for step in steps][-2:] == [("queued", "registering"), ("registering", "registration_failed")]
    assert limited.repair().total == 0
    assert loop.matter.count("ops.document_ingest_outbox", "document_id = :id AND handled_at IS NULL", id=document) == 0


def test_when_attempts_are_used_up_extraction_fails_visibly(loop: Loop) -> None:
    """The same on the other axis."""
    loop.consumers()
    document = loop.matter.document()
    loop.matter.prepare(
        "UPDATE documents SET processing_status = 'uploaded', extraction_epoch = 2, extraction_run_id = NULL"
        " WHERE id = :id",
        id=document,
    )
    loop.age(document)
    limited = loop.limited(max_attempts=1)
    assert limited.repair().repaired == 1
    rows = loop.matter.rows("SELECT id FROM ops.document_ingest_outbox WHERE document_id = :id", id=document)
    loop.lose(rows[-1][0])
    assert limited.repair().repaired == 1
    rows = loop.matter.rows(
        "SELECT id FROM ops.document_ingest_outbox WHERE document_id = :id AND handled_at IS NULL", id=document
    )
    loop.lose(rows[-1][0])
    assert limited.repair().effects[("ingest_stalled", Effect.GAVE_UP)] == 1
    ended = "SELECT outcome FROM ops.document_ingest_outbox WHERE id = :id"
    assert loop.matter.rows(ended, id=rows[-1][0]) == [("refused",)]
    found = loop.matter.read(document)
    assert found.processing_status is ProcessingStatus.FAILED
    assert found.processing_message
    assert limited.repair().total == 0


def test_a_retry_by_a_person_begins_a_new_round_of_attempts(loop: Loop) -> None:
    """What was used up before is not held against it."""
    loop.consumers()
    (document,) = loop.lost()
    limited = loop.limited(max_attempts=1)
    limited.repair()
    _lose_again(loop, document)
    limited.repair()
    assert loop.matter.read(document).registration_status is RegistrationStatus.REGISTRATION_FAILED
    with loop.matter.registrar() as connection:
        found = lock_document(connection, document)
        assert found is not None
        assert service.request(connection, found, explicit=True) is not None
    _lose_again(loop, document)
    assert limited.repair().effects[("request_stalled", Effect.REPAIRED)] == 1


def test_a_parked_ticket_is_sent_again_a_few_times_at_long_intervals(loop: Loop) -> None:
    """Then its document fails visibly."""
    document, _ = loop.queued()
    limited = loop.limited(parked_attempts=2, parked_interval=1000.0)
    moved, effects = 0, []
    for _ in range(6):
        loop.matter.prepare(
            "UPDATE ops.document_ingest_outbox SET parked_at = app.clock() - interval '2 hours' WHERE id = ("
            "SELECT registration_ticket_id FROM documents WHERE id = :id) AND handled_at IS NULL",
            id=document,
        )
        result = limited.repair()
        effects.append([effect.value for (_, effect) in result.effects] or [guard.value for guard in result.refused])
        moved += 501
        loop.database.move_clock(moved)
    assert effects == [["repaired"], ["backoff"], ["repaired"], ["backoff"], ["gave_up"], []]
    found = loop.matter.read(document)
    assert (found.registration_status, found.failure_kind) == (
        RegistrationStatus.REGISTRATION_FAILED,
        "ticket_parked",
    )


def test_an_open_breaker_holds_back_what_leads_to_a_run(loop: Loop) -> None:
    """And nothing else: a visible failure, an announcement of a result, cost nothing."""
    loop.consumers()
    loop.lost(2)
    other = loop.matter.document()
    loop.matter.deliver(loop.matter.dispatch(other))
    loop.matter.prepare(
        "UPDATE agents.agent_run SET artifact_ticket_id = NULL, settled_at = app.clock() - interval '1 hour';"
        " DELETE FROM ops.document_ingest_outbox WHERE event_type = 'document.artifact.delivered'"
    )
    loop.matter.prepare(
        "UPDATE ops.dispatch_guard SET breaker = 'open', breaker_since = app.clock(),"
        " retry_at = app.clock() + interval '5 minutes'"
    )
    result = loop.repair()
    assert result.refused[Guard.BREAKER] == 2
    assert dict(result.effects) == {("artifact_unopened", Effect.REPAIRED): 1}


def test_giving_up_spends_nothing_and_is_not_held_back_by_the_breaker(loop: Loop) -> None:
    """Once attempts are used up the document fails visibly, though no run is granted now."""
    loop.consumers()
    (document,) = loop.lost()
    limited = loop.limited(max_attempts=1)
    assert limited.repair().repaired == 1
    _lose_again(loop, document)
    loop.matter.prepare(
        "UPDATE ops.dispatch_guard SET breaker = 'open', breaker_since = app.clock(),"
        " retry_at = app.clock() + interval '5 minutes'"
    )
    assert dict(limited.repair().effects) == {("request_stalled", Effect.GAVE_UP): 1}


def test_an_exhausted_budget_holds_back_what_leads_to_a_run(loop: Loop) -> None:
    """The budget is the one that dispatch asks."""
    loop.consumers()
    loop.lost(2)
    loop.matter.prepare("UPDATE ops.dispatch_guard SET runs_per_hour = 0")
    assert loop.repair().refused[Guard.BUDGET] == 2
    loop.matter.prepare("UPDATE ops.dispatch_guard SET runs_per_hour = NULL")
    assert loop.repair().repaired == 2


def test_a_second_resource_finds_the_database_taken(loop: Loop) -> None:
    """It scans, and repairs nothing, until the owner lets go or is gone."""
    loop.consumers()
    assert loop.repair().total == 0
    loop.lost()
    other = loop.limited(resource="another")
    result = other.repair()
    assert (result.total, result.repaired, result.refused[Guard.OWNER]) == (1, 0, 1)
    loop.database.move_clock(599)
    assert other.repair().repaired == 0
    loop.database.move_clock(601)
    loop.consumers()
    assert other.repair().repaired == 1


def test_replicas_of_one_resource_share_it(loop: Loop) -> None:
    """A claim is renewed by whoever has the name; only the owner lets go."""
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert owner.claim(connection, "mine")
        assert owner.claim(connection, "mine")
        assert not owner.claim(connection, "other")
        assert owner.current(connection) == "mine"
        assert not owner.release(connection, "other")
        assert owner.release(connection, "mine")
        assert owner.current(connection) is None
        assert owner.claim(connection, "other")


def test_whoever_goes_on_working_has_done_so_since_the_beginning(loop: Loop) -> None:
    """Another one only since it has taken the database over."""
    since = "SELECT since FROM ops.owner"

    def claimed(resource: str) -> datetime:
        with loop.database.engine(Role.RECONCILER).begin() as connection:
            assert owner.claim(connection, resource)
        found: datetime = loop.matter.rows(since)[0][0]
        return found

    first = claimed("one")
    assert claimed("one") == first
    loop.database.move_clock(owner.GONE_AFTER.total_seconds() + 60)
    assert claimed("another") > first


def test_a_replica_that_stops_takes_the_name_from_no_other_one(loop: Loop) -> None:
    """Whoever else has it renews it in his next pass; if nobody does, the next resource waits no ten minutes."""
    loop.consumers()
    loop.lost()
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert owner.claim(connection, "mine")
        owner.leave(connection, "other", linger=timedelta(0))
        owner.leave(connection, "mine", linger=timedelta(minutes=3))
        assert owner.current(connection) == "mine"
        assert not owner.claim(connection, "other")
        assert owner.claim(connection, "mine")  # another replica's pass
        owner.leave(connection, "mine", linger=timedelta(days=1))
    loop.database.move_clock(590)
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert owner.current(connection) == "mine"
        owner.leave(connection, "mine", linger=timedelta(minutes=3))  # makes nothing longer than it is
    loop.database.move_clock(601)
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        assert owner.claim(connection, "other")
        owner.leave(connection, "other", linger=timedelta(minutes=3))
    loop.database.move_clock(601 + 181)
    loop.consumers()
    assert loop.limited(resource="mine").repair().repaired == 1


def test_a_long_pass_keeps_the_database_and_ends_where_another_has_taken_it(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is said again while it repairs; once another's stands there it repairs nothing more."""
    loop.consumers()
    loop.lost(4)
    monkeypatch.setattr(engine, "_RENEWED_AFTER", -1.0)
    real = Repairer.repair
    seen = []

    def repair(self: Repairer, findings: Sequence[Finding], *, ground: Ground) -> Done:
        seen.append(loop.matter.rows("SELECT resource, app.clock() - seen_at < interval '1 minute' FROM ops.owner")[0])
        if len(seen) == 2:
            loop.matter.prepare("UPDATE ops.owner SET resource = 'another'")
        elif len(seen) == 1:
            loop.matter.prepare("UPDATE ops.owner SET seen_at = app.clock() - interval '9 minutes'")
        return real(self, findings, ground=ground)

    monkeypatch.setattr(Repairer, "repair", repair)
    result = loop.limited(batch_size=1).repair()
    assert [tuple(each) for each in seen[:2]] == [("default", True)] * 2
    assert (result.repaired, result.refused[Guard.OWNER]) == (2, 2)


def test_limits_of_nothing_at_all_hold_everything_back_and_hide_nothing(loop: Loop) -> None:
    """No repairs, no runs, no attempts: each is found and counted; a parked ticket that may never be sent again fails its
    document visibly at once.
    """
    loop.consumers()
    loop.lost(2)
    parked, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET parked_at = app.clock() - interval '2 hours' WHERE id = :id",
        id=ticket.id,
    )
    nothing = loop.limited(repairs_per_minute=0, backstop_rows=0, scrub_rate=0.0)
    for result in (nothing.observe(), nothing.repair()):
        assert (result.total, result.repaired, result.refused[Guard.RATE], result.failures) == (3, 0, 3, [])
    loop.matter.prepare("UPDATE ops.dispatch_guard SET runs_per_hour = 0")
    result = loop.limited(parked_attempts=0, backstop_rows=0).repair()
    assert result.refused[Guard.BUDGET] == 2
    assert dict(result.effects) == {("ticket_parked", Effect.GAVE_UP): 1}
    assert loop.matter.read(parked).registration_status is RegistrationStatus.REGISTRATION_FAILED


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        # half past two, summer time, to half past two, the night's second one
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)),
        # across the hour that is not there
        (datetime(2027, 3, 28, 1, 30, tzinfo=BERLIN), datetime(2027, 3, 28, 3, 30, tzinfo=BERLIN)),
        # across midnight, and a year's end
        (datetime(2026, 12, 31, 23, 30, tzinfo=BERLIN), datetime(2027, 1, 1, 0, 30, tzinfo=BERLIN)),
    ],
)
def test_a_window_is_between_two_moments_whatever_the_clock_on_the_wall_shows(
    loop: Loop, starts: datetime, ends: datetime
) -> None:
    """Written in local time and kept by a server in local time: it is open for the hour that lies between, and no other."""
    with loop.database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {loop.database.name} SET timezone = 'Europe/Berlin'")
    for role in (Role.RECONCILER, Role.OBSERVER):
        loop.database.engine(role).dispose()
    _reconciler(loop, lambda c: windows.plan_window(c, reason="upgrade", set_by="ops", starts_at=starts, ends_at=ends))
    begin, end = starts.astimezone(UTC), ends.astimezone(UTC)
    assert end - begin == timedelta(hours=1)
    for moment, guard in (
        (begin - timedelta(seconds=30), None),
        (begin + timedelta(seconds=1), Guard.WINDOW),
        (end - timedelta(seconds=30), Guard.WINDOW),
        (end + timedelta(seconds=1), None),
    ):
        loop.database.move_clock((moment - datetime.now(UTC)).total_seconds())
        with loop.database.engine(Role.OBSERVER).connect() as connection:
            held = windows.held(connection)
        assert (None if held is None else held.guard) is guard, moment
        assert held is None or held.until == end


def test_a_lane_without_a_consumer_is_reported_and_nothing_of_it_repaired(loop: Loop) -> None:
    """Consumers stopped for an hour: no ticket is added, and the lane is named."""
    documents = loop.lost(5)
    result = loop.repair()
    assert [lane.value for lane in result.stalled] == ["registrar"]
    assert (result.total, result.repaired) == (0, 0)
    assert [loop.generations(each) for each in documents] == [[1]] * 5
