"""One call to an agent on a real socket: what comes back, in what time, with how many bytes."""

import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from baton.contract.invocations import InputKind, InputPointer, Invocation, ResultDelivery
from baton.contract.purposes import Purpose, SchemaName
from baton.runs.answers import Answer, Fate, Reply, classify
from baton.runs.invocation import AgentClient, AgentMissing
from baton.settings.agents import Agent
from baton.settings.secret import Secret
from support.scripted_agent import (
    TOKEN,
    ScriptedAgent,
    accept,
    flood,
    reset,
    silent,
    status,
    trickle_body,
    trickle_headers,
)
from support.scripted_agent import (
    Answer as Manner,
)

RUN = UUID("0198f000-0000-7000-8000-000000000001")


def an_invocation() -> bytes:
    """A valid body."""
    return Invocation(
        run_id=RUN,
        purpose=Purpose.CLASSIFY,
        inputs=(InputPointer(kind=InputKind.TEXT, url="http://store/pages", content_type="text/plain"),),
        result_delivery=ResultDelivery(
            url="http://store/artifact",
            headers={"If-None-Match": "*"},
            schema=SchemaName.CLASSIFICATION_V1,
            deadline=datetime(2030, 1, 1, tzinfo=UTC),
        ),
    ).body()


def call(url: str, *, connect: float = 0.5, read: float = 0.5) -> tuple[Reply, float]:
    """The reply, and how long it took."""
    settings = Agent(url=url, token=Secret(TOKEN), connect_timeout=connect, read_timeout=read)
    with AgentClient(settings) as client:
        began = time.monotonic()
        reply = client.invoke(an_invocation())
        return reply, time.monotonic() - began


def test_an_acceptance_comes_back_whole() -> None:
    """Status, body, and the token that was carried."""
    with ScriptedAgent([accept]) as agent:
        reply, _ = call(agent.url + "/")
    assert classify(reply, run_id=RUN, first=True) is Answer.ACCEPTED
    assert agent.headers[0]["authorization"] == f"Bearer {TOKEN}"


def test_no_call_carries_what_an_earlier_answer_left() -> None:
    """Cookies of one answer are not sent with the next call: they would grow without end, and pin it to one server."""
    with ScriptedAgent([status(503, Set_Cookie="served-by=7; Path=/"), accept]) as agent:
        settings = Agent(url=agent.url, token=Secret(TOKEN), connect_timeout=5, read_timeout=5)
        with AgentClient(settings) as client:
            client.invoke(an_invocation())
            client.invoke(an_invocation())
    assert len(agent.headers) == 2
    assert "cookie" not in agent.headers[1]


@pytest.mark.parametrize("manner", [silent, trickle_headers, trickle_body])
def test_no_call_lasts_longer_than_its_bound(manner: Manner) -> None:
    """A byte now and then does not buy more time; the call is ambiguous, since it was sent."""
    with ScriptedAgent([manner]) as agent:
        reply, seconds = call(agent.url)
    assert reply.fate is Fate.LOST
    assert seconds < 3


def test_a_flood_is_cut_at_the_size_of_an_acceptance() -> None:
    """What is too long for an acceptance is not read to its end."""
    with ScriptedAgent([flood]) as agent:
        reply, _ = call(agent.url, read=5)
    assert (reply.status, len(reply.body)) == (200, 4097)
    assert agent.flooded < 64 * 2**20


def test_a_broken_connection_is_ambiguous() -> None:
    """The request was read before."""
    with ScriptedAgent([reset]) as agent:
        reply, _ = call(agent.url)
    assert reply.fate is Fate.LOST


def test_nobody_listening_is_unsent() -> None:
    """Refused, and known to be refused."""
    reply, _ = call("http://127.0.0.1:9")
    assert reply.fate is Fate.UNSENT


def test_a_name_that_leads_nowhere_is_unsent() -> None:
    """No address, so no byte."""
    reply, _ = call("http://agent.invalid")
    assert reply.fate is Fate.UNSENT


@pytest.fixture
def deaf() -> Iterator[str]:
    """A port that takes connections and never reads a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []
        closing = threading.Event()

        def hold() -> None:
            server.settimeout(0.05)
            while not closing.is_set():
                try:
                    held.append(server.accept()[0])
                except TimeoutError:
                    continue

        thread = threading.Thread(target=hold)
        thread.start()
        yield f"{server.getsockname()[1]}"
        closing.set()
        thread.join(5)
        for each in held:
            each.close()


def test_a_handshake_that_never_ends_is_unsent(deaf: str) -> None:
    """Over TLS nothing of the request is sent before the handshake."""
    reply, seconds = call(f"https://127.0.0.1:{deaf}")
    assert reply.fate is Fate.UNSENT
    assert seconds < 3


def test_an_agent_that_reads_but_does_not_answer_is_ambiguous(deaf: str) -> None:
    """It may have read the request."""
    reply, seconds = call(f"http://127.0.0.1:{deaf}")
    assert reply.fate is Fate.LOST
    assert seconds < 3


def test_a_redirect_is_not_followed() -> None:
    """The token is for this address only."""
    with ScriptedAgent([accept]) as elsewhere, ScriptedAgent([status(307, Location=elsewhere.url)]) as agent:
        reply, _ = call(agent.url)
    assert (reply.status, elsewhere.invocations) == (307, [])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None), ("1e9", None), ("", None)],
)
def test_only_plain_seconds_are_taken_as_a_wait(text: str, seconds: float | None) -> None:
    """Anything else in Retry-After is as good as nothing."""
    with ScriptedAgent([status(503, Retry_After=text)]) as agent:
        reply, _ = call(agent.url)
    assert reply.retry_after == seconds


def test_an_agent_that_is_not_configured_is_said_so() -> None:
    """A program that invokes one cannot start without."""
    with pytest.raises(AgentMissing):
        AgentClient(Agent())


def test_the_token_is_in_no_text() -> None:
    """Neither of the reply nor of the client."""
    with ScriptedAgent([accept]) as agent:
        reply, _ = call(agent.url)
    assert TOKEN not in repr(reply)
