"""What the doctor says of relays, consumers, dead letters, queues, and what holds work back."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from baton.aws.queues import Queue
from baton.reconcilers.doctor import traffic
from support.examining import alive, findings_of, prepare
from support.operators import Operator
from support.tickets import Bulk, fill


@pytest.mark.parametrize(("due_ago", "level"), [(20, "ok"), (60, "warning"), (400, "fault")])
def test_a_relay_that_is_late_is_told_by_how_late_it_is(operator: Operator, due_ago: float, level: str) -> None:
    """A moment is nothing, half a minute is something to see to, five minutes are a fault."""
    fill(operator.database, Bulk(count=1, firm=uuid4(), due_ago=1))
    fill(operator.database, Bulk(count=1, firm=uuid4(), due_ago=due_ago))
    relays = operator.run("doctor", "--json").json["findings"]
    ingest = [each for each in relays if each["check"] == "relay" and each["what"].startswith("ingest")]
    assert [each["level"] for each in ingest] == [level]


@pytest.mark.parametrize(
    "what",
    [
        "handled_at = app.clock(), outcome = 'refused'",
        "parked_at = app.clock(), handled_at = app.clock(), outcome = 'refused'",
        "dispatched_at = app.clock(), message_id = 'm', handled_at = app.clock(), outcome = 'done'",
    ],
)
def test_a_ticket_that_is_done_with_waits_for_nobody(operator: Operator, what: str) -> None:
    """Neither for a relay nor for a consumer, nor is it parked any more, however old it is."""
    fill(operator.database, Bulk(count=1, firm=uuid4(), due_ago=4000))
    prepare(operator, f"UPDATE ops.document_ingest_outbox SET {what}")
    findings = operator.run("doctor", "--json").json["findings"]
    assert {each["level"] for each in findings if each["check"] in ("relay", "parked")} == {"ok"}
    assert not [each for each in findings if "a ticket has waited" in each["what"]]


def test_a_parked_ticket_is_no_late_relay(operator: Operator) -> None:
    """It is the queue that refused it."""
    fill(operator.database, Bulk(count=1, firm=uuid4(), due_ago=4000))
    prepare(operator, "UPDATE ops.document_ingest_outbox SET parked_at = app.clock()")
    assert findings_of(operator, check="relay") == []
    assert findings_of(operator, level="warning", check="parked")


def test_a_count_beyond_its_bound_says_so(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody counts a million rows to say that they are many."""
    monkeypatch.setattr(traffic, "COUNTED", 2)
    fill(operator.database, Bulk(count=2, firm=uuid4()))
    prepare(operator, "UPDATE ops.document_ingest_outbox SET parked_at = app.clock()")
    (parked,) = findings_of(operator, level="warning", check="parked")
    assert parked["what"].startswith("2 parked tickets")
    fill(operator.database, Bulk(count=3, firm=uuid4()))
    prepare(operator, "UPDATE ops.document_ingest_outbox SET parked_at = app.clock()")
    (parked,) = findings_of(operator, level="warning", check="parked")
    assert parked["what"].startswith("more than 2 parked tickets")


def test_a_consumer_that_fell_silent_is_told_with_its_last_poll(operator: Operator) -> None:
    """Its row is there still."""
    alive(operator, "registrar", "results")
    alive(operator, "ingest", seconds_ago=600)
    (finding,) = findings_of(operator, check="consumers")
    assert finding["what"] == "ingest: nobody polls, the last one was seen 10 min ago"


def test_versions_side_by_side_are_told(operator: Operator) -> None:
    """While they are: one that is gone is no longer beside the other."""
    alive(operator)
    alive(operator, "registrar", version="0.2.0")
    alive(operator, "results", version="0.2.0", seconds_ago=600)
    (finding,) = findings_of(operator, level="warning", check="consumers")
    assert "registrar: versions 0.1.0, 0.2.0" in finding["what"]


def test_collected_dead_letters_are_told_until_somebody_has_decided(operator: Operator) -> None:
    """By queue, with those that belong to no ticket."""
    fill(operator.database, Bulk(count=1, firm=uuid4(), dispatched=True, due_ago=60))
    columns = "INSERT INTO ops.dead_letter (queue, message_id, body, ticket_id, found_at, outcome, settled_at)"
    found = "app.clock() - interval '3 hours'"
    prepare(
        operator,
        f"{columns} SELECT 'registrar', 'a', 'x', id, {found}, NULL, NULL FROM ops.document_ingest_outbox",
        f"{columns} VALUES ('registrar', 'b', 'x', NULL, {found}, NULL, NULL)",
        f"{columns} VALUES ('registrar', 'c', 'x', NULL, {found}, NULL, NULL)",
        f"{columns} VALUES ('ingest', 'd', 'x', NULL, {found}, 'kept', app.clock())",
    )
    (finding,) = findings_of(operator, level="warning", check="dead-letters")
    assert (
        finding["what"] == "registrar: 3 collected dead letters wait, the oldest for 3 h, 2 of them belong to no ticket"
    )


