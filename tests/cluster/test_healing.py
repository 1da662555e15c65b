"""Healing through the resource: the demo's pipeline runs, messages and rows are lost, and kubectl shows it all end."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from baton.aws.clients import Clients
from baton.aws.queues import configured
from baton.casefile.exhibits import REGISTERED, make_case_file
from baton.db.access import Role
from baton.demo.arrivals import Filed, open_firm
from baton.demo.cast import REGISTRAR, RELAY_REGISTRAR, running_cast
from baton.demo.sights import all_at_rest, look
from baton.demo.stage import ACCOUNT, DATABASE, Stage, open_stage
from baton.embedded.postgres import SUPERUSER
from baton.settings.loading import load
from cluster.bed.asking import Kubernetes
from cluster.bed.replicas import PATIENCE, Namespace
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

#: Documents at rest, and those whose message is lost in the registrar's hand: as many as it takes at once.
AT_REST, LOST = 4, 3
#: What is looked for without a grace; as whoever watches would have it.
GRACES = [
    {"discrepancy": name, "grace": "0s"} for name in ("request_stalled", "request_ticket_missing", "fan_out_missing")
]
TWICE = {
    "a key has two tickets": "SELECT 1 FROM ops.document_ingest_outbox GROUP BY idempotency_key HAVING count(*) > 1",
    "a claim is there twice": "SELECT 1 FROM record.intent_claim GROUP BY document_id, extraction_run_id, intent_key"
    " HAVING count(*) > 1",
    "a document was registered twice": "SELECT 1 FROM ops.document_status_transition WHERE to_status = 'registered'"
    " GROUP BY document_id, extraction_run_id HAVING count(*) > 1",
    "a repair was made twice": "SELECT 1 FROM ops.registration_repair GROUP BY document_id, aspect, discrepancy"
    " HAVING count(*) > 1",
}


def credentials(stage: Stage) -> Mapping[str, str]:
    """The stage's queues and bucket, as a secret has them."""
    wanted = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3")
    environ = stage.aws.environ(ACCOUNT)
    return {name: environ[name] for name in wanted}


def rows(administrator: Engine, statement: str, **values: Any) -> list[Any]:
    """What the database answers."""
    with administrator.begin() as connection:
        done = connection.execute(text(statement), values)
        return list(done.all()) if done.returns_rows else []


def in_hand(administrator: Engine, documents: list[UUID]) -> list[UUID]:
    """Those whose request the registrar has received."""
    statement = (
        "SELECT d.id FROM documents d JOIN ops.document_ingest_outbox t ON t.id = d.registration_ticket_id"
        " WHERE d.id = ANY(:ids) AND d.registration_status = 'queued' AND t.first_received_at IS NOT NULL"
    )
    return [row.id for row in rows(administrator, statement, ids=documents)]


@contextmanager
def no_run_is_written(administrator: Engine) -> Iterator[None]:
    """Whoever dispatches in the block waits, with its message in its hand."""
    with administrator.begin() as connection:
        connection.execute(text("LOCK TABLE agents.agent_run IN SHARE MODE"))
        yield


def lose_messages(stage: Stage) -> None:
    """Delete all of the registrar's."""
    clients = Clients(load(stage.aws.environ(ACCOUNT)).aws)
    try:
        _, registrar, _ = configured(clients, stage.queues)
        registrar.purge()
    finally:
        clients.close()


def is_queued(administrator: Engine, document: UUID) -> bool:
    """Whether its registration is asked for."""
    found = rows(administrator, "SELECT registration_status FROM documents WHERE id = :id", id=document)
    return [row[0] for row in found] == ["queued"]


@contextmanager
def watched(kubernetes: Kubernetes) -> Iterator[list[str]]:
    """What `kubectl get regrec` says in the block: its columns, each time that they are others."""
    seen: list[str] = []
    stop = threading.Event()

    def look_on() -> None:
        while not stop.wait(0.05):
            line = kubernetes.kubectl("get", "regrec", "main", "--no-headers").strip()
            columns = " ".join(line.split()[1:5])
            if not seen or seen[-1] != columns:
                seen.append(columns)

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join(PATIENCE)


def found(space: Namespace, **wanted: int) -> bool:
    """Whether the status counts exactly these discrepancies."""
    return {each["name"]: each["count"] for each in space.status().get("discrepancies", ())} == wanted


