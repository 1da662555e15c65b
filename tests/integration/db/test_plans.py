"""Hot scans are served by the index that was made for each, as the roles that run them, under forced policies."""

import json
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text

from baton.db.access import Role
from integration.db.conftest import run
from support.databases import Cluster, Database

pytestmark = pytest.mark.check

_DOCUMENT = (
    "SELECT d.id FROM documents d WHERE {where} AND d.deleted_at IS NULL AND d.{since} < $1"
    " AND (d.{since}, d.id) > ($2, $3) ORDER BY d.{since}, d.id LIMIT 100"
)
_PART = (
    "SELECT p.document_id FROM record.understanding_part p WHERE {where} AND p.{since} < $1"
    " AND (p.{since}, p.document_id) > ($2, $3) ORDER BY p.{since}, p.document_id LIMIT 100"
)
_KEYSET = ("timestamptz", "timestamptz", "uuid")
_PROCESSING, _REGISTRATION = "processing_status_since", "registration_status_since"

#: name → (index, statement, types of its parameters)
SCANS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    name: (index, _DOCUMENT.format(where=where, since=since), _KEYSET)
    for name, index, since, where in (
        ("uploads abandoned", "m_upload_abandoned", _PROCESSING, "d.processing_status = 'pending'"),
        (
            "ingest tickets missing",
            "m_ingest_ticket_missing",
            _PROCESSING,
            "d.processing_status = 'uploaded' AND d.ingest_ticket_id IS NULL",
        ),
        (
            "requests missing",
            "m_request_missing",
            _PROCESSING,
            "d.processing_status = 'indexed' AND d.registration_status = 'not_requested'",
        ),
        (
            "request tickets missing",
            "m_request_ticket_missing",
            _REGISTRATION,
            "d.registration_status = 'queued' AND d.registration_ticket_id IS NULL",
        ),
        (
            "runs missing",
            "m_run_missing",
            _REGISTRATION,
            "d.registration_status = 'registering' AND d.registration_run_id IS NULL",
        ),
        (
            "failures to retry",
            "m_retry",
            "next_attempt_at",
            "d.registration_status = 'registration_failed' AND d.next_attempt_at IS NOT NULL",
        ),
        (
            "passes superseded",
            "m_pass_superseded",
            _REGISTRATION,
            "d.registration_status <> 'not_requested' AND d.registration_pass IS DISTINCT FROM d.extraction_run_id",
        ),
        (
            "fan-outs missing",
            "m_fan_out_missing",
            _REGISTRATION,
            "d.registration_status = 'registered' AND d.understood_pass IS DISTINCT FROM d.registration_pass",
        ),
        ("open registrations", "doc_open_reg", _REGISTRATION, "d.registration_status = 'queued'"),
        ("open extractions", "doc_open_ing", _PROCESSING, "d.processing_status = 'stored'"),
    )
} | {
    "artifacts unopened": (
        "m_artifact_unopened",
        (
            "SELECT r.run_id FROM agents.agent_run r WHERE r.state IN ('delivered', 'rejected', 'expired')"
            " AND r.artifact_ticket_id IS NULL AND r.settled_at < $1 AND (r.settled_at, r.run_id) > ($2, $3)"
            " ORDER BY r.settled_at, r.run_id LIMIT 100"
        ),
        _KEYSET,
    ),
    "runs past their deadline": (
        "run_deadline",
        (
            "SELECT r.run_id FROM agents.agent_run r WHERE r.state = 'pending' AND r.deadline_at < $1"
            " AND (r.deadline_at, r.run_id) > ($2, $3) ORDER BY r.deadline_at, r.run_id LIMIT 100"
        ),
        _KEYSET,
    ),
    "tickets parked": (
        "o_parked",
        (
            "SELECT o.id FROM ops.document_ingest_outbox o WHERE o.parked_at IS NOT NULL AND o.handled_at IS NULL"
            " AND o.parked_at < $1 ORDER BY o.parked_at, o.id LIMIT 100"
        ),
        ("timestamptz",),
    ),
    "tickets open": (
        "o_open",
        (
            "SELECT o.id FROM ops.document_ingest_outbox o WHERE o.lane = 'registrar' AND o.dispatched_at IS NOT NULL"
            " AND o.handled_at IS NULL AND o.dispatched_at < $1 AND (o.dispatched_at, o.id) > ($2, $3)"
            " ORDER BY o.dispatched_at, o.id LIMIT 100"
        ),
        ("timestamptz", "timestamptz", "bigint"),
    ),
    "parts open": (
        "part_open",
        _PART.format(where="p.state IN ('requested', 'running')", since="state_since"),
        _KEYSET,
    ),
    "part tickets missing": (
        "part_ticket_missing",
        _PART.format(where="p.state = 'requested' AND p.ticket_id IS NULL", since="state_since"),
        _KEYSET,
    ),
    "part runs missing": (
        "part_run_missing",
        _PART.format(where="p.state = 'running' AND p.run_id IS NULL", since="state_since"),
        _KEYSET,
    ),
    "parts to retry": (
        "part_retry",
        _PART.format(where="p.state = 'failed' AND p.next_attempt_at IS NOT NULL", since="next_attempt_at"),
        _KEYSET,
    ),
    "a document's repairs": (
        "repair_document",
        "SELECT count(*) FROM ops.registration_repair WHERE document_id = $1 AND at >= $2",
        ("uuid", "timestamptz"),
    ),
    "a document's tickets": (
        "outbox_document",
        "SELECT o.id FROM ops.document_ingest_outbox o WHERE o.document_id = $1 ORDER BY o.id",
        ("uuid",),
    ),
    "the next slice of the scrub": (
        "documents_pkey",
        "SELECT id FROM documents WHERE id > $1 ORDER BY id OFFSET 999 LIMIT 1",
        ("uuid",),
    ),
}

