"""Status machines and ledgers are kept by the database: raw SQL, a superuser's too, meets the same table of edges."""

from collections.abc import Iterator
from itertools import product
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from baton.db import routines
from baton.db.access import Role
from baton.db.edges import EDGES, Guard, Machine, find
from baton.db.errors import DatabaseRefusal, IllegalTransition, LedgerRewrite, refusal
from baton.db.states import PartState, ProcessingStatus, RegistrationStatus, RunState
from support.databases import Database
from support.tenancy import open_firms

TABLES = {
    Machine.PROCESSING: "documents",
    Machine.REGISTRATION: "documents",
    Machine.RUN: "agents.agent_run",
    Machine.PART: "record.understanding_part",
}


@pytest.fixture
def raw(looked_at: Database) -> Iterator[Connection]:
    """A superuser's transaction, on either version, which is undone."""
    with looked_at.preparer.connect() as connection:
        yield connection
        connection.rollback()


def attempt(connection: Connection, statement: str, **values: object) -> DatabaseRefusal | None:
    """Run a statement; what refused it. The transaction goes on as before it where it was refused."""
    inner = connection.begin_nested()
    try:
        connection.execute(text(statement), values)
    except DBAPIError as error:
        inner.rollback()
        found = refusal(error)
        if found is None:
            raise
        return found
    inner.commit()
    return None


def document(connection: Connection, *, processing: str = "pending", registration: str = "not_requested") -> UUID:
    """A document in any state, put there with triggers off."""
    identity = uuid4()
    connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
    connection.execute(
        text(
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, processing_status,"
            " registration_status, extraction_run_id, registration_pass, ingest_ticket_id, registration_ticket_id,"
            " registration_run_id, next_attempt_at)"
            " VALUES (:id, :id, :id, 'a', 'k', 't', :processing, CAST(:registration AS text), :id, :id, 1, 1, :id,"
            " CASE WHEN :registration = 'registration_failed' THEN app.clock() END)"
        ),
        {"id": identity, "processing": processing, "registration": registration},
    )
    connection.execute(text("SET LOCAL session_replication_role = 'origin'"))
    return identity


def transitions(connection: Connection, identity: UUID) -> list[tuple[str, str, str]]:
    """What the ledger says about a document."""
    rows = connection.execute(
        text(
            "SELECT axis, from_status, to_status FROM ops.document_status_transition WHERE document_id = :id ORDER BY id"
        ),
        {"id": identity},
    )
    return [(axis, source, target) for axis, source, target in rows]


@pytest.mark.parametrize("raised", [False, True], ids=["same epoch", "epoch raised"])
def test_processing_moves_along_its_edges_only(raw: Connection, raised: bool) -> None:
    """All pairs; each move leaves its row and its time, each refused one leaves nothing."""
    for source, target in product(ProcessingStatus, ProcessingStatus):
        identity = document(raw, processing=source)
        before = raw.execute(text("SELECT processing_status_since FROM documents WHERE id = :id"), {"id": identity})
        since = before.scalar_one()
        refused = attempt(
            raw,
            "UPDATE documents SET processing_status = :target, extraction_epoch = extraction_epoch + :by WHERE id = :id",
            id=identity,
            target=target.value,
            by=int(raised),
        )
        edge = find(Machine.PROCESSING, source=source, target=target)
        legal = source is target or (edge is not None and (edge.guard is None or raised))
        if raised and target is not ProcessingStatus.UPLOADED:
            legal = False
        assert (refused is None) is legal, (source, target)
        assert refused is None or isinstance(refused, IllegalTransition)
        moved = legal and (source is not target or raised)
        assert transitions(raw, identity) == ([("processing", source, target)] if moved else []), (source, target)
        row = raw.execute(
            text("SELECT processing_status_since > :since, ingest_ticket_id FROM documents WHERE id = :id"),
            {"id": identity, "since": since},
        ).one()
        assert row == (moved, None if moved and target is ProcessingStatus.UPLOADED else 1), (source, target)