def test_what_is_lost_and_broken_under_a_running_pipeline_is_healed_through_the_resource(
    kubernetes: Kubernetes, tmp_path: Path
) -> None:
    """In Observe it is reported and nothing is done; in Repair it ends, and each thing has happened once."""
    with ExitStack() as opened:
        stage = opened.enter_context(open_stage())
        administrator = create_engine(stage.postgres.url(SUPERUSER, DATABASE), poolclass=NullPool)
        firm = opened.enter_context(open_firm(stage))
        exhibits = [
            each for each in make_case_file(stage.papers, ocr=False) if each.expected_registration == REGISTERED
        ]
        cast = opened.enter_context(running_cast(stage))

        def at_rest(filed: tuple[Filed, ...]) -> bool:
            return all_at_rest(filed, look(firm))

        healthy = firm.upload(exhibits[:AT_REST], batch=1)
        wait_until(partial(at_rest, healthy), PATIENCE, interval=0.2, what="documents at rest")
        with no_run_is_written(administrator):
            lost = firm.upload(exhibits[AT_REST : AT_REST + LOST], batch=2)
            ids = [each.id for each in lost]
            wait_until(lambda: len(in_hand(administrator, ids)) == LOST, PATIENCE, what="messages in its hand")
            cast.hold(REGISTRAR)
            lose_messages(stage)
        cast.hold(RELAY_REGISTRAR)
        (forgotten,) = firm.upload(exhibits[AT_REST + LOST : AT_REST + LOST + 1], batch=3)
        wait_until(partial(is_queued, administrator, forgotten.id), PATIENCE, what="a request before the relay")
        rows(administrator, "DELETE FROM ops.document_ingest_outbox WHERE document_id = :id", id=forgotten.id)
        rows(administrator, "UPDATE documents SET registration_ticket_id = NULL WHERE id = :id", id=forgotten.id)
        edited = [each.id for each in healthy[:2]]
        rows(administrator, "UPDATE documents SET understood_pass = NULL WHERE id = ANY(:ids)", ids=edited)
        for each in (REGISTRAR, RELAY_REGISTRAR):
            cast.release(each)
        everything = (*healthy, *lost, forgotten)

        space = Namespace(kubernetes, tmp_path)
        url = stage.database_url(Role.RECONCILER).reveal()
        kubernetes.secret("database", {"DATABASE_URL": url})
        kubernetes.secret("queues", credentials(stage))
        queues = {"visibility": f"{stage.queues.visibility}s", "retention": f"{stage.queues.retention}s"}
        with space.replica() as replica, watched(kubernetes) as columns:
            space.declare(bucket=stage.bucket.name, queues=queues, graces=GRACES)
            wanted = {"fan_out_missing": 2, "request_stalled": LOST, "request_ticket_missing": 1}
            wait_until(partial(found, space, **wanted), PATIENCE, what="a report of all that is amiss")
            wait_until(
                lambda: columns[-1] == f"Observe True DiscrepanciesFound {sum(wanted.values())}",
                PATIENCE,
                what="its columns",
            )
            assert rows(administrator, "SELECT * FROM ops.registration_repair") == []
            assert not at_rest(lost)

            space.change({"mode": "Repair"})
            wait_until(lambda: space.status().get("found") == 0, PATIENCE, what="the end of all that was amiss")
            wait_until(partial(at_rest, everything), PATIENCE, interval=0.2, what="every document's rest")
            wait_until(lambda: columns[-1] == "Repair True InOrder 0", PATIENCE, what="its columns")
            assert replica.end() == 0
        seen = look(firm)
        assert [each.exhibit.name for each in everything if not seen[each.id].as_expected(each.exhibit)] == []
        made = rows(administrator, "SELECT document_id, discrepancy, result FROM ops.registration_repair")
        assert sorted((row.document_id, row.discrepancy) for row in made) == sorted(
            [
                *((each, "fan_out_missing") for each in edited),
                (forgotten.id, "request_ticket_missing"),
                *((each, "request_stalled") for each in ids),
            ]
        )
        assert {row.result for row in made} == {"repaired"}
        assert [what for what, statement in TWICE.items() if rows(administrator, statement)] == []
