"""No firm sees, changes or learns of another's rows; and the checks that say so fail when the policies are gone."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from uuid_utils.compat import uuid7

from baton.db.access import FIRM_SCOPED, MATRIX, Role
from baton.db.connect import as_member, database_engine, firm_transaction
from baton.db.errors import DuplicateKey, UnknownReference, refusal
from support.databases import Cluster, Database
from support.parts import needs
from support.pgbouncer import open_pooler
from support.tenancy import as_the_firm, leaks, open_firms, through_the_door, visible


@pytest.fixture
def firms(database: Database) -> list[UUID]:
    """Two firms with a row of each kind."""
    return open_firms(database.preparer)


@pytest.fixture(params=[True, False], ids=["prepared", "unprepared"])
def single(database: Database, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A member's engine with one connection, which every transaction uses."""
    engine = database_engine(database.url(Role.MEMBER_APP), application="test", pool_size=1, prepare=request.param)
    yield engine
    engine.dispose()


def test_firms_in_turn_on_one_connection_see_their_own(single: Engine, firms: list[UUID]) -> None:
    """Reading, changing, removing, writing and searching, in every table that a member has rights on."""
    one, other = firms
    for _ in range(2):
        assert leaks(as_the_firm(single), own=one, others=[other]) == []
        assert leaks(as_the_firm(single), own=other, others=[one]) == []


@needs("pgbouncer")
def test_firms_in_turn_behind_a_transaction_pooler_see_their_own(
    cluster: Cluster, database: Database, firms: list[UUID], state_folder: Path
) -> None:
    """Two clients share one connection of the server."""
    one, other = firms
    with open_pooler(state_folder / "pooler", server_port=cluster.server.port, pool_size=1) as pooler:
        clients = [
            database_engine(pooler.url(database, Role.MEMBER_APP), application="test", pool_size=1) for _ in firms
        ]
        try:
            for client, own, stranger in ((clients[0], one, other), (clients[1], other, one)) * 2:
                assert leaks(as_the_firm(client), own=own, others=[stranger]) == []
                assert visible(client, Role.MEMBER_APP) == {}
        finally:
            for client in clients:
                client.dispose()


def test_without_a_firm_nothing_is_seen(single: Engine, firms: list[UUID]) -> None:
    """Before any was named, and after the transaction that named one: the setting is then empty, not NULL."""
    assert visible(single, Role.MEMBER_APP) == {}
    with firm_transaction(single, firms[0]):
        pass
    with single.connect() as connection:
        assert connection.execute(text("SELECT current_setting('baton.firm_id', true)")).scalar_one() == ""
    assert visible(single, Role.MEMBER_APP) == {}


def test_a_firm_that_is_none_is_an_error_and_shows_nothing(single: Engine, firms: list[UUID]) -> None:
    """Whatever stands in the setting."""
    for nonsense in ("*", f"{firms[0]}' OR '1'='1", "null"):
        with single.begin() as connection:
            connection.execute(text("SELECT set_config('baton.firm_id', :firm, true)"), {"firm": nonsense})
            with pytest.raises(DBAPIError, match="invalid input syntax"):
                connection.execute(text("SELECT count(*) FROM documents"))
            connection.rollback()


def test_support_sees_no_rows(database: Database, firms: list[UUID]) -> None:
    """It has the grants, and may name a firm; no policy knows it."""
    support = database.engine(Role.SUPPORT)
    assert visible(support, Role.SUPPORT) == {}
    with firm_transaction(support, firms[0]) as connection:
        for table in FIRM_SCOPED:
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0


@pytest.mark.parametrize(
    "role", [Role.RELAY, Role.EXTRACTOR, Role.REGISTRAR, Role.SETTLER, Role.RECONCILER, Role.OBSERVER]
)
def test_a_workload_sees_every_firm_where_it_has_rights(database: Database, firms: list[UUID], role: Role) -> None:
    """And is refused elsewhere, whatever the policies."""
    engine = database.engine(role)
    assert visible(engine, role) == {table: len(firms) for table in MATRIX[role] if table in FIRM_SCOPED}
    for table in set(FIRM_SCOPED) - set(MATRIX[role]):
        with pytest.raises(DBAPIError, match="permission denied"), engine.connect() as connection:
            connection.execute(text(f"SELECT FROM {table}"))