@pytest.mark.parametrize("superseded", [False, True], ids=["same pass", "pass superseded"])
def test_registration_moves_along_its_edges_only(raw: Connection, superseded: bool) -> None:
    """All pairs; what stood for the state before is cleared with it."""
    for source, target in product(RegistrationStatus, RegistrationStatus):
        identity = document(raw, processing="indexed", registration=source)
        refused = attempt(
            raw,
            "UPDATE documents SET registration_status = :target, extraction_run_id = :pass WHERE id = :id",
            id=identity,
            target=target.value,
            **{"pass": uuid4() if superseded else identity},
        )
        edge = find(Machine.REGISTRATION, source=source, target=target)
        legal = source is target or (
            edge is not None and (edge.guard is None or (edge.guard is Guard.PASS_SUPERSEDED and superseded))
        )
        assert (refused is None) is legal, (source, target)
        assert refused is None or isinstance(refused, IllegalTransition)
        moved = legal and source is not target
        assert transitions(raw, identity) == ([("registration", source, target)] if moved else []), (source, target)
        marks = raw.execute(
            text(
                "SELECT registration_ticket_id IS NULL, registration_run_id IS NULL, registration_pass IS NULL,"
                " next_attempt_at IS NULL FROM documents WHERE id = :id"
            ),
            {"id": identity},
        ).one()
        again = target in (RegistrationStatus.QUEUED, RegistrationStatus.NOT_REQUESTED)
        if moved:
            assert marks == (
                again,
                again,
                target is RegistrationStatus.NOT_REQUESTED,
                target is not RegistrationStatus.REGISTRATION_FAILED or source is not target,
            ), (source, target)


def test_a_mark_written_with_the_move_stays(raw: Connection) -> None:
    """What clears a mark is the move without a new one."""
    identity = document(raw, processing="indexed", registration="registration_failed")
    raw.execute(
        text("UPDATE documents SET registration_status = 'queued', registration_ticket_id = 2 WHERE id = :id"),
        {"id": identity},
    )
    found = raw.execute(text("SELECT registration_ticket_id FROM documents WHERE id = :id"), {"id": identity})
    assert found.scalar_one() == 2


def test_runs_move_along_their_edges_only(raw: Connection) -> None:
    """All pairs; a settled run is settled for good."""
    for source, target in product(RunState, RunState):
        run = document(raw)
        raw.execute(text("SET LOCAL session_replication_role = 'replica'"))
        raw.execute(
            text(
                "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose,"
                " result_schema, deadline_at, result_key, state, settled_at) VALUES (:id, :id, :id, :id, 1, 'card', 's',"
                " app.clock(), 'k', CAST(:state AS text), CASE WHEN :state <> 'pending' THEN app.clock() END)"
            ),
            {"id": run, "state": source.value},
        )
        raw.execute(text("SET LOCAL session_replication_role = 'origin'"))
        refused = attempt(
            raw,
            "UPDATE agents.agent_run SET state = CAST(:target AS text),"
            " settled_at = CASE WHEN :target <> 'pending' THEN app.clock() END WHERE run_id = :id",
            id=run,
            target=target.value,
        )
        assert (refused is None) is (source is target or find(Machine.RUN, source=source, target=target) is not None)
        assert refused is None or isinstance(refused, IllegalTransition)


def test_parts_move_along_their_edges_only(raw: Connection) -> None:
    """All pairs; asking again clears what it waited for."""
    for source, target in product(PartState, PartState):
        part = document(raw)
        raw.execute(text("SET LOCAL session_replication_role = 'replica'"))
        raw.execute(
            text(
                "INSERT INTO record.understanding_part (firm_id, document_id, extraction_run_id, part, state, ticket_id,"
                " run_id, next_attempt_at) VALUES (:id, :id, :id, 'card', CAST(:state AS text), 1, :id,"
                " CASE WHEN :state = 'failed' THEN app.clock() END)"
            ),
            {"id": part, "state": source.value},
        )
        raw.execute(text("SET LOCAL session_replication_role = 'origin'"))
        refused = attempt(
            raw,
            "UPDATE record.understanding_part SET state = :target WHERE document_id = :id",
            id=part,
            target=target.value,
        )
        legal = source is target or find(Machine.PART, source=source, target=target) is not None
        assert (refused is None) is legal, (source, target)
        assert refused is None or isinstance(refused, IllegalTransition)
        if legal and source is not target:
            cleared = raw.execute(
                text(
                    "SELECT ticket_id IS NULL, run_id IS NULL, next_attempt_at IS NULL"
                    " FROM record.understanding_part WHERE document_id = :id"
                ),
                {"id": part},
            ).one()
            again = target is PartState.REQUESTED
            assert cleared == (again, again, True)


def test_a_document_begins_at_the_beginning(raw: Connection) -> None:
    """No row can be put into the middle of a machine."""
    for processing, registration in product(ProcessingStatus, RegistrationStatus):
        refused = attempt(
            raw,
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, processing_status,"
            " registration_status, extraction_run_id, registration_pass)"
            " VALUES (:id, :id, :id, 'a', 'k', 't', :processing, :registration, :id, :id)",
            id=uuid4(),
            processing=processing.value,
            registration=registration.value,
        )
        assert (refused is None) is ((processing, registration) == ("pending", "not_requested"))


