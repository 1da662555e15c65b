"""No branch leaves a document at registering: every one that goes wrong ends in a message where counsel looks."""

import itertools
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import OperationalError

from baton.contract.artifacts import dump_effects
from baton.contract.classification import AddTag, SetName
from baton.contract.purposes import SchemaName
from baton.contract.understanding import Brief
from baton.db.access import Role
from baton.db.states import FailureKind, Outcome, RegistrationStatus
from baton.outbox.tickets import Ticket
from baton.record import appliers, classification, messages
from baton.record.apply import apply, give_up
from baton.record.letters import Letter
from baton.settings.agents import Runs
from baton.telemetry.logs import TextFormatter
from support.matters import LIMITS, Matter, turn

NAME = SetName(key="set_name", confidence=0.9, name="Statement of claim")
TURN: dict[str, Any] = dump_effects([turn(NAME)])[0]


def failed(matter: Matter, ticket: Ticket, *, kind: FailureKind, message: str, retryable: bool) -> None:
    """The document failed with this message, nothing of the result is in the Record, and the ticket is closed."""
    document = matter.read(ticket.document_id)
    assert document.registration_status is RegistrationStatus.REGISTRATION_FAILED
    assert document.registration_message == message
    assert document.failure_kind == kind
    assert (document.next_attempt_at is not None) == retryable
    assert matter.assertions(document.id) == []
    for table in ("record.intent_claim", "inbox.item", "record.understanding_part", "record.part_content"):
        assert matter.count(table, "document_id = :id", id=document.id) == 0, table
    assert matter.reload(ticket).handled_at is not None


@pytest.mark.parametrize(
    ("state", "kind"), [("rejected", FailureKind.RESULT_REJECTED), ("expired", FailureKind.RUN_EXPIRED)]
)
@pytest.mark.parametrize("said", ["The agent's own reason.", None])
def test_a_run_that_brought_nothing_fails_its_document(
    matter: Matter, state: str, kind: FailureKind, said: str | None
) -> None:
    """The settler's sentence is repeated on the document; where it has none, there is one all the same."""
    ticket = matter.settle(matter.dispatch(matter.document()), state, message=said)
    assert matter.apply(ticket) is Outcome.REFUSED
    fallback = {"rejected": messages.REJECTED, "expired": messages.EXPIRED}[state]
    failed(matter, ticket, kind=kind, message=said or fallback, retryable=True)
    assert matter.reload(ticket).outcome is Outcome.REFUSED


def test_the_last_attempt_is_not_retried(matter: Matter) -> None:
    """At the limit of attempts no further one is planned."""
    ticket = matter.settle(matter.dispatch(matter.document()), "expired", message="Too late.")
    assert matter.apply(ticket, limits=Runs(max_attempts=1)) is Outcome.REFUSED
    failed(matter, ticket, kind=FailureKind.RUN_EXPIRED, message="Too late.", retryable=False)


@pytest.mark.parametrize(
    "effects",
    [
        pytest.param([], id="no effect"),
        pytest.param([TURN, TURN], id="two effects"),
        pytest.param([{**TURN, "kind": "turn2"}], id="an effect of a later version"),
        pytest.param([{**TURN, "intents": [{"tool": "shred", "key": "k", "confidence": 1}]}], id="an unknown tool"),
        pytest.param([{**TURN, "intents": [{"tool": "set_name", "key": "k"}]}], id="an incomplete intent"),
        pytest.param([dump_effects([Brief(summary="Short.")])[0]], id="another purpose's effect"),
    ],
)
def test_effects_that_this_version_does_not_know_fail_the_document(matter: Matter, effects: list[Any]) -> None:
    """A newer settler may have verified what an older registrar cannot apply: a visible failure, no endless retry."""
    ticket = matter.deliver(matter.dispatch(matter.document()), *effects)
    assert matter.apply(ticket) is Outcome.REFUSED
    document = matter.read(ticket.document_id)
    assert document.registration_message
    failed(
        matter,
        ticket,
        kind=FailureKind.RESULT_UNAPPLIABLE,
        message=document.registration_message,
        retryable=False,
    )


