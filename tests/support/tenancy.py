"""Two firms with a row of each kind, and what a session could see or do that it must not."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from baton.db import access
from baton.db.access import FIRM_SCOPED, MATRIX, Grant, Role
from baton.db.connect import as_member, firm_transaction

#: Opens a transaction that works for the firm.
ForFirm: TypeAlias = Callable[[UUID], AbstractContextManager[Connection]]

_ROWS = (
    (
        "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, extraction_run_id)"
        " VALUES (:d, :f, :f, 'contract.pdf', 'documents/x', 'application/pdf', :p)"
    ),
    (
        "INSERT INTO document_page (firm_id, document_id, extraction_run_id, page_number, text, source)"
        " VALUES (:f, :d, :p, 1, 'a lease of land', 'native')"
    ),
    (
        "INSERT INTO document_search (firm_id, document_id, page_number, vector)"
        " VALUES (:f, :d, 1, to_tsvector('simple', 'a lease of land'))"
    ),
    (
        "INSERT INTO ops.document_ingest_outbox (firm_id, matter_id, document_id, event_type, idempotency_key,"
        " extraction_epoch, object_key, content_type)"
        " VALUES (:f, :f, :d, 'document.ingest.requested', 'key', 1, 'documents/x', 'application/pdf')"
    ),
    (
        "INSERT INTO ops.document_status_transition (firm_id, document_id, axis, from_status, to_status, extraction_epoch,"
        " registration_attempt, actor, application) VALUES (:f, :d, 'processing', 'pending', 'uploaded', 1, 0, 'a', 'b')"
    ),
    "INSERT INTO ops.audit_event (firm_id, matter_id, document_id, event, actor) VALUES (:f, :f, :d, 'e', 'a')",
    (
        "INSERT INTO ops.registration_repair (firm_id, document_id, aspect, discrepancy, action, result, requested_by)"
        " VALUES (:f, :d, 'ingest', 'x', 'x', 'x', 'x')"
    ),
    (
        "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose, result_schema,"
        " deadline_at, result_key) VALUES (:r, :f, :d, :p, 1, 'classify', 's', app.clock(), 'k')"
    ),
    (
        "INSERT INTO agents.agent_effect (firm_id, document_id, run_id, ordinal, schema_name, data)"
        " VALUES (:f, :d, :r, 0, 's', '{}')"
    ),
    (
        "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence)"
        " VALUES (:f, :d, :p, :r, 'name', 'x', 'applied', 1)"
    ),
    (
        "INSERT INTO record.intent_claim (firm_id, document_id, extraction_run_id, intent_key, run_id)"
        " VALUES (:f, :d, :p, 'set_name', :r)"
    ),
    "INSERT INTO record.firm_policy (firm_id, kind, decision) VALUES (:f, 'name', 'apply')",
    "INSERT INTO record.understanding_part (firm_id, document_id, extraction_run_id, part) VALUES (:f, :d, :p, 'card')",
    (
        "INSERT INTO record.part_content (firm_id, document_id, extraction_run_id, part, run_id, content)"
        " VALUES (:f, :d, :p, 'card', :r, '{}')"
    ),
    (
        "INSERT INTO inbox.item (id, firm_id, matter_id, document_id, kind, dedup_key, summary)"
        " VALUES (gen_random_uuid(), :f, :f, :d, 'k', 'x', 's')"
    ),
)


def open_firms(preparer: Engine, *, count: int = 2) -> list[UUID]:
    """Firms with one row in every firm-scoped table each."""
    firms = [uuid4() for _ in range(count)]
    with preparer.begin() as connection:
        for firm in firms:
            values = {"f": firm, "d": uuid4(), "p": uuid4(), "r": uuid4()}
            for statement in _ROWS:
                connection.execute(text(statement), values)
    return firms


def as_the_firm(engine: Engine) -> ForFirm:
    """Transactions of a login that is the firm's member."""
    return lambda firm: firm_transaction(engine, firm)


def through_the_door(engine: Engine) -> ForFirm:
    """Transactions of the registrar, which becomes the member of the firm in them."""

    @contextmanager
    def opened(firm: UUID) -> Iterator[Connection]:
        with engine.begin() as connection, as_member(connection, firm):
            yield connection

    return opened


def leaks(opened: ForFirm, *, own: UUID, others: Iterable[UUID]) -> list[str]:
    """What a member of one firm could see or do beyond it, and what of its own it cannot see."""
    found = []
    for table, grant in MATRIX[Role.MEMBER].items():
        if table in FIRM_SCOPED:
            found += [f"{table}: {leak}" for leak in _leaks_of(opened, table, grant, own=own, others=[*others])]
    with opened(own) as connection:
        for name, owner in connection.execute(text("SELECT s.name, s.matter_id FROM app.search('lease', 100) s")):
            if owner != own:
                found.append(f"search: shows {name} of another firm")
        if not connection.execute(text("SELECT count(*) FROM app.search('lease', 100)")).scalar_one():
            found.append("search: does not show the firm's own")
    return found


def _leaks_of(opened: ForFirm, table: str, grant: Grant, *, own: UUID, others: list[UUID]) -> Iterator[str]:
    with opened(own) as connection:
        seen = set(connection.execute(text(f"SELECT firm_id FROM {table}")).scalars())
        if own not in seen:
            yield "does not show the firm's own"
        if seen - {own}:
            yield "shows another firm's"
        for column in grant.update[:1]:
            changed = connection.execute(
                text(f"UPDATE {table} SET {column} = {column} WHERE firm_id = ANY (:others)"), {"others": others}
            )
            if changed.rowcount:
                yield "lets another firm's be changed"
        if (
            grant.delete
            and connection.execute(
                text(f"DELETE FROM {table} WHERE firm_id = ANY (:others)"), {"others": others}
            ).rowcount
        ):
            yield "lets another firm's be removed"
    if grant.insert:
        # policies are asked before NOT NULL and CHECK constraints are
        try:
            with opened(own) as connection:
                connection.execute(text(f"INSERT INTO {table} (firm_id) VALUES (:other)"), {"other": others[0]})
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != "42501":
                yield "lets a row be written for another firm"
        else:
            yield "lets a row be written for another firm"


def visible(engine: Engine, role: Role) -> dict[str, int]:
    """How many rows of each firm-scoped table a role sees without naming a firm; only where it sees some."""
    granted = MATRIX[Role.MEMBER if role is Role.MEMBER_APP else role]
    with engine.connect() as connection:
        counts = {
            table: int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())
            for table in access.FIRM_SCOPED
            if table in granted
        }
    return {table: count for table, count in counts.items() if count}
