"""What the doctor finds, and what it advises."""

from datetime import timedelta
from uuid import uuid4

import pytest

from baton.db.access import Role
from baton.outbox.sessions import own_session
from baton.reconcilers.doctor import examination, sessions
from support.examining import alive, findings_of, prepare
from support.operators import Operator
from support.tickets import Bulk, fill


def test_a_sound_system_has_nothing_to_see_to(operator: Operator) -> None:
    """Queues, bucket, consumers and database as Baton makes them: exit code 0, every finding ok, nothing written."""
    with operator.clients() as clients:
        operator.ground(clients)
    alive(operator)
    ran = operator.run("doctor", "--strict", "--json")
    assert [each for each in ran.json["findings"] if each["level"] != "ok"] == []
    assert (ran.code, ran.json["healthy"]) == (0, True)
    people = operator.run("doctor", "--quiet")
    assert people.code == 0
    assert people.out.split() == [str(len(ran.json["findings"])), "ok"]


@pytest.mark.parametrize(("role", "level"), [(Role.OBSERVER, "warning"), (Role.RECONCILER, "unknown")])
def test_what_is_no_fault_fails_it_only_where_that_is_asked_for(operator: Operator, role: Role, level: str) -> None:
    """A suspension, or sessions that the role may not see: exit code 0, and with ``--strict`` 1."""
    with operator.clients() as clients:
        operator.ground(clients)
    alive(operator)
    if level == "warning":
        prepare(
            operator,
            "INSERT INTO ops.maintenance (id, kind, reason, set_by)"
            " VALUES (gen_random_uuid(), 'suspension', 'drill', 'ada')",
        )
    ran = operator.run("doctor", "--json", role=role)
    assert {each["level"] for each in ran.json["findings"]} == {"ok", level}
    assert (ran.code, ran.json["healthy"]) == (0, True)
    strict = operator.run("doctor", "--strict", "--json", role=role)
    assert (strict.code, strict.json["healthy"]) == (1, False)


def test_a_look_that_the_role_is_refused_says_so(operator: Operator) -> None:
    """It is not passed over, and stops no other."""
    prepare(operator, "REVOKE SELECT ON ops.maintenance FROM baton_observer")
    findings = operator.run("doctor", "--json").json["findings"]
    (found,) = [each for each in findings if each["check"] == "breaker"]
    assert found["level"] == "unknown"
    assert "permission denied for table maintenance" in found["what"]
    assert {"roles", "consumers", "queues", "bucket"} <= {each["check"] for each in findings}