_FILL = (
    (
        "CREATE TEMPORARY TABLE made ON COMMIT DROP AS SELECT gen_random_uuid() AS id, md5((i % 20)::text)::uuid AS firm,"
        " gen_random_uuid() AS pass, gen_random_uuid() AS run, i,"
        " CASE WHEN i % 100 < 97 THEN 'registered' WHEN i % 100 = 97 THEN 'queued' WHEN i % 100 = 98 THEN 'registering'"
        " ELSE 'registration_failed' END AS status FROM generate_series(1, 5000) i"
    ),
    (
        "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, processing_status,"
        " registration_status, extraction_run_id, registration_pass, understood_pass, registration_ticket_id,"
        " registration_run_id, ingest_ticket_id)"
        " SELECT id, firm, firm, 'a', 'k' || i, 't', 'indexed', status, pass, pass, pass, i, run, i FROM made"
    ),
    (
        "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
        " extraction_epoch, extraction_run_id, object_key, content_type, dispatched_at, handled_at, outcome)"
        " SELECT firm, firm, id, 'document.registration.requested', 'k' || i, 1, pass, 'o', 'c', app.clock(),"
        " CASE WHEN i % 50 > 0 THEN app.clock() END, CASE WHEN i % 50 > 0 THEN 'done' END FROM made"
    ),
    (
        "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose, result_schema,"
        " deadline_at, result_key, state, settled_at, artifact_ticket_id) SELECT run, firm, id, pass, 1, 'classify', 's',"
        " app.clock(), 'k', CASE WHEN i % 50 > 0 THEN 'delivered' ELSE 'pending' END,"
        " CASE WHEN i % 50 > 0 THEN app.clock() END, i FROM made"
    ),
    (
        "INSERT INTO record.understanding_part (firm_id, document_id, extraction_run_id, part, state, ticket_id, run_id)"
        " SELECT firm, id, pass, 'card', CASE WHEN i % 50 > 0 THEN 'ready' ELSE 'running' END, i, run FROM made"
    ),
    (
        "INSERT INTO ops.registration_repair (firm_id, document_id, aspect, discrepancy, action, result, requested_by)"
        " SELECT firm, id, 'ingest', 'x', 'x', 'x', 'x' FROM made"
    ),
)


@pytest.fixture(scope="module")
def grown(either: Cluster) -> Iterator[Database]:
    """Five thousand documents, nearly all of them healthy."""
    database = either.create()
    with database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        for statement in _FILL:
            run(connection, statement)
    with database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    yield database
    database.close()


@pytest.fixture(scope="module")
def reconciler(grown: Database) -> Iterator[Connection]:
    """A session that plans without looking at values."""
    with grown.engine(Role.RECONCILER).connect() as connection:
        connection.execute(text("SET plan_cache_mode = 'force_generic_plan'"))
        yield connection


def _explain(connection: Connection, statement: str, arguments: list[str], types: tuple[str, ...]) -> str:
    run(connection, f"PREPARE asked ({', '.join(types)}) AS {statement}" if types else f"PREPARE asked AS {statement}")
    given = ", ".join(f"{value}::{kind}" for value, kind in zip(arguments, types, strict=True))
    found = connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) EXECUTE asked{f' ({given})' if types else ''}"
    ).scalar_one()
    run(connection, "DEALLOCATE asked")
    return json.dumps(found)


_VALUES = {"timestamptz": "'2000-01-01'", "uuid": "'00000000-0000-0000-0000-000000000000'", "bigint": "0"}


@pytest.mark.parametrize("name", SCANS)
def test_a_hot_scan_has_its_index(reconciler: Connection, name: str) -> None:
    """And touches a handful of buffers where nothing is wrong."""
    index, statement, types = SCANS[name]
    plan = _explain(reconciler, statement, [_VALUES[kind] for kind in types], types)
    assert f'"Index Name": "{index}"' in plan, plan
    assert "Seq Scan" not in plan, plan
    root = json.loads(plan)[0]["Plan"]
    limit = 60 if name == "the next slice of the scrub" else 15
    assert root["Shared Hit Blocks"] + root["Shared Read Blocks"] <= limit, plan


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (Role.MEMBER_APP, "SELECT id FROM documents WHERE firm_id = $1 AND matter_id = $1 ORDER BY id LIMIT 50"),
        (Role.RECONCILER, "SELECT id FROM documents WHERE firm_id = $1 AND matter_id = $1 ORDER BY id LIMIT 50"),
    ],
)
def test_a_policys_function_is_asked_once(grown: Database, role: Role, statement: str) -> None:
    """As an InitPlan and not for each row, and the index is used beside it."""
    with grown.engine(role).connect() as connection:
        connection.execute(text("SET LOCAL plan_cache_mode = 'force_generic_plan'"))
        connection.execute(
            text("SELECT set_config('baton.firm_id', md5('1')::uuid::text, true)"),
        )
        plan = _explain(connection, statement, ["md5('1')"], ("uuid",))
    assert '"Parent Relationship": "InitPlan"' in plan, plan
    assert '"Index Name": "doc_matter"' in plan, plan
