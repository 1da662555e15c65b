"""plan, reconcile and redrive as commands: words, JSON, exit codes, and what they leave alone."""

import json
import signal
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from baton.db.access import Role
from support.matters import Matter
from support.operators import Operator
from support.reconciling import Loop
from support.waiting import wait_until


@pytest.fixture
def loop(operator: Operator) -> Loop:
    """Passes over a matter that the operator looks at."""
    return Loop(Matter(operator.database, uuid7(), uuid7()))


@pytest.fixture(autouse=True)
def _signals() -> Any:
    """Commands take the signals for themselves."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def _failed(loop: Loop) -> UUID:
    document = loop.matter.document()
    run = loop.matter.dispatch(document)
    loop.matter.apply(loop.matter.settle(run, "expired", message="No answer came."))
    loop.matter.prepare("UPDATE documents SET next_attempt_at = NULL WHERE id = :id", id=document)
    return document


def _everything(loop: Loop) -> list[Any]:
    tables = ("documents", "ops.document_ingest_outbox", "agents.agent_run", "ops.registration_repair", "ops.redrive")
    return [loop.matter.rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables]


def test_the_plan_is_what_the_pass_then_does(operator: Operator, loop: Loop) -> None:
    """Found and named beforehand, with nothing written; repaired exactly so by one pass; then nothing disagrees."""
    loop.consumers()
    lost = loop.lost(2)
    before = _everything(loop)
    planned = operator.run("plan", "--json")
    assert planned.code == 0
    assert planned.json["found"] == {"request_stalled": 2}
    plans = {each["document"]: (each["discrepancy"], each["ready"]) for each in planned.json["plans"]}
    assert plans == {str(each): ("request_stalled", True) for each in lost}
    people = operator.run("plan")
    assert "request_stalled" in people.out
    assert str(lost[0]) in people.out
    assert _everything(loop) == before
    done = operator.run("reconcile", "--once", "--json", role=Role.RECONCILER)
    assert done.code == 0, done.err
    assert done.json["effects"] == {"request_stalled": {"repaired": 2}}
    assert "nothing disagrees" in operator.run("plan").out


def test_a_plan_says_what_holds_back_and_which_lane_is_stalled(operator: Operator, loop: Loop) -> None:
    """A suspension; and tickets that nobody consumes are a stalled lane, not a loss."""
    loop.consumers()
    loop.lost()
    loop.matter.prepare(
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (gen_random_uuid(), 'suspension', 'drill', 'ada')"
    )
    assert "held back: suspended 1" in operator.run("plan").out
    loop.matter.prepare("DELETE FROM ops.consumer_heartbeat")
    stalled = operator.run("plan", "--json").json
    assert (stalled["found"], stalled["stalled_lanes"]) == ({}, ["registrar"])
    assert "registrar lane is stalled" in operator.run("plan").out


def test_who_may_only_look_repairs_nothing(operator: Operator, loop: Loop) -> None:
    """The observer's role is refused for repairs: exit code 77. JSON belongs to one pass: exit code 2."""
    loop.consumers()
    (document,) = loop.lost()
    assert operator.run("reconcile", "--once").code == 77
    assert operator.run("redrive", document, "--reason", "x").code == 77
    assert operator.run("reconcile", "--json", role=Role.RECONCILER).code == 2
    assert loop.generations(document) == [1]