def test_a_misspelt_setting_is_told_with_the_one_that_it_resembles(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be left at its default without a word."""
    monkeypatch.setenv("BATON_QUEUE_VISIBILTY", "60")
    (found,) = findings_of(operator, level="warning", check="settings")
    assert found["what"] == "BATON_QUEUE_VISIBILTY is none of Baton's settings"
    assert found["todo"] == "if BATON_QUEUE_VISIBILITY was meant, correct it"


def test_an_empty_account_is_told_with_what_to_do(operator: Operator) -> None:
    """No queue, no bucket, no consumer: exit code 1, each named, each with a way out."""
    ran = operator.run("doctor")
    assert ran.code == 1
    for words in (
        "there is no queue baton-ingest.fifo",
        "there is no bucket",
        "results: nobody polls",
        "baton settler",
    ):
        assert words in ran.out
    faults = findings_of(operator)
    assert all(each["todo"] for each in faults)
    assert [each["check"] for each in faults] == [*["consumers"] * 3, *["queues", "dead-letters"] * 3, "bucket"]


@pytest.mark.parametrize(
    ("statement", "check", "words"),
    [
        ("DROP POLICY system_policy ON ops.document_ingest_outbox", "policies", "system_policy"),
        ("CREATE POLICY more ON documents TO baton_member USING (true)", "policies", "none of Baton's"),
        ("ALTER POLICY system_policy ON documents TO baton_relay", "policies", "baton_relay"),
        ("ALTER TABLE inbox.item NO FORCE ROW LEVEL SECURITY", "policies", "inbox.item"),
        ("REVOKE INSERT ON ops.document_ingest_outbox FROM baton_settler", "roles", "INSERT on ops.document_ingest"),
        ("REVOKE UPDATE (handled_at) ON ops.document_ingest_outbox FROM baton_registrar", "roles", "handled_at"),
        ("GRANT DELETE ON documents TO baton_relay", "roles", "more rights than documented"),
        (
            "GRANT TRUNCATE ON ops.dead_letter TO baton_settler",
            "roles",
            "TRUNCATE on ops.dead_letter for baton_settler",
        ),
        ("GRANT UPDATE ON inbox.item TO baton_observer", "roles", "on inbox.item for baton_observer"),
        (
            "GRANT UPDATE (firm_id, matter_id) ON documents TO baton_relay",
            "roles",
            "UPDATE (firm_id, matter_id) on documents for baton_relay",
        ),
        (
            "GRANT SELECT (body) ON ops.dead_letter TO baton_relay",
            "roles",
            "SELECT (body) on ops.dead_letter for baton_relay",
        ),
        ("DROP INDEX ops.o_open", "storage", "ops.o_open"),
        ("UPDATE app.alembic_version SET version_num = '0001'", "version", "baton migrate"),
    ],
)
def test_what_was_changed_in_the_database_is_named(operator: Operator, statement: str, check: str, words: str) -> None:
    """A policy, a right, an index or a version that is not as it should be, of whichever role."""
    prepare(operator, statement)
    (finding,) = findings_of(operator, check=check)
    assert words in f"{finding['what']} {finding['todo']}"


def test_a_setting_of_the_outbox_that_is_gone_is_named(operator: Operator) -> None:
    """Vacuum's settings are part of the design."""
    prepare(operator, "ALTER TABLE ops.document_ingest_outbox RESET (vacuum_index_cleanup)")
    (finding,) = findings_of(operator, level="warning", check="storage")
    assert finding["todo"] == "ALTER TABLE ops.document_ingest_outbox SET (vacuum_index_cleanup=on)"


def test_a_long_transaction_is_named_by_process_id(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps an old snapshot, of whatever role, and how to end it."""
    monkeypatch.setattr(sessions, "WARN_AFTER", timedelta(0))
    driver = own_session(operator.database.engine(Role.SUPPORT))
    try:
        driver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        driver.execute("SELECT 1")
        found = findings_of(operator, level="warning", check="sessions")
        (finding,) = [each for each in found if f"process {driver.info.backend_pid} " in each["what"]]
        assert f"pg_terminate_backend({driver.info.backend_pid})" in finding["todo"]
        assert "baton_support" in finding["what"]
    finally:
        driver.close()


def test_without_the_right_to_see_others_sessions_it_says_so(operator: Operator) -> None:
    """A managed server may refuse the right: then that is the finding, not that all is well."""
    findings = operator.run("doctor", "--json", role=Role.RECONCILER).json["findings"]
    (finding,) = [each for each in findings if each["check"] == "sessions"]
    assert finding["level"] == "unknown"
    assert "pg_read_all_stats" in finding["todo"]


def test_a_relay_that_is_away_and_a_parked_ticket_are_told(operator: Operator) -> None:
    """The lag of the lane whose relay is away; parked tickets with their age and an error."""
    fill(operator.database, Bulk(count=3, firm=uuid4(), lane="registrar", due_ago=900))
    fill(operator.database, Bulk(count=2, firm=uuid4(), lane="ingest", due_ago=1))
    prepare(
        operator,
        "UPDATE ops.document_ingest_outbox SET parked_at = app.clock(), last_error = 'InvalidMessageContents'"
        " WHERE id = (SELECT max(id) FROM ops.document_ingest_outbox)",
    )
    (lag,) = findings_of(operator, check="relay")
    assert "registrar: a ticket has been due for 15 min" in lag["what"]
    (parked,) = findings_of(operator, level="warning", check="parked")
    assert "1 parked tickets" in parked["what"]
    assert "InvalidMessageContents" in parked["what"]


def test_a_lane_without_consumers_is_told_with_its_oldest_ticket(operator: Operator) -> None:
    """Others' heartbeats do not hide the one that is missing."""
    alive(operator, "registrar", "results")
    fill(operator.database, Bulk(count=1, firm=uuid4(), dispatched=True, due_ago=600))
    (finding,) = findings_of(operator, check="consumers")
    assert finding["what"] == "ingest: nobody polls, none was ever seen; a ticket has waited for 10 min"


def test_what_is_wrong_with_queues_is_told(operator: Operator) -> None:
    """Messages on a dead-letter queue; a queue that forgets earlier than the settings say; a lost notification."""
    with operator.clients() as clients:
        ingest, registrar, _results = operator.ground(clients)
        clients.sqs.set_queue_attributes(QueueUrl=registrar.url, Attributes={"MessageRetentionPeriod": "600"})
        assert ingest.dead is not None
        clients.sqs.send_message(
            QueueUrl=ingest.dead.url, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="d"
        )
        clients.s3.put_bucket_notification_configuration(Bucket=operator.bucket, NotificationConfiguration={})
    alive(operator)
    faults = findings_of(operator)
    assert {each["check"] for each in faults} == {"queues", "notifications"}
    assert any("keeps messages for 600 s" in each["what"] for each in faults)
    with operator.clients() as clients:
        ingest, *_ = operator.ground(clients)
        assert ingest.dead is not None
        for _ in range(2):  # waiting there, then in somebody's hand, who lets go of it again
            (letters,) = findings_of(operator, level="warning", check="dead-letters")
            assert "about 1 messages lie on baton-ingest-dead.fifo" in letters["what"]
            ingest.dead.receive(wait=0, limit=1, visibility=300)


def test_what_holds_back_is_told(operator: Operator) -> None:
    """An open breaker and a suspension, with who set it and why."""
    prepare(
        operator,
        "UPDATE ops.dispatch_guard SET breaker = 'open', reason = 'every run failed'",
        "INSERT INTO ops.maintenance (id, kind, reason, set_by) VALUES (gen_random_uuid(), 'suspension', 'drill', 'ada')",
    )
    found = findings_of(operator, level="warning")
    assert any("every run failed" in each["what"] for each in found)
    assert any("a suspension by ada" in each["what"] and "drill" in each["what"] for each in found)


def test_a_database_that_is_away_stops_no_other_look(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1; the queues are looked at all the same."""
    with operator.clients() as clients:
        operator.ground(clients)
    monkeypatch.setattr(operator.database, "url", lambda _role: "postgresql://baton_observer@127.0.0.1:9/none")
    ran = operator.run("doctor", "--json")
    assert ran.code == 1
    checks = {each["check"]: each["level"] for each in ran.json["findings"]}
    assert (checks["database"], checks["notifications"]) == ("fault", "ok")


def test_a_guard_whose_row_was_deleted_is_told_and_stops_no_other_look(operator: Operator) -> None:
    """Without it no run is granted, so it has to be said, with the statement that mends it."""
    prepare(operator, "DELETE FROM ops.dispatch_guard")
    findings = operator.run("doctor", "--json").json["findings"]
    (found,) = [each for each in findings if each["check"] == "breaker"]
    assert found["level"] == "fault"
    mending = found["todo"].partition(": ")[2]
    assert {"version", "storage", "relay", "consumers"} <= {each["check"] for each in findings}
    prepare(operator, mending)
    assert findings_of(operator, check="breaker", level="ok")


def test_a_look_that_meets_what_makes_no_sense_says_so_and_stops_no_other(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is: a doctor is asked when something is wrong with the rows."""

    def fails(_connection: object) -> object:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(examination, "_DATABASE", {**examination._DATABASE, "storage": fails})
    findings = operator.run("doctor", "--json").json["findings"]
    (found,) = [each for each in findings if each["check"] == "storage"]
    assert (found["level"], "date value out of range" in found["what"]) == ("unknown", True)
    assert {"version", "relay", "consumers", "breaker"} <= {each["check"] for each in findings}
