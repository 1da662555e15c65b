"""The demo's counts notice what happened twice."""

from typing import Any, cast

import pytest
from uuid_utils.compat import uuid7

from baton.contract.classification import AddTag
from baton.db.access import Role
from baton.demo.arrivals import Firm
from baton.demo.once import count
from support.databases import Database
from support.matters import Matter

TAG = AddTag(key="t", confidence=0.9, tag="urgent")

# what a fault would leave behind → the count that must notice
TWICE = {
    "uploads in the audit trail": (
        "INSERT INTO ops.audit_event (firm_id, matter_id, document_id, event, actor)"
        " SELECT firm_id, matter_id, id, 'document.uploaded', 'x' FROM documents, generate_series(1, 2)"
    ),
    "transitions of status": (
        "INSERT INTO ops.document_status_transition (firm_id, document_id, axis, from_status, to_status,"
        " extraction_epoch, registration_attempt, actor, application)"
        " SELECT firm_id, document_id, axis, from_status, to_status, extraction_epoch, registration_attempt, 'x', 'x'"
        " FROM ops.document_status_transition WHERE to_status = 'registered'"
    ),
    "agent runs that were delivered": (
        "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose, result_schema,"
        " state, settled_at, deadline_at, result_key)"
        " SELECT gen_random_uuid(), firm_id, document_id, extraction_run_id, 2, purpose, result_schema, state,"
        " settled_at, deadline_at, 'k' FROM agents.agent_run WHERE state = 'delivered'"
    ),
    "entries of the Record, by the intent that claimed them": (
        "INSERT INTO record.assertion (firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence)"
        " SELECT firm_id, document_id, extraction_run_id, run_id, kind, value, state, confidence FROM record.assertion"
    ),
    "items in the inbox": (
        "INSERT INTO inbox.item (id, firm_id, matter_id, document_id, kind, dedup_key, summary)"
        " SELECT gen_random_uuid(), firm_id, matter_id, id, 'other', 'key ' || n, 'x'"
        " FROM documents, generate_series(1, 2) n"
    ),
}


@pytest.fixture
def firm(database: Database) -> tuple[Firm, Matter]:
    """A firm with one registered document."""
    matter = Matter(database, uuid7(), uuid7())
    matter.registered(TAG)
    return Firm(id=matter.firm, engine=database.engine(Role.MEMBER_APP), store=cast("Any", None)), matter


def test_what_happened_once_is_counted_as_once(firm: tuple[Firm, Matter]) -> None:
    """Rows are there, and none is too many."""
    counted = {each.what: each for each in count(firm[0])}
    assert all(each.once for each in counted.values())
    assert counted["agent runs that were delivered"].rows == 1
    assert counted["effects that were applied"].rows == 1
    assert counted["entries of the Record, by the intent that claimed them"].rows == 1


@pytest.mark.parametrize("what", TWICE)
def test_what_happened_twice_is_noticed(firm: tuple[Firm, Matter], what: str) -> None:
    """One row too many, and the count says so, and no other count does."""
    firm[1].prepare(TWICE[what])
    assert [each.what for each in count(firm[0]) if not each.once] == [what]


def test_another_firms_rows_do_not_count(firm: tuple[Firm, Matter]) -> None:
    """Counted is what the firm's member sees."""
    Matter(firm[1].database, uuid7(), uuid7()).registered(TAG)
    assert {each.what: each.rows for each in count(firm[0])}["agent runs that were delivered"] == 1
