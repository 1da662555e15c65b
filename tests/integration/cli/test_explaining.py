"""What explain says of a document: the answer, why, what happens next, and what holds it back."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from baton.reconcilers.explain import explain
from baton.settings.model import Settings
from support.matters import Matter, turn
from support.operators import Operator
from support.reconciling import Loop


@pytest.fixture
def loop(operator: Operator) -> Loop:
    """Passes over a matter that the operator looks at."""
    return Loop(Matter(operator.database, uuid7(), uuid7()))


def _told(operator: Operator, document: UUID, aspect: str = "registration") -> Any:
    ran = operator.run("explain", "--json", document)
    assert ran.code == 0, ran.err
    (found,) = [each for each in ran.json["aspects"] if each["aspect"] == aspect]
    return found


def test_a_lost_ticket_is_explained_clause_by_clause(operator: Operator, loop: Loop) -> None:
    """The discrepancy, its repair that nothing holds back, and what was compared with what."""
    loop.consumers()
    (document,) = loop.lost()
    found = _told(operator, document)
    assert (found["verdict"], found["healthy"], found["owner"]) == ("request_stalled", False, "reconciler")
    assert found["held_back_by"] == []
    answer = found["rows"][-1]
    assert answer["row"] == "request_stalled"
    assert answer["holds"]
    compared = {name: value for clause in answer["clauses"] for name, value in clause["compared"].items()}
    assert compared["document.registration_status"] == "queued"
    assert compared["ticket.life"] == "lost"
    assert compared["ticket.first_received_at"] < compared["ticket.hold_until"]
    assert not any(row["holds"] for row in found["rows"][:-1])
    people = operator.run("explain", document)
    assert people.code == 0
    for words in (
        "Disagrees: registration: request_stalled",
        "nothing holds it back",
        "ticket.life lost",
        "sent as message m",
    ):
        assert words in people.out


def test_a_healthy_document_names_who_moves_next_and_when(operator: Operator, loop: Loop) -> None:
    """Before the relay; then with the agent until its deadline; then at rest."""
    document, _ticket = loop.queued()
    found = _told(operator, document)
    assert (found["verdict"], found["owner"], found["healthy"]) == ("undispatched", "relay", True)
    assert found["due"] is not None
    other = loop.matter.document()
    run = loop.matter.dispatch(other)
    found = _told(operator, other)
    assert (found["verdict"], found["owner"]) == ("with_agent", "agent")
    loop.matter.apply(loop.matter.deliver(run, turn()))
    found = _told(operator, other)
    assert (found["verdict"], found["owner"], found["due"]) == ("registered", "nobody", None)
    people = operator.run("explain", "--all", other)
    assert "intents claimed" not in people.out  # there were none
    assert f"classify run {run} settled: delivered" in people.out


@pytest.mark.parametrize(("visibility", "minutes"), [(60, 5), (900, 30)])
def test_what_waits_on_a_queue_is_lost_sooner_than_its_retention_ends(
    operator: Operator, loop: Loop, monkeypatch: pytest.MonkeyPatch, visibility: int, minutes: int
) -> None:
    """By when stays the retention's end; beside it stands after how long an empty queue says so, and how not to wait."""
    environ = operator.environ
    monkeypatch.setattr(operator, "environ", lambda role: {**environ(role), "BATON_QUEUE_VISIBILITY": str(visibility)})
    loop.consumers()
    document, ticket = loop.queued()
    assert _told(operator, document)["lost_if_empty_for_seconds"] is None
    assert "lost sooner" not in operator.run("explain", document).out
    loop.send(ticket)
    found = _told(operator, document)
    assert (found["verdict"], found["lost_if_empty_for_seconds"]) == ("waiting", minutes * 60)
    ((sent,),) = loop.matter.rows(
        "SELECT dispatched_at FROM ops.document_ingest_outbox WHERE dispatched_at IS NOT NULL"
    )
    assert datetime.fromisoformat(found["due"]) == sent + timedelta(seconds=Settings().queues.retention)
    people = " ".join(operator.run("explain", document).out.split())
    assert f"if its queue is seen empty for {minutes} min after it was sent" in people
    assert f"baton redrive {document} --under-way --reason" in people


@pytest.mark.parametrize(
    ("statement", "held_by"),
    [
        (
            "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (gen_random_uuid(), 'suspension', 'drill', 'ada')",
            ["suspended"],
        ),
        (
            (
                "INSERT INTO ops.maintenance (id, kind, ends_at, reason, set_by) VALUES"
                " (gen_random_uuid(), 'window', app.clock() + interval '1 hour', 'move', 'ada')"
            ),
            ["window"],
        ),
        ("UPDATE ops.dispatch_guard SET breaker = 'open', retry_at = app.clock() + interval '5 minutes'", ["breaker"]),
        ("UPDATE ops.dispatch_guard SET runs_per_hour = 0", ["budget"]),
        (
            (
                "INSERT INTO ops.repair_budget (minute, repairs) SELECT date_trunc('minute', app.clock() + n * interval"
                " '1 minute'), 600 FROM generate_series(0, 2) n"
            ),
            ["rate"],
        ),
        ("INSERT INTO ops.owner (resource) VALUES ('another')", ["owner"]),
    ],
)
def test_what_holds_a_repair_back_is_named(operator: Operator, loop: Loop, statement: str, held_by: list[str]) -> None:
    """Suspension, window, breaker, budget, rate, and another resource's loops."""
    loop.consumers()
    (document,) = loop.lost()
    loop.matter.prepare(statement)
    assert _told(operator, document)["held_back_by"] == held_by
    assert f"({held_by[0]})" in operator.run("explain", document).out