@pytest.mark.parametrize("state", ["open", "trial"])
def test_a_breaker_that_is_not_closed_is_told(operator: Operator, state: str) -> None:
    """Open or on trial, since when, and why."""
    prepare(
        operator,
        f"UPDATE ops.dispatch_guard SET breaker = '{state}', breaker_since = app.clock() - interval '5 minutes',"
        " reason = 'every run failed', trial_runs_left = 1",
    )
    (finding,) = findings_of(operator, level="warning", check="breaker")
    assert finding["what"].endswith(f"the breaker has been {state} for 5 min: every run failed")
    prepare(operator, "UPDATE ops.dispatch_guard SET retry_at = '2026-01-01 17:30:00+00'")
    (finding,) = findings_of(operator, level="warning", check="breaker")
    assert finding["what"].endswith(": every run failed; trial runs begin at 17:30:00 UTC")


@pytest.mark.parametrize(
    ("starts", "ends", "lifted", "told"),
    [
        ("-1 hour", "1 hour", False, True),
        ("-1 hour", None, False, True),
        ("-2 hours", "-1 hour", False, False),
        ("1 hour", "2 hours", False, False),
        ("-1 hour", "1 hour", True, False),
    ],
)
def test_a_window_is_told_while_it_is_open(
    operator: Operator, starts: str, ends: str | None, lifted: bool, told: bool
) -> None:
    """Neither one to come, nor one that is over or lifted."""
    end = "NULL" if ends is None else f"app.clock() + interval '{ends}'"
    kind = "suspension" if ends is None else "window"
    prepare(
        operator,
        "INSERT INTO ops.maintenance (id, kind, reason, set_by, starts_at, ends_at, lifted_at) VALUES"
        f" (gen_random_uuid(), '{kind}', 'drill', 'ada', app.clock() + interval '{starts}', {end},"
        f" {'app.clock()' if lifted else 'NULL'})",
    )
    assert bool(findings_of(operator, level="warning", check="repairs")) is told


# queues


def _attributes(operator: Operator, attributes: Mapping[Any, str]) -> Queue:
    """The ingest queue with other attributes than it was made with."""
    with operator.clients() as clients:
        ingest, *_ = operator.ground(clients)
        clients.sqs.set_queue_attributes(QueueUrl=ingest.url, Attributes=attributes)
        return ingest


@pytest.mark.parametrize(
    ("attributes", "level", "words"),
    [
        ({"RedrivePolicy": ""}, "fault", "baton-ingest.fifo has no dead-letter queue"),
        ({"VisibilityTimeout": "7"}, "warning", "baton-ingest.fifo hides messages for 7 s"),
        ({"ContentBasedDeduplication": "true"}, "warning", "baton-ingest.fifo deduplicates by content"),
    ],
)
def test_a_queue_that_is_not_as_it_was_made_is_told(
    operator: Operator, attributes: Mapping[str, str], level: str, words: str
) -> None:
    """Without dead letters, with another visibility, or naming messages itself."""
    _attributes(operator, attributes)
    told: list[Any] = [each["what"] for each in findings_of(operator, level=level, check="queues")]
    assert [each for each in told if words in each], told


def test_dead_letters_that_go_elsewhere_are_told(operator: Operator) -> None:
    """Nobody of ours looks there."""
    with operator.clients() as clients:
        _, _, results = operator.ground(clients)
        other = clients.sqs.create_queue(QueueName="other")["QueueUrl"]
        arn = clients.sqs.get_queue_attributes(QueueUrl=other, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
        clients.sqs.set_queue_attributes(QueueUrl=results.url, Attributes={"RedrivePolicy": policy})
    (finding,) = findings_of(operator, level="warning", check="queues")
    assert finding["what"] == f"{results.name} dead-letters to {arn}, where Baton does not look"


def test_a_queue_service_that_is_away_is_no_missing_queue(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be looked at is said to be unknown; the database is looked at all the same."""
    environ = operator.environ
    away = dict.fromkeys(("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"), "http://127.0.0.1:9")
    away["BATON_AWS_MAX_ATTEMPTS"] = "1"
    monkeypatch.setattr(operator, "environ", lambda role: {**environ(role), **away})
    findings = operator.run("doctor", "--json").json["findings"]
    levels = {each["check"]: each["level"] for each in findings}
    assert (levels["queues"], levels["bucket"], levels["version"]) == ("unknown", "unknown", "ok")