def test_redrive_from_the_command_line(operator: Operator, loop: Loop) -> None:
    """Counts by firm beforehand; a reason is required; what was done is told, and its ledger row names who and why."""
    failed = _failed(loop)
    chosen = ("redrive", "--status", "registration_failed", "--error", "run_expired", "--firm", loop.matter.firm)
    dry = operator.run(*chosen, "--dry-run", "--json")
    assert (dry.code, dry.json["redriven"], dry.json["complete"]) == (0, 1, True)
    assert dry.json["firms"] == {str(loop.matter.firm): {"retry": 1}}
    assert "1 would be redriven" in operator.run(*chosen, "--dry-run").out
    refused = operator.run(*chosen, role=Role.RECONCILER)
    assert refused.code == 2
    assert "reason" in refused.err
    done = operator.run(*chosen, "--reason", "the agent is back", "--json", role=Role.RECONCILER)
    assert (done.code, done.json["redriven"], done.json["state"]) == (0, 1, "finished")
    (entry,) = loop.ledger(failed)
    assert (entry.reason, entry.requested_by) == ("the agent is back", "night shift")
    again = operator.run(
        *chosen, "--reason", "the agent is back", "--resume", done.json["redrive"], role=Role.RECONCILER
    )
    assert again.code == 0
    assert len(loop.ledger(failed)) == 1
    another = operator.run("redrive", "--firm", uuid4(), "--resume", done.json["redrive"], role=Role.RECONCILER)
    assert (another.code, "is another request" in another.err) == (2, True)
    assert operator.run("redrive", "--resume", done.json["redrive"], role=Role.RECONCILER).code == 0


def test_what_is_left_under_way_names_the_option_that_takes_it(operator: Operator, loop: Loop) -> None:
    """A rehearsal and a redrive say it, unless the option was given; then the ticket is written anew."""
    document, ticket = loop.queued()
    loop.send(ticket)
    named = "with --under-way"
    dry = operator.run("redrive", document, "--dry-run").out
    assert "left: under way" in dry
    assert named in dry
    assert named in operator.run("redrive", document, "--reason", "asked for", role=Role.RECONCILER).out
    assert loop.generations(document) == [1]
    taken = operator.run("redrive", document, "--under-way", "--reason", "asked for", role=Role.RECONCILER)
    assert (taken.code, named in taken.out) == (0, False)
    assert loop.generations(document) == [1, 2]
    other = loop.matter.document()
    loop.matter.dispatch(other)
    with_agent = operator.run("redrive", other, "--under-way", "--dry-run").out
    assert ("left: under way" in with_agent, named in with_agent) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reason", "x"], "say what to redrive"),
        (["--discrepancy", "nonsense", "--reason", "x"], "there is no discrepancy nonsense"),
        (["--matter", "lease", "--reason", "x"], "name the firm"),
        (["--older-than", "soon", "--firm", "a", "--reason", "x"], "no length of time"),
        (["--resume", str(uuid4())], "there is no redrive"),
        (["--dead-letters"], "a redrive has a reason"),
        (["--dead-letters", "--firm", "a", "--reason", "x"], "dead letters are chosen by"),
        (["--keep", str(uuid4()), "--reason", "x"], "dead letters are chosen by"),
        (["--queue", "ingest", "--status", "failed", "--reason", "x"], "dead letters are chosen by"),
        (["--letter", "1", "--older-than", "1d", "--reason", "x"], "dead letters are chosen by"),
        (["--dead-letters", "--resume", str(uuid4()), "--reason", "x"], "dead letters are chosen by"),
    ],
)
def test_wrong_usage_is_told(operator: Operator, arguments: list[str], words: str) -> None:
    """Exit code 2 and what is missing; nothing is written."""
    ran = operator.run("redrive", *arguments, role=Role.RECONCILER)
    assert ran.code == 2
    assert words in ran.err.replace("\n", " ")