def test_the_registrar_as_a_firms_member_sees_that_firm(database: Database, firms: list[UUID]) -> None:
    """And again every firm when it is itself, in the same transaction."""
    one, other = firms
    registrar = database.engine(Role.REGISTRAR)
    assert leaks(through_the_door(registrar), own=one, others=[other]) == []
    with registrar.begin() as connection:
        for firm in (one, other, one):
            with as_member(connection, firm):
                assert connection.execute(text("SELECT firm_id FROM documents")).scalars().all() == [firm]
            assert connection.execute(text("SELECT count(*) FROM documents")).scalar_one() == 2


@pytest.mark.parametrize(
    "attempt",
    [
        "GRANT baton_staff TO CURRENT_USER",
        "GRANT baton_staff TO baton_member",
        "SET ROLE baton_registrar",
        "SET ROLE baton_owner",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION baton_relay",
        "ALTER ROLE CURRENT_USER BYPASSRLS",
        "ALTER TABLE documents DISABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON documents USING (true)",
        "DROP POLICY firm_isolation_policy ON documents",
        "CREATE OR REPLACE FUNCTION app.firm_id() RETURNS uuid LANGUAGE sql AS $$ SELECT NULL::uuid $$",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$",
        "TRUNCATE ops.document_ingest_outbox",
        "DELETE FROM ops.document_ingest_outbox",
        "SET session_replication_role = 'replica'",
    ],
)
def test_a_session_cannot_widen_its_rights(database: Database, firms: list[UUID], attempt: str) -> None:
    """Neither a member's nor a workload's."""
    for role in (Role.MEMBER_APP, Role.SETTLER):
        with pytest.raises(DBAPIError) as refused, database.engine(role).begin() as connection:
            connection.exec_driver_sql(attempt)
        assert getattr(refused.value.orig, "sqlstate", None) == "42501"


def test_staff_is_a_mark_and_nothing_to_become(database: Database, firms: list[UUID]) -> None:
    """A member cannot have it; whoever has it gains nothing by becoming it."""
    with pytest.raises(DBAPIError, match="permission denied"), database.engine(Role.MEMBER_APP).begin() as connection:
        connection.exec_driver_sql("SET ROLE baton_staff")
    for table in FIRM_SCOPED:
        with database.engine(Role.SETTLER).begin() as connection:
            connection.exec_driver_sql("SET LOCAL ROLE baton_staff")
            with pytest.raises(DBAPIError, match="permission denied"):
                connection.execute(text(f"SELECT FROM {table}"))
            connection.rollback()


def test_turning_policies_off_for_a_session_is_an_error_and_not_a_view(single: Engine, firms: list[UUID]) -> None:
    """``row_security = off`` refuses the query that a policy would have filtered."""
    with firm_transaction(single, firms[0]) as connection:
        connection.exec_driver_sql("SET LOCAL row_security = off")
        with pytest.raises(DBAPIError, match="row-level security"):
            connection.execute(text("SELECT count(*) FROM documents"))
        connection.rollback()


def test_search_runs_for_the_transactions_firm_only(database: Database, firms: list[UUID]) -> None:
    """A definer's function that shows all pages of one firm, none without, and is nobody's but a member's."""
    with firm_transaction(database.engine(Role.MEMBER_APP), firms[0]) as connection:
        found = connection.execute(text("SELECT matter_id FROM app.search('lease', 10)")).scalars().all()
    assert found == [firms[0]]
    with database.engine(Role.MEMBER_APP).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM app.search('lease', 10)")).scalar_one() == 0
    for role in (Role.OBSERVER, Role.REGISTRAR, Role.SUPPORT):
        with pytest.raises(DBAPIError, match="permission denied"), database.engine(role).connect() as connection:
            connection.execute(text("SELECT * FROM app.search('lease', 10)"))


def test_a_row_cannot_point_at_another_firms(database: Database, firms: list[UUID]) -> None:
    """Foreign keys ignore policies, so they carry the firm. Even a superuser is refused."""
    one, other = firms
    with database.preparer.connect() as connection:
        theirs = connection.execute(text("SELECT id FROM documents WHERE firm_id = :f"), {"f": other}).scalar_one()
        run = connection.execute(
            text("SELECT run_id FROM agents.agent_run WHERE firm_id = :f"), {"f": other}
        ).scalar_one()
        ours = connection.execute(text("SELECT id FROM documents WHERE firm_id = :f"), {"f": one}).scalar_one()
    link = (
        "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence,"
        " target_document_id) VALUES (:firm, :document, gen_random_uuid(), :run, 'link', 'x', 'applied', 1, :target)"
    )
    item = (
        "INSERT INTO inbox.item (id, firm_id, matter_id, document_id, kind, dedup_key, summary)"
        " VALUES (gen_random_uuid(), :firm, :firm, :document, 'k', 'y', 's')"
    )
    for engine in (database.engine(Role.MEMBER_APP), database.preparer):
        for statement, values in (
            (item, {"firm": one, "document": theirs}),
            (link, {"firm": one, "document": ours, "run": run, "target": None}),
            (link, {"firm": one, "document": ours, "run": run, "target": theirs}),
        ):
            with pytest.raises(DBAPIError) as refused, firm_transaction(engine, one) as connection:
                connection.execute(text(statement), values)
            assert isinstance(refusal(refused.value), UnknownReference)


