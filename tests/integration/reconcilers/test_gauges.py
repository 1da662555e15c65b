"""What a loop shows of a pass and of how things stand: true, bounded, and never of a whole table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.db.states import Lane
from baton.db.tables import documents
from baton.reconcilers import gauges
from baton.reconcilers.results import Effect, Guard, Mode, PassResult
from baton.runs import breaker
from baton.settings.agents import Breaker
from baton.telemetry import instruments
from support.reconciling import Loop


@pytest.fixture(autouse=True)
def isolated() -> Iterator[None]:
    """Metrics of this test alone."""
    with instruments.isolated():
        yield


def shown(name: str, labels: Mapping[str, str] | None = None) -> float | None:
    """The value of ``pramaan_<name>``."""
    return instruments.reading(f"pramaan_{name}", labels=labels or {})


def told(loop: Loop, result: PassResult) -> None:
    """Show the result as the loop does, as the reconciler's role."""
    memory = loop.reconciler().memory
    gauges.tell(loop.database.engine(Role.RECONCILER), result, memory=memory)


def test_what_was_found_repaired_and_held_is_shown_by_name(loop: Loop) -> None:
    """Each discrepancy by count and age, each repair by result, each refusal by its guard; and nothing once it is healed."""
    loop.consumers()
    loop.lost(3)
    limited = loop.limited(repairs_per_minute=2)
    told(loop, limited.repair())
    stalled = {"discrepancy": "request_stalled"}
    assert shown("reconcile_discrepancies", stalled) == 3
    assert 3000 < (shown("reconcile_discrepancy_oldest_seconds", stalled) or 0) < 4000
    assert shown("reconcile_repairs_total", {**stalled, "result": "repaired"}) == 2
    assert shown("reconcile_refused_total", {"guard": "rate"}) == 1
    assert shown("reconcile_passes_total", {"outcome": "done"}) == 1
    assert (shown("reconcile_last_pass_timestamp_seconds") or 0) > 1e9
    told(loop, loop.limited(repairs_per_minute=100).repair())
    told(loop, loop.repair())
    assert shown("reconcile_discrepancies", stalled) == 0
    assert shown("reconcile_discrepancy_oldest_seconds", stalled) == 0
    assert shown("reconcile_discrepancies", {"discrepancy": "state_impossible"}) == 0


def test_a_pass_that_was_told_to_stop_leaves_the_levels_alone(loop: Loop) -> None:
    """What it has not looked at is not healed: levels and the time of the last pass are those of the last whole one."""
    loop.consumers()
    loop.lost(2)
    told(loop, loop.limited(repairs_per_minute=0).repair())
    whole = shown("reconcile_last_pass_timestamp_seconds")
    told(loop, PassResult(mode=Mode.REPAIR, finished=False))
    assert shown("reconcile_discrepancies", {"discrepancy": "request_stalled"}) == 2
    assert shown("reconcile_last_pass_timestamp_seconds") == whole
    assert shown("reconcile_passes_total", {"outcome": "stopped"}) == 1


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (PassResult(mode=Mode.REPAIR), "done"),
        (PassResult(mode=Mode.REPAIR, failures=["scrub"]), "partial"),
        (PassResult(mode=Mode.REPAIR, finished=False, failures=["scrub"]), "stopped"),
    ],
)
def test_a_pass_is_called_what_it_was(result: PassResult, outcome: str) -> None:
    """Done, done in part, or stopped."""
    assert gauges.outcome_of(result) == outcome


def test_a_repair_that_failed_makes_the_pass_partial() -> None:
    """Nothing may look done that was not."""
    result = PassResult(mode=Mode.REPAIR)
    result.effects["request_stalled", Effect.ERROR] += 1
    assert gauges.outcome_of(result) == "partial"


def test_documents_are_counted_by_status_and_the_oldest_registering_has_its_age(loop: Loop) -> None:
    """Of living documents; one that was deleted is nobody's trouble."""
    registering = loop.matter.document()
    loop.matter.dispatch(registering)
    loop.age(registering, seconds=900.0)
    gone = loop.matter.document()
    loop.matter.dispatch(gone)
    loop.age(gone, seconds=9000.0)
    loop.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=gone)
    loop.queued()
    told(loop, PassResult(mode=Mode.REPAIR))
    counts = {status: shown("documents", {"status": status}) for status in ("queued", "registering", "registered")}
    assert counts == {"queued": 1, "registering": 1, "registered": 0}
    assert 899 < (shown("documents_registering_oldest_seconds") or 0) < 1000


