"""Relay, registrar and settler as processes, with the reference agent: from a request to the Record."""

from uuid import UUID

import pytest

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Misbehaviour, Rule, Script
from baton.agent.server import AgentServer
from baton.db.states import Part, RegistrationStatus
from support.dispatching import Desk
from support.processes import asked, pipeline
from support.scripted_agent import TOKEN
from support.waiting import wait_until


@pytest.mark.slow
def test_a_request_becomes_a_registered_document_with_its_parts(desk: Desk) -> None:
    """Request, dispatch, agent, settlement, apply, card, sections, brief: each run once, by nobody's hand."""
    document = asked(desk)
    with (
        AgentServer(AgentConfig(token=TOKEN)) as agent,
        pipeline(desk, "relay", "registrar", "settler", BATON_AGENT_URL=agent.url),
    ):
        wait_until(lambda: _parts(desk, document) == {"card": "ready", "sections": "ready", "brief": "ready"}, 60)
    assert desk.matter.read(document).registration_status is RegistrationStatus.REGISTERED
    runs = desk.runs(document)
    assert [(run.purpose, run.state, run.invoke_count) for run in runs] == [
        (purpose, "delivered", 1) for purpose in ("classify", "card", "sections", "brief")
    ]
    unhandled = "handled_at IS NULL"
    assert desk.matter.count("ops.document_ingest_outbox", unhandled) == 0
    assert desk.matter.count("ops.consumer_heartbeat") == 0


@pytest.mark.slow
def test_an_artifact_that_came_before_the_settler_is_found_by_it(desk: Desk) -> None:
    """The first settler of an installation sets up the announcement, and looks for what it was too late for."""
    document = asked(desk)
    with (
        AgentServer(AgentConfig(token=TOKEN)) as agent,
        pipeline(desk, "relay", "registrar", BATON_AGENT_URL=agent.url),
    ):
        wait_until(lambda: _delivered(desk, document), 60)
        with pipeline(desk, "settler"):
            wait_until(lambda: _status(desk, document) is RegistrationStatus.REGISTERED, 60)
    assert len([run for run in desk.runs(document) if run.purpose == "classify"]) == 1


@pytest.mark.slow
def test_an_agent_that_was_dark_is_asked_when_it_is_back(desk: Desk) -> None:
    """Its outage costs no attempt: the document is registered at its first one."""
    document = asked(desk)
    script = Script([Rule(act=Misbehaviour.REFUSE, status=503)])
    with (
        AgentServer(AgentConfig(token=TOKEN), script=script) as agent,
        pipeline(desk, "relay", "registrar", "settler", BATON_AGENT_URL=agent.url),
    ):
        wait_until(lambda: len(desk.runs(document)) >= 3, 60)
        script.clear()
        wait_until(lambda: _status(desk, document) is RegistrationStatus.REGISTERED, 60)
    assert desk.matter.read(document).registration_attempt == 1
    states = [run.state for run in desk.runs(document) if run.purpose == "classify"]
    assert set(states[:-1]) == {"undispatched"}
    assert states[-1] == "delivered"


@pytest.mark.slow
def test_an_agent_that_never_delivers_ends_in_a_visible_failure(desk: Desk) -> None:
    """The sweeper expires the run, the ticket goes round, and the document says what happened."""
    document = asked(desk)
    script = Script([Rule(act=Misbehaviour.NEVER)])
    limits = {"BATON_RUN_DEADLINE": "2", "BATON_RUN_UPLOAD_SLACK": "0"}
    with (
        AgentServer(AgentConfig(token=TOKEN), script=script) as agent,
        pipeline(desk, "relay", "registrar", "settler", BATON_AGENT_URL=agent.url, **limits),
    ):
        wait_until(lambda: _status(desk, document) is RegistrationStatus.REGISTRATION_FAILED, 60)
    found = desk.matter.read(document)
    assert found.failure_kind == "run_expired"
    assert found.registration_message
    assert found.next_attempt_at is not None


def _status(desk: Desk, document: UUID) -> RegistrationStatus:
    return desk.matter.read(document).registration_status


def _delivered(desk: Desk, document: UUID) -> bool:
    """Whether the agent's artifact lies in the bucket."""
    return any(desk.store.exists(f"agent-runs/{run.run_id}/artifact.json") for run in desk.runs(document))


def _parts(desk: Desk, document: UUID) -> dict[str, str]:
    found = {part: desk.matter.part(document, part) for part in Part}
    return {part.value: row.state for part, row in found.items() if row is not None}