def test_a_unique_key_does_not_tell_what_another_firm_has(database: Database, firms: list[UUID]) -> None:
    """The same keys are free for one firm whatever the other has, and taken within a firm."""
    one, other = firms
    with database.preparer.connect() as connection:
        ours = connection.execute(text("SELECT id FROM documents WHERE firm_id = :f"), {"f": one}).scalar_one()
    statements = (
        (
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type)"
            " VALUES (:id, :firm, :firm, 'a', :key, 'b')"
        ),
        (
            "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
            " extraction_epoch, object_key, content_type)"
            " VALUES (:firm, :firm, :document, 'document.ingest.requested', :key, 1, 'o', 'c')"
        ),
        (
            "INSERT INTO inbox.item (id, firm_id, matter_id, document_id, kind, dedup_key, summary)"
            " VALUES (:id, :firm, :firm, :document, 'k', :key, 's')"
        ),
    )
    with firm_transaction(database.engine(Role.MEMBER_APP), other) as connection:
        theirs = connection.execute(text("SELECT id FROM documents")).scalar_one()
        for statement in statements:
            connection.execute(text(statement), {"id": uuid7(), "firm": other, "document": theirs, "key": "the same"})
    for statement in statements:
        values = {"firm": one, "document": ours, "key": "the same"}
        with firm_transaction(database.engine(Role.MEMBER_APP), one) as connection:
            connection.execute(text(statement), {"id": uuid7(), **values})
        with (
            pytest.raises(DBAPIError) as refused,
            firm_transaction(database.engine(Role.MEMBER_APP), one) as connection,
        ):
            connection.execute(text(statement), {"id": uuid7(), **values})
        assert isinstance(refusal(refused.value), DuplicateKey)


MUTATIONS = {
    "row-level security is off": [f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY" for table in FIRM_SCOPED],
    "policies let everything pass": [
        f"ALTER POLICY firm_isolation_policy ON {table} USING (true) WITH CHECK (true)"
        for table in FIRM_SCOPED
        if table in MATRIX[Role.MEMBER]
    ],
    "policies are gone": [
        f"DROP POLICY firm_isolation_policy ON {table}" for table in FIRM_SCOPED if table in MATRIX[Role.MEMBER]
    ],
    "a policy for everybody besides": [f"CREATE POLICY open ON {table} USING (true)" for table in FIRM_SCOPED],
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_checks_fail_where_the_policies_do(database: Database, firms: list[UUID], mutation: str) -> None:
    """For every single table of a member's: tests that pass as somebody whom policies do not bind prove nothing."""
    with database.preparer.begin() as connection:
        for statement in MUTATIONS[mutation]:
            connection.exec_driver_sql(statement)
    found = leaks(as_the_firm(database.engine(Role.MEMBER_APP)), own=firms[0], others=[firms[1]])
    broken = {leak.partition(":")[0] for leak in found}
    assert broken >= {table for table in MATRIX[Role.MEMBER] if table in FIRM_SCOPED}
    if mutation in ("row-level security is off", "a policy for everybody besides"):
        assert visible(database.engine(Role.SUPPORT), Role.SUPPORT).keys() == set(FIRM_SCOPED)


def test_the_checks_fail_for_a_superuser(database: Database, firms: list[UUID]) -> None:
    """No suite may run as one."""
    superuser = create_engine(database.url("postgres"))
    assert leaks(as_the_firm(superuser), own=firms[0], others=[firms[1]])
    superuser.dispose()


def test_a_firm_that_nobody_knows_has_nothing(single: Engine, firms: list[UUID]) -> None:
    """Not even an error."""
    with firm_transaction(single, uuid4()) as connection:
        assert connection.execute(text("SELECT count(*) FROM documents")).scalar_one() == 0