@pytest.mark.parametrize("schema", ["registrar.classification.v9", "document.card.v1"])
def test_a_schema_without_an_applier_fails_the_document(matter: Matter, schema: str) -> None:
    """A result schema that nobody opens, or that is not the purpose's, ends on the document."""
    run = matter.dispatch(matter.document())
    matter.prepare("UPDATE agents.agent_run SET result_schema = :schema WHERE run_id = :run", schema=schema, run=run)
    ticket = matter.deliver(run, turn(NAME))
    assert matter.apply(ticket) is Outcome.REFUSED
    assert matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTRATION_FAILED


@pytest.mark.parametrize("where", ["before", "after", "statement"])
def test_a_fault_of_the_applier_is_rolled_back_and_shown(
    matter: Matter, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the applier had written is taken back, role and all; the failure stays, and the ticket is closed."""
    real = classification.apply_classification

    def broken(connection: Connection, letter: Letter) -> None:
        if where == "before":
            raise RuntimeError("planted")
        real(connection, letter)
        if where == "statement":
            connection.execute(text("SELECT 1 / 0"))
        raise RuntimeError("planted")

    monkeypatch.setattr(appliers, "APPLIERS", {SchemaName.CLASSIFICATION_V1: broken})
    ticket = matter.deliver(matter.dispatch(matter.document()), turn(NAME))
    with matter.registrar() as connection:
        assert apply(connection, ticket, limits=LIMITS) is Outcome.REFUSED
        assert connection.execute(text("SELECT current_user")).scalar_one() == Role.REGISTRAR
    failed(matter, ticket, kind=FailureKind.RESULT_UNAPPLIABLE, message=messages.UNAPPLIABLE, retryable=False)


def test_a_fault_while_acting_as_the_firm_leaves_the_registrar_in_charge(
    matter: Matter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error inside the member's part of the apply gives the role back, or the failure could not be written."""

    def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(classification, "decide", broken)
    ticket = matter.deliver(matter.dispatch(matter.document()), turn(NAME))
    assert matter.apply(ticket) is Outcome.REFUSED
    failed(matter, ticket, kind=FailureKind.RESULT_UNAPPLIABLE, message=messages.UNAPPLIABLE, retryable=False)


def test_the_log_of_an_applier_fault_holds_no_content(
    matter: Matter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it happened and of what type, never what the document said."""

    def broken(*_: object, **__: object) -> None:
        raise ValueError("Statement of claim")

    monkeypatch.setattr(classification, "decide", broken)
    caplog.handler.setFormatter(TextFormatter())
    matter.apply(matter.deliver(matter.dispatch(matter.document()), turn(NAME)))
    assert "a verified result could not be applied" in caplog.text
    assert "ValueError" in caplog.text
    assert "Statement of claim" not in caplog.text


def test_a_lost_connection_is_no_failure_of_the_document(matter: Matter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in mid-apply, nothing is written and the ticket stays open; the next delivery does the whole work."""
    ticket = matter.deliver(matter.dispatch(matter.document()), turn(NAME))
    real = classification.apply_classification

    def cut(connection: Connection, letter: Letter) -> None:
        real(connection, letter)
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        matter.rows("SELECT pg_terminate_backend(:pid)", pid=pid)
        connection.execute(text("SELECT 1"))

    monkeypatch.setattr(appliers, "APPLIERS", {SchemaName.CLASSIFICATION_V1: cut})
    with pytest.raises(OperationalError):
        matter.apply(ticket)
    assert matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING
    assert matter.reload(ticket).handled_at is None
    monkeypatch.undo()
    assert matter.apply(ticket) is Outcome.DONE


def test_a_lock_that_is_not_had_in_time_is_no_failure_of_the_document(
    matter: Matter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock time-out inside the applier goes to the caller, for redelivery."""
    ticket = matter.deliver(matter.dispatch(matter.document()), turn(NAME))
    other = matter.document("other.pdf")

    def waiting(connection: Connection, letter: Letter) -> None:
        connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
        connection.execute(text("SELECT 1 FROM documents WHERE id = :id FOR NO KEY UPDATE"), {"id": other})

    monkeypatch.setattr(appliers, "APPLIERS", {SchemaName.CLASSIFICATION_V1: waiting})
    with matter.registrar() as holder:
        holder.execute(text("SELECT 1 FROM documents WHERE id = :id FOR NO KEY UPDATE"), {"id": other})
        with pytest.raises(OperationalError):
            matter.apply(ticket)
    assert matter.read(ticket.document_id).registration_status is RegistrationStatus.REGISTERING
    assert matter.reload(ticket).handled_at is None


def test_a_crash_after_any_statement_leaves_nothing_and_loses_nothing(matter: Matter) -> None:
    """The backend is killed after the first statement of an apply, the second, and so on to the last before the commit.

    Each time nothing is written, and the next delivery does the whole work once.
    """
    for after in itertools.count(1):
        document = matter.document(f"letter {after}.pdf")
        ticket = matter.deliver(matter.dispatch(document), turn(NAME))
        if not killed(matter, ticket, after=after):
            assert after > 15, "an apply has more statements than this"
            break
        assert matter.read(document).registration_status is RegistrationStatus.REGISTERING
        assert matter.reload(ticket).handled_at is None
        for table in ("record.assertion", "record.intent_claim", "record.understanding_part"):
            assert matter.count(table, "document_id = :id", id=document) == 0, table
        assert matter.apply(ticket) is Outcome.DONE
        assert matter.assertions(document) == [("name", "Statement of claim", "applied")]


def killed(matter: Matter, ticket: Ticket, *, after: int) -> bool:
    """Apply the ticket with the backend killed after so many statements; whether it had that many."""
    statements = 0
    with matter.database.engine(Role.REGISTRAR).connect() as connection:
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

        @event.listens_for(connection, "after_cursor_execute")
        def kill(*_: object) -> None:
            nonlocal statements
            statements += 1
            if statements == after:
                matter.rows("SELECT pg_terminate_backend(:pid, 5000)", pid=pid)

        try:
            apply(connection, ticket, limits=LIMITS)
            connection.commit()
        except OperationalError:
            return True
        finally:
            event.remove(connection, "after_cursor_execute", kill)
    return False


def test_a_result_behind_a_newer_applied_one_is_not_applied(matter: Matter) -> None:
    """Effects of a newer run stand for this document and schema: the older ones are stale, and the document says so."""
    document = matter.document()
    first = matter.deliver(matter.dispatch(document), turn(NAME))
    newer = matter.deliver(matter.take_over(document), turn(AddTag(key="add_tag", confidence=0.9, tag="new")))
    assert matter.apply(newer) is Outcome.DONE
    with matter.database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        connection.execute(
            text("UPDATE documents SET registration_status = 'registering', registration_run_id = :run WHERE id = :id"),
            {"id": document, "run": first.run_id},
        )
    assert matter.apply(first) is Outcome.REFUSED
    assert matter.assertions(document) == [("tag", "new", "applied")]
    assert matter.read(document).registration_message == messages.OUTRUN
    assert matter.count("agents.agent_effect", "disposition = 'stale'") == 1


def test_giving_up_ends_the_document_visibly(matter: Matter) -> None:
    """After the last attempt at an apply the document fails with a message, once; a retry is a person's decision."""
    ticket = matter.deliver(matter.dispatch(matter.document()), turn(NAME))
    for _ in range(2):
        with matter.registrar() as connection:
            assert give_up(connection, ticket, limits=LIMITS) is Outcome.POISON
    failed(matter, ticket, kind=FailureKind.ATTEMPTS_EXHAUSTED, message=messages.GIVEN_UP, retryable=False)


def test_giving_up_touches_no_document_that_waits_for_another_run(matter: Matter) -> None:
    """A ticket that is given up can fail only what its own run owns."""
    document = matter.document()
    late = matter.deliver(matter.dispatch(document), turn(NAME))
    matter.take_over(document)
    with matter.registrar() as connection:
        give_up(connection, late, limits=LIMITS)
    assert matter.read(document).registration_status is RegistrationStatus.REGISTERING