def test_a_grace_of_nothing_is_a_wrong_setting(operator: Operator, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no discrepancy has, by every command that asks: exit code 2, the variable and the names there are."""
    document, _ = loop.queued()
    monkeypatch.setenv("BATON_RECONCILE_GRACES", "run_lapst=5m")
    for arguments, role in (
        (["plan"], Role.OBSERVER),
        (["explain", str(document)], Role.OBSERVER),
        (["reconcile", "--once"], Role.RECONCILER),
        (["reconcile"], Role.RECONCILER),
    ):
        ran = operator.run(*arguments, role=role)
        assert ran.code == 2, ran.err
        assert "BATON_RECONCILE_GRACES: there is no discrepancy run_lapst; there are" in ran.err
        assert "run_lapsed" in ran.err


def test_dead_letters_from_the_command_line(operator: Operator, loop: Loop) -> None:
    """Counted where they lie without being touched; collected and sent again with a reason; strangers kept and listed."""
    document, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock(), message_id = 'm' WHERE id = :id",
        id=ticket.id,
    )
    body = {
        "v": 1,
        "ticket_id": ticket.id,
        "idempotency_key": ticket.idempotency_key,
        "event_type": ticket.event_type,
    }
    with operator.clients() as clients:
        _ingest, registrar, _results = operator.ground(clients)
        assert registrar.dead is not None
        for text in (json.dumps(body), "a stranger"):
            clients.sqs.send_message(
                QueueUrl=registrar.dead.url, MessageBody=text, MessageGroupId="g", MessageDeduplicationId=uuid4().hex
            )
        dry = operator.run("redrive", "--dead-letters", "--dry-run", "--json")
        assert dry.json["on_queues"] == {"ingest": 0, "registrar": 2, "results": 0}
        done = operator.run(
            "redrive", "--dead-letters", "--reason", "mended", "--rate", "1000000", "--json", role=Role.RECONCILER
        )
        assert done.code == 0, done.err
        assert done.json == {"collected": 2, "redriven": 1, "kept": 1, "obsolete": 0}
        assert registrar.dead.depth().empty
    assert loop.generations(document) == [1, 2]
    (kept,) = operator.run("redrive", "--dead-letters", "--dry-run", "--json").json["letters"]
    assert (kept["body"], kept["outcome"], kept["ticket_id"]) == ("a stranger", "kept", None)
    assert "mended" in operator.run("redrive", "--dead-letters", "--dry-run").out


def test_the_loop_runs_as_a_process_and_heals(operator: Operator, loop: Loop) -> None:
    """`baton reconcile` without a cluster: repairs what is lost, collects dead letters, and ends in order when told."""
    loop.consumers()
    (document,) = loop.lost()
    process = operator.start("reconcile", role=Role.RECONCILER, BATON_RECONCILE_INTERVAL="0.2")
    try:
        wait_until(lambda: loop.generations(document) == [1, 2], 60, what="the loop repaired it")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("age", ["2026000d", "999999999d", "99999999999999999999d"])
def test_an_age_that_nothing_has_is_refused_in_words(operator: Operator, age: str) -> None:
    """Longer than time itself goes: what was typed is wrong, not Baton."""
    ran = operator.run("redrive", "--firm", uuid4(), "--older-than", age, "--dry-run")
    assert (ran.code, "longer than time" in ran.err or "at most 36500 days" in ran.err) == (2, True)


def test_a_rate_that_is_no_number_is_refused(operator: Operator) -> None:
    """``nan`` is within no bounds; a wait of it would never end, or never begin."""
    ran = operator.run("redrive", "--firm", uuid4(), "--rate", "nan", "--reason", "x", role=Role.RECONCILER)
    assert (ran.code, "is no finite number" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "edit",
    [
        "selector = '[]'",
        """selector = '{"documents": [5]}'""",
        """selector = '{"firm": "nobody"}'""",
        """selector = '{"older_than": 1e300, "errors": ["run_expired"]}'""",
        """selector = '{"discrepancies": ["what it was called once"]}'""",
        "counts = '7'",
        """counts = '{"firms": {"x": {"retry": "many"}}}'""",
        "cursor = '7'",
        """cursor = '{"matter": "x", "id": null}'""",
    ],
)
def test_a_request_whose_row_makes_no_sense_is_told_and_redrives_nothing(
    operator: Operator, loop: Loop, edit: str
) -> None:
    """Somebody edited it: exit code 2 and words, and whatever it was about stays as it is."""
    failed = _failed(loop)
    request = uuid7()
    loop.matter.prepare(
        "INSERT INTO ops.redrive (id, requested_by, reason, selector) VALUES (:id, 'ada', 'x', CAST(:selector AS jsonb))",
        id=request,
        selector=json.dumps({"firm": str(loop.matter.firm)}),
    )
    loop.matter.prepare(f"UPDATE ops.redrive SET {edit}".replace(":", r"\:"))
    ran = operator.run("redrive", "--resume", request, role=Role.RECONCILER)
    assert ran.code == 2, ran.err
    assert "makes no sense" in ran.err or "at most" in ran.err or "there is no discrepancy" in ran.err
    assert loop.ledger(failed) == []