def test_the_epoch_never_falls(raw: Connection) -> None:
    """Not even with a return to ``uploaded``."""
    identity = document(raw, processing="indexed")
    raw.execute(
        text("UPDATE documents SET extraction_epoch = 2, processing_status = 'uploaded' WHERE id = :id"),
        {"id": identity},
    )
    for statement in (
        "UPDATE documents SET extraction_epoch = 1 WHERE id = :id",
        "UPDATE documents SET extraction_epoch = 1, processing_status = 'stored' WHERE id = :id",
        "UPDATE documents SET extraction_epoch = 3, processing_status = 'stored' WHERE id = :id",
    ):
        assert isinstance(attempt(raw, statement, id=identity), IllegalTransition)


def test_every_edge_says_who_makes_it_and_is_there_once() -> None:
    """The table itself."""
    for machine in Machine:
        pairs = [(edge.source, edge.target) for edge in EDGES[machine]]
        assert len(pairs) == len(set(pairs))
        assert all(edge.cause for edge in EDGES[machine])


@pytest.mark.parametrize("ledger", routines.LEDGERS)
@pytest.mark.parametrize("role", [Role.OWNER.value, "postgres"])
def test_history_is_only_ever_added_to(scratch: Database, ledger: str, role: str) -> None:
    """Nor can the owner or a superuser change, remove or empty it, nor by way of the documents that it is about."""
    open_firms(scratch.preparer)
    with scratch.preparer.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL ROLE {role}")
        for statement in (
            f"UPDATE {ledger} SET document_id = document_id",
            f"DELETE FROM {ledger}",
            f"TRUNCATE {ledger}",
            "TRUNCATE documents CASCADE",
        ):
            assert isinstance(attempt(connection, statement), LedgerRewrite), statement
        assert isinstance(attempt(connection, "DELETE FROM documents"), DatabaseRefusal)
        assert connection.execute(text(f"SELECT count(*) FROM {ledger}")).scalar_one() == 2


_REWRITES = {
    "id": "DEFAULT",
    "event_type": "'document.understanding.requested'",
    "idempotency_key": "'another'",
    "generation": "2",
    "redrive_of": "7",
    "extraction_epoch": "2",
    "attempt": "9",
    "part": "'card'",
    "created_at": "created_at - interval '1 hour'",
}


def test_a_ticket_keeps_its_identity(scratch: Database) -> None:
    """Every column that says what it is, whoever writes."""
    open_firms(scratch.preparer)
    with scratch.preparer.begin() as connection:
        for column in routines.TICKET_IDENTITY:
            value = _REWRITES.get(column, "gen_random_uuid()")
            refused = attempt(connection, f"UPDATE ops.document_ingest_outbox SET {column} = {value}")
            assert isinstance(refused, LedgerRewrite), column
        assert attempt(connection, "UPDATE ops.document_ingest_outbox SET attempts = 1, last_error = 'x'") is None


def test_a_ticket_is_sent_once_and_closed_once(scratch: Database) -> None:
    """From NULL, and never back or to another time."""
    open_firms(scratch.preparer)
    table = "ops.document_ingest_outbox"
    with scratch.preparer.begin() as connection:
        for column, besides in (("dispatched_at", ""), ("handled_at", ", outcome = 'done'")):
            assert attempt(connection, f"UPDATE {table} SET {column} = app.clock(){besides}") is None
            for value in ("NULL", f"{column} + interval '1 second'"):
                refused = attempt(connection, f"UPDATE {table} SET {column} = {value}")
                assert isinstance(refused, LedgerRewrite)
            assert attempt(connection, f"UPDATE {table} SET {column} = {column}") is None
        refused = attempt(connection, f"UPDATE {table} SET outcome = 'poison'")
        assert isinstance(refused, LedgerRewrite), "why it was closed is history too"


def test_a_move_names_who_made_it(database: Database) -> None:
    """The login and the application, also where the login has become somebody else."""
    open_firms(database.preparer)
    with database.engine(Role.MEMBER_APP).begin() as connection, database.preparer.connect() as looking:
        connection.execute(text("SET LOCAL application_name = 'the platform'"))
        firm = looking.execute(text("SELECT firm_id FROM documents LIMIT 1")).scalar_one()
        connection.execute(text("SELECT set_config('baton.firm_id', :firm, true)"), {"firm": str(firm)})
        connection.execute(text("UPDATE documents SET processing_status = 'uploaded'"))
        row = connection.execute(
            text("SELECT actor, application FROM ops.document_status_transition ORDER BY id DESC LIMIT 1")
        ).one()
    assert row == ("baton_member_app", "the platform")
