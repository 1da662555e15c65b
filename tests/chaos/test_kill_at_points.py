"""`kill -9` of Baton's real processes at named statements and calls; nobody repairs, and each thing is there once."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from baton.casefile.exhibits import make_case_file
from baton.demo.arrivals import Filed, open_firm
from baton.demo.cast import (
    EXTRACTOR,
    REGISTRAR,
    RELAY_INGEST,
    RELAY_REGISTRAR,
    SETTLER,
    Part,
    has_recogniser,
    running_cast,
)
from baton.demo.sights import all_at_rest, look
from baton.demo.stage import DATABASE, open_stage
from baton.embedded.postgres import SUPERUSER
from support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

TESTS = Path(__file__).parents[1]
_RELAYS = (
    "sqs:SendMessageBatch 1 unseen",
    "UPDATE ops.document_ingest_outbox 1 before",
    "sqs:SendMessageBatch 1 before",
    "COMMIT 2 unseen",
    "sqs:SendMessageBatch 1 after",
    "COMMIT 1 before",
)
#: What begins so, which one of a life, when; each line is the end of one life.
_DEATHS: Mapping[str, tuple[str, ...]] = {
    RELAY_INGEST: _RELAYS,
    RELAY_REGISTRAR: _RELAYS,
    EXTRACTOR: (
        "INSERT INTO ops.document_ingest_outbox 1 before",
        "s3:GetObject 1 unseen",
        "sqs:DeleteMessageBatch 1 before",
        "COMMIT 6 unseen",
        "UPDATE documents SET processing_status 1 before",
        "sqs:DeleteMessageBatch 1 unseen",
    ),
    REGISTRAR: (
        "http:invoke 1 unseen",
        "INSERT INTO agents.agent_run 2 before",
        "http:invoke 2 before",
        "INSERT INTO record.assertion 1 before",
        "http:invoke 2 after",
        "sqs:DeleteMessageBatch 2 before",
        "COMMIT 12 unseen",
    ),
    SETTLER: (
        "INSERT INTO agents.agent_effect 1 before",
        "s3:GetObject 1 unseen",
        "sqs:DeleteMessageBatch 1 before",
        "INSERT INTO ops.document_ingest_outbox 1 before",
        "COMMIT 3 unseen",
        "sqs:DeleteMessageBatch 1 unseen",
    ),
}
_BATCH = 4
_NEVER = {
    "a key has two tickets": "SELECT 1 FROM ops.document_ingest_outbox GROUP BY idempotency_key HAVING count(*) > 1",
    "an effect is there twice": "SELECT 1 FROM agents.agent_effect GROUP BY run_id, ordinal HAVING count(*) > 1",
    "a claim is there twice": "SELECT 1 FROM record.intent_claim GROUP BY document_id, extraction_run_id, intent_key"
    " HAVING count(*) > 1",
    "an inbox item is there twice": "SELECT 1 FROM inbox.item GROUP BY document_id, dedup_key HAVING count(*) > 1",
    "a document was registered twice": "SELECT 1 FROM ops.document_status_transition WHERE to_status = 'registered'"
    " GROUP BY document_id, extraction_run_id HAVING count(*) > 1",
    "a run is not settled": "SELECT 1 FROM agents.agent_run WHERE state = 'pending'",
}


def test_real_processes_killed_at_named_points_change_no_end(tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Thirty and more lives, each ended at its point, while documents go on coming in."""

    def more(part: Part) -> Mapping[str, str]:
        if part.name not in _DEATHS:
            return {}
        path = os.pathsep.join((str(TESTS / "support" / "crashing" / "killing"), str(TESTS)))
        return {"PYTHONPATH": path, "BATON_TEST_DEATHS": str(tmp_path / part.name)}

    def died() -> int:
        return sum(len(each.read_text().splitlines()) for each in tmp_path.glob("*.died"))

    planned = sum(map(len, _DEATHS.values()))
    for name, lines in _DEATHS.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    filed: list[Filed] = []
    with ExitStack() as opened:
        stage = opened.enter_context(open_stage())
        administrator = create_engine(stage.postgres.url(SUPERUSER, DATABASE), poolclass=NullPool)
        firm = opened.enter_context(open_firm(stage))
        exhibits = make_case_file(stage.papers, ocr=has_recogniser())
        opened.enter_context(running_cast(stage, more=more))
        for number, first in enumerate(range(0, len(exhibits), _BATCH), 1):
            enough = died() + _BATCH
            filed.extend(firm.upload(exhibits[first : first + _BATCH], batch=number))

            def goes_on(enough: int = enough) -> bool:
                return died() >= enough or all_at_rest(filed, look(firm))

            wait_until(goes_on, timeout=300, interval=0.2, what="a batch's deaths, or its rest")
        wait_until(lambda: all_at_rest(filed, look(firm)), timeout=400, interval=0.5, what="every document's rest")
        seen = look(firm)
        with administrator.connect() as connection:
            amiss = [what for what, statement in _NEVER.items() if connection.execute(text(statement)).first()]
    tell(f"{died()} of {planned} processes were killed at their points; {len(filed)} documents")
    assert amiss == []
    assert died() >= 30
    assert [each.exhibit.name for each in filed if not seen[each.id].as_expected(each.exhibit)] == []