def test_a_count_ends_at_its_cap(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the table is; the cap is one more than a count that is shown as it is."""
    monkeypatch.setattr(gauges, "CAP", 3)
    for _ in range(5):
        loop.queued()
    capped = gauges._capped(documents, documents.c.registration_status == "queued")
    with loop.database.engine(Role.OBSERVER).connect() as connection:
        assert connection.execute(capped).scalar_one() == 3


def test_a_lane_shows_what_is_open_and_whether_anybody_is_there(loop: Loop) -> None:
    """How many tickets were sent and not handled, since when the oldest is, and that nobody consumes them."""
    loop.lost(2)
    told(loop, loop.repair())
    lane = {"lane": Lane.REGISTRAR.value}
    assert (shown("lane_open_tickets", lane), shown("lane_stalled", lane)) == (2, 1)
    assert 3600 < (shown("lane_oldest_open_seconds", lane) or 0) < 4000
    assert shown("lane_stalled", {"lane": Lane.INGEST.value}) == 0
    loop.consumers()
    told(loop, loop.limited(repairs_per_minute=0).repair())
    assert shown("lane_stalled", lane) == 0


def test_what_needs_a_person_is_counted(loop: Loop) -> None:
    """Parked tickets by lane and open dead letters by queue; none once they are settled."""
    _, ticket = loop.queued()
    loop.matter.prepare("UPDATE ops.document_ingest_outbox SET parked_at = app.clock() WHERE id = :id", id=ticket.id)
    loop.matter.prepare(
        "INSERT INTO ops.dead_letter (queue, message_id, body) VALUES ('results', 'm', '{}'), ('ingest', 'm', '{}')"
    )
    told(loop, PassResult(mode=Mode.REPAIR))
    parked = [shown("document_ingest_outbox_parked", {"lane": lane}) for lane in Lane]
    dead = [shown("dead_letters", {"queue": queue}) for queue in ("ingest", "registrar", "results")]
    assert (parked, dead) == ([0, 1], [1, 0, 1])
    loop.matter.prepare("UPDATE ops.document_ingest_outbox SET handled_at = app.clock(), outcome = 'done'")
    loop.matter.prepare("UPDATE ops.dead_letter SET outcome = 'kept', settled_at = app.clock()")
    told(loop, PassResult(mode=Mode.REPAIR))
    parked = [shown("document_ingest_outbox_parked", {"lane": lane}) for lane in Lane]
    assert (parked, shown("dead_letters", {"queue": "results"})) == ([0, 0], 0)


def test_the_breaker_and_what_holds_repairs_are_shown(loop: Loop) -> None:
    """One state of the breaker at a time; a suspension as 1."""
    told(loop, PassResult(mode=Mode.REPAIR))
    assert (shown("agent_breaker_open"), shown("reconcile_repairs_held")) == (0, 0)
    with loop.database.engine(Role.RECONCILER).begin() as connection:
        breaker.trip(connection, reason="r", config=Breaker())
    loop.matter.prepare(
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (:id, 'suspension', 'r', 'ops')", id=uuid7()
    )
    told(loop, PassResult(mode=Mode.REPAIR))
    assert (shown("agent_breaker_open"), shown("reconcile_repairs_held")) == (1, 1)
    states = {state: shown("agent_breaker_state", {"state": state}) for state in ("closed", "open", "trial")}
    assert states == {"closed": 0, "open": 1, "trial": 0}


def test_a_walk_of_the_scrub_that_ended_has_its_time(loop: Loop) -> None:
    """Never before the first, and then that of the last whole one, which every replica shows."""
    told(loop, PassResult(mode=Mode.REPAIR))
    assert shown("reconcile_last_scrub_timestamp_seconds") == 0
    scrubbing = replace(loop.limited(scrub_rate=1e6, scrub_slice=5), _kept={})
    for _ in range(4):
        loop.matter.document()
    result = scrubbing.repair()
    told(loop, result)
    assert shown("reconcile_scrubbed_total") == result.scrubbed == 4
    assert (shown("reconcile_last_scrub_timestamp_seconds") or 0) > 1e9


def test_every_guard_has_its_own_count(loop: Loop) -> None:
    """Bounded labels: there is one for each, and no other."""
    result = PassResult(mode=Mode.REPAIR)
    result.refused.update(Guard)
    told(loop, result)
    assert {guard: shown("reconcile_refused_total", {"guard": guard.value}) for guard in Guard} == dict.fromkeys(
        Guard, 1
    )