def test_a_grace_and_a_backoff_are_told_with_their_end(operator: Operator, loop: Loop) -> None:
    """What is too young to count says until when; what was repaired before, when its next turn is."""
    loop.consumers()
    document = loop.matter.document()  # indexed, and nobody asked for its registration
    found = _told(operator, document)
    assert (found["verdict"], found["disagrees"], found["held_back_by"]) == ("settling", "request_missing", ["grace"])
    assert found["held_back_until"] == found["due"] > operator.run("explain", "--json", document).json["now"]
    (lost,) = loop.lost()
    assert loop.repair().repaired == 1
    loop.lose(loop.matter.read(lost).registration_ticket_id or 0, ago=1800)
    found = _told(operator, lost)
    assert (found["verdict"], found["held_back_by"]) == ("request_stalled", ["backoff"])
    assert found["held_back_until"] is not None
    assert "request_stalled, redrove, repaired" in operator.run("explain", lost).out


@pytest.mark.parametrize(("backoff", "later"), [(3600, "backoff"), (300, "grace")])
def test_of_a_grace_and_a_backoff_at_once_the_later_end_is_told(
    operator: Operator, loop: Loop, monkeypatch: pytest.MonkeyPatch, backoff: int, later: str
) -> None:
    """What was repaired a moment ago and disagrees anew: both hold it back, whichever is over first."""
    environ = operator.environ
    waits = {
        "BATON_RECONCILE_GRACES": "request_ticket_missing=600",
        "BATON_RECONCILE_BACKOFF_INITIAL": str(backoff),
        "BATON_RECONCILE_BACKOFF_MAX": str(backoff),
    }
    monkeypatch.setattr(operator, "environ", lambda role: {**environ(role), **waits})
    document, _ticket = loop.queued()
    loop.erase_request(document)
    assert loop.repair().repaired == 1
    loop.erase_request(document)
    loop.age(document, seconds=0)
    ((repaired,),) = loop.matter.rows("SELECT at FROM ops.registration_repair")
    found = _told(operator, document)
    assert (found["disagrees"], found["held_back_by"]) == ("request_ticket_missing", ["grace", "backoff"])
    ends = {"grace": datetime.fromisoformat(found["due"]), "backoff": repaired + timedelta(seconds=backoff)}
    assert datetime.fromisoformat(found["held_back_until"]) == ends[later] == max(ends.values())
    people = operator.run("explain", document).out
    assert "held back: its grace ends at" in people
    assert "held back: an earlier repair is given its time (backoff), until" in people


def test_a_stalled_lane_is_no_loss_and_said_so(operator: Operator, loop: Loop) -> None:
    """Nobody consumes: the ticket waits, however old, and the lane is shown as stalled."""
    (document,) = loop.lost()
    assert _told(operator, document)["verdict"] == "held"
    assert "none alive: what is sent waits" in operator.run("explain", document).out


def test_a_deleted_documents_pending_run_is_told(operator: Operator, loop: Loop) -> None:
    """What still runs for it, what will be done about that, and the run in its timeline."""
    document = loop.matter.document()
    run = loop.matter.dispatch(document)
    loop.matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=document)
    told = operator.run("explain", "--json", document).json
    (found,) = [each for each in told["aspects"] if each["aspect"] == "registration"]
    assert (found["disagrees"], found["held_back_by"]) == ("deleted_in_flight", ["grace"])
    assert any(each["run"] == str(run) for each in told["timeline"])


def test_the_explanation_and_the_classification_never_differ(operator: Operator, loop: Loop) -> None:
    """For every document of a mixed lot: the row whose clauses all hold is the verdict, and nothing is written."""
    loop.consumers()
    documents = [*loop.lost(2), loop.queued()[0], loop.matter.registered(), loop.matter.document()]
    before = loop.matter.rows("SELECT d::text FROM documents d ORDER BY id")
    with operator.database.engine(Role.OBSERVER).connect() as connection:
        for document in documents:
            found = explain(connection, document, settings=Settings())
            assert found is not None
            for seen in found.aspects:
                wanted = seen.verdict.settling.name if seen.verdict.settling else seen.verdict.name
                assert seen.answer is not None
                assert seen.answer.name == wanted
                assert seen.answer is seen.rows[-1]
    assert loop.matter.rows("SELECT d::text FROM documents d ORDER BY id") == before


def test_an_unknown_document_and_a_wrong_role(operator: Operator, loop: Loop) -> None:
    """Exit code 1 for what is not there; 77 for a role that is neither observer nor reconciler."""
    assert operator.run("explain", uuid4()).code == 1
    document, _ticket = loop.queued()
    assert operator.run("explain", document, role=Role.RECONCILER).code == 0
    refused = operator.run("explain", document, role=Role.SUPPORT)
    assert refused.code == 77
    assert "baton_observer" in refused.err
