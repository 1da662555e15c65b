"""Every look-up of an apply is served by its index, as the role that makes it, under row-level security."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, event, text

from baton.contract.classification import AddTag, Concern, ConcernKind, LinkBy, LinkDocument, LinkRelation, LinkTarget
from baton.db.access import Role
from baton.db.states import Outcome, Part
from baton.record.apply import apply
from support.matters import LIMITS, Matter, turn

BIG = ("documents", "agent_run", "agent_effect", "assertion", "intent_claim", "item", "understanding_part")


def fill(matter: Matter, count: int = 4000) -> None:
    """Other documents of other firms, each with a run, an effect, an assertion, a claim, an item and a part."""
    with matter.database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        connection.execute(
            text(
                "CREATE TEMPORARY TABLE other ON COMMIT DROP AS SELECT gen_random_uuid() AS id,"
                " md5((i % 20)::text)::uuid AS firm, gen_random_uuid() AS run, gen_random_uuid() AS pass, i"
                " FROM generate_series(1, :count) i"
            ),
            {"count": count},
        )
        for statement in (
            (
                "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, checksum_sha256)"
                " SELECT id, firm, gen_random_uuid(), 'a.pdf', 'k' || i, 'application/pdf', md5(i::text) FROM other"
            ),
            (
                "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose,"
                " result_schema, state, settled_at, deadline_at, result_key) SELECT run, firm, id, pass, 1, 'classify',"
                " 'registrar.classification.v1', 'delivered', app.clock(), app.clock(), 'k' FROM other"
            ),
            (
                "INSERT INTO agents.agent_effect (firm_id, document_id, run_id, ordinal, schema_name, data, disposition)"
                " SELECT firm, id, run, 0, 'registrar.classification.v1', '{}', 'applied' FROM other"
            ),
            (
                "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state,"
                " confidence) SELECT firm, id, pass, run, 'name', 'x', 'applied', 1 FROM other"
            ),
            (
                "INSERT INTO record.intent_claim (firm_id, document_id, extraction_run_id, intent_key, run_id)"
                " SELECT firm, id, pass, 'set_name', run FROM other"
            ),
            (
                "INSERT INTO inbox.item (id, firm_id, matter_id, document_id, kind, dedup_key, summary)"
                " SELECT gen_random_uuid(), firm, firm, id, 'other', i::text, 's' FROM other"
            ),
            (
                "INSERT INTO record.understanding_part (firm_id, document_id, extraction_run_id, part)"
                " SELECT firm, id, pass, 'card' FROM other"
            ),
        ):
            connection.execute(text(statement))
    with matter.database.preparer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


@contextmanager
def explained(connection: Connection) -> Iterator[list[tuple[str, str]]]:
    """Every statement of the block with its plan, taken at the place and as the role where it runs."""
    plans: list[tuple[str, str]] = []
    asking = False

    @event.listens_for(connection, "before_cursor_execute")
    def ask(seen: Connection, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        nonlocal asking
        if asking or isinstance(parameters, list) or not statement.lstrip().startswith(("SELECT", "UPDATE", "INSERT")):
            return
        asking = True
        cursor.execute("EXPLAIN (COSTS OFF) " + statement, parameters)
        plans.append((statement, "\n".join(row[0] for row in cursor.fetchall())))
        asking = False

    try:
        yield plans
    finally:
        event.remove(connection, "before_cursor_execute", ask)


def classified(matter: Matter) -> Any:
    """A turn with everything that looks something up."""
    document = matter.document("first.pdf", checksum="ab" * 32)
    link = LinkDocument(
        key="l",
        confidence=0.9,
        target=LinkTarget(by=LinkBy.NAME, value="NDA.pdf"),
        relation=LinkRelation.REFERS_TO,
    )
    concern = Concern(kind=ConcernKind.SIDE_CONFLICT, note="Both sides.", confidence=0.9)
    effect = turn(AddTag(key="t", confidence=0.9, tag="urgent"), link, concerns=[concern])
    return matter.deliver(matter.dispatch(document), effect)


def rejected_part(matter: Matter) -> Any:
    """A part whose run brought nothing."""
    document: UUID = matter.registered()
    return matter.settle(matter.dispatch_part(document, Part.CARD), "rejected")


@pytest.mark.parametrize(("prepare", "ends"), [(classified, Outcome.DONE), (rejected_part, Outcome.REFUSED)])
def test_no_statement_of_an_apply_reads_a_whole_table(
    matter: Matter, prepare: Callable[[Matter], Any], ends: Outcome
) -> None:
    """No sequential scan of anything that grows."""
    ticket = prepare(matter)
    fill(matter)
    with matter.database.engine(Role.REGISTRAR).begin() as connection, explained(connection) as plans:
        assert apply(connection, ticket, limits=LIMITS) is ends
    assert len(plans) >= 6
    whole = [(statement, plan) for statement, plan in plans if any(f"Seq Scan on {table}" in plan for table in BIG)]
    assert whole == []
