"""The agent dies with runs in its hands and comes back knowing none of them: each effect once, and all ends registered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from uuid_utils.compat import uuid7

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Misbehaviour, Rule, Script
from baton.agent.server import AgentServer
from baton.contract.purposes import Purpose
from baton.db.states import Part, RegistrationStatus
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.matters import Matter
from support.processes import asked, pipeline
from support.scripted_agent import TOKEN
from support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

DOCUMENTS = 8
#: Runs that the agent has accepted and not delivered when it dies: of the registration, and of a part.
HELD, HELD_PARTS = 4, 1
#: Far beyond the test.
LONG = 3600.0
#: A run is given up after a few seconds, and asked for again at once.
QUICK = {
    "BATON_RUN_DEADLINE": "8",
    "BATON_RUN_UPLOAD_SLACK": "1",
    "BATON_RECONCILE_INTERVAL": "0.5",
    "BATON_BREAKER_MIN_RUNS": "1000",
}


def test_an_agent_that_loses_its_memory_in_the_middle_of_its_runs(database: Database, aws: AwsAccount) -> None:
    """What it had delivered stands, what it held is given up at its deadline and asked for anew; nothing is applied twice,
    and nobody helps.
    """
    desk = Desk(Matter(database, uuid7(), uuid7()), aws)
    documents = [asked(desk) for _ in range(DOCUMENTS)]
    config = AgentConfig(token=TOKEN)
    holding = Script(
        [
            Rule(act=Misbehaviour.LATE, seconds=LONG, purpose=Purpose.CLASSIFY, times=HELD),
            Rule(act=Misbehaviour.LATE, seconds=LONG, purpose=Purpose.CARD, times=HELD_PARTS),
        ]
    )
    agent = AgentServer(config, script=holding)
    agent.start()
    again = replace(config, port=agent.port)
    try:
        with pipeline(desk, "relay", "registrar", "settler", "reconciler", BATON_AGENT_URL=agent.url, **QUICK):
            wait_until(lambda: _accepted(desk) >= DOCUMENTS + HELD_PARTS, 120, what="the agent has accepted")
            wait_until(lambda: _statuses(desk)[RegistrationStatus.REGISTERED] >= DOCUMENTS - HELD, 120)
            agent.stop()
            with AgentServer(again):
                wait_until(lambda: _understood(desk, documents), 180, what="everything is there")
    finally:
        agent.stop()
    assert _statuses(desk) == {RegistrationStatus.REGISTERED: DOCUMENTS}
    matter = desk.matter
    became = matter.rows(
        "SELECT document_id FROM ops.document_status_transition WHERE axis = 'registration' AND to_status = 'registered'"
    )
    assert Counter(row[0] for row in became) == dict.fromkeys(documents, 1)
    delivered = matter.rows(
        "SELECT document_id, purpose, count(*) FROM agents.agent_run WHERE state = 'delivered' GROUP BY 1, 2"
    )
    assert [row for row in delivered if row[2] != 1] == []
    assert len(delivered) == DOCUMENTS * (1 + len(Part))
    assert matter.count("agents.agent_run", "state = 'expired'") >= HELD
    assert matter.count("ops.document_ingest_outbox", "handled_at IS NULL") == 0


def _accepted(desk: Desk) -> int:
    return desk.matter.count("agents.agent_run", "accepted_at IS NOT NULL")


def _statuses(desk: Desk) -> Counter[RegistrationStatus]:
    rows = desk.matter.rows("SELECT registration_status, count(*) FROM documents GROUP BY 1")
    return Counter({RegistrationStatus(status): count for status, count in rows})


def _understood(desk: Desk, documents: Sequence[object]) -> bool:
    ready = desk.matter.count("record.understanding_part", "state = 'ready'")
    return ready == len(documents) * len(Part)
