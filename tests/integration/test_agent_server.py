"""The reference agent over real sockets and a real object store."""

import contextlib
import hashlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from botocore.exceptions import ClientError

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Misbehaviour, Rule, Script
from baton.agent.server import AgentServer, serve
from baton.contract import errors
from baton.contract.artifacts import Artifact, parse_artifact
from baton.contract.invocations import (
    InputKind,
    InputPointer,
    Invocation,
    InvocationContext,
    ResultDelivery,
    parse_accepted,
)
from baton.contract.pages import PAGES_CONTENT_TYPE, PageText, encode_pages
from baton.contract.purposes import SCHEMA_OF, Purpose
from support.aws_accounts import AwsAccount
from support.failing_stores import FailingStore as Peer
from support.waiting import wait_until

TOKEN = "a-token-for-tests"
PAGES = encode_pages([PageText(1, "COURT ORDER\nDated 2 May 2024\nIT IS HEREBY ORDERED that costs be paid.")])


class Store:
    """The bucket as the pipeline would use it: it puts the text, signs the URLs and reads the artifact."""

    def __init__(self, account: AwsAccount) -> None:
        self.client = account.client("s3")
        # the server keeps one name space of buckets for all accounts, as S3 does
        self.bucket = f"documents-{account.account}"
        self.client.create_bucket(Bucket=self.bucket)
        self.client.put_object(Bucket=self.bucket, Key="text", Body=PAGES, ContentType=PAGES_CONTENT_TYPE)

    def signed(self, action: str, **params: str) -> str:
        """A presigned URL."""
        return str(self.client.generate_presigned_url(action, Params={"Bucket": self.bucket, **params}, ExpiresIn=600))

    def read(self, key: str) -> bytes | None:
        """The bytes of an object, None where there is none."""
        try:
            return bytes(self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read())
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise


@pytest.fixture
def store(aws: AwsAccount) -> Store:
    """A bucket of this test's own with a text in it."""
    return Store(aws)


def _key(run_id: UUID) -> str:
    return f"agent-runs/{run_id}/artifact.json"


def _invocation(
    store: Store | None = None,
    *,
    purpose: Purpose = Purpose.CLASSIFY,
    text_url: str = "",
    put_url: str = "",
    seconds: float = 60.0,
    sha256: str | None = None,
) -> Invocation:
    run_id = uuid.uuid4()
    if store is not None:
        text_url = text_url or store.signed("get_object", Key="text")
        put_url = put_url or store.signed(
            "put_object", Key=_key(run_id), IfNoneMatch="*", ContentType="application/json"
        )
    return Invocation(
        run_id=run_id,
        purpose=purpose,
        inputs=(InputPointer(kind=InputKind.TEXT, url=text_url, content_type=PAGES_CONTENT_TYPE, sha256=sha256),),
        context=InvocationContext(file_name="order.pdf"),
        result_delivery=ResultDelivery(
            url=put_url,
            headers={"If-None-Match": "*", "Content-Type": "application/json"},
            schema=SCHEMA_OF[purpose],
            deadline=datetime.now(UTC) + timedelta(seconds=seconds),
        ),
    )


def _config(**changes: Any) -> AgentConfig:
    return AgentConfig(token=TOKEN, **{"workers": 2, "first_backoff": 0.05, "longest_backoff": 0.2, **changes})


@contextlib.contextmanager
def _agent(*rules: Rule, **changes: Any) -> Iterator[AgentServer]:
    with AgentServer(_config(**changes), script=Script(rules)) as server:
        yield server


def _post(server: AgentServer, body: bytes, *, path: str = "/invocations", token: str | None = TOKEN) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    with httpx.Client(trust_env=False, timeout=10) as client:
        return client.post(server.url + path, content=body, headers=headers)


def _invoke(server: AgentServer, invocation: Invocation) -> None:
    answer = _post(server, invocation.body())
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    parse_accepted(answer.content, run_id=invocation.run_id)


def _idle(server: AgentServer) -> bool:
    return (server.load.waiting, server.load.working) == (0, 0)


def _delivered(store: Store, invocation: Invocation) -> Artifact:
    data = wait_until(lambda: store.read(_key(invocation.run_id)), what="the artifact")
    assert data is not None
    return parse_artifact(data, expected_schema=invocation.result_delivery.schema_name, run_id=invocation.run_id)


# --- the contract, kept ---


@pytest.mark.parametrize("purpose", Purpose)
def test_an_accepted_run_is_delivered(store: Store, purpose: Purpose) -> None:
    """The answer comes at once, the artifact of the asked schema later, through the signed URLs alone."""
    invocation = _invocation(store, purpose=purpose, sha256=hashlib.sha256(PAGES).hexdigest())
    with _agent() as server:
        _invoke(server, invocation)
        assert _delivered(store, invocation).effects


def test_the_store_takes_an_artifact_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A second PUT of the same run meets 412, which the agent takes for delivered."""
    invocation = _invocation(store)
    with caplog.at_level("INFO", logger="baton.agent"), _agent(Rule(act=Misbehaviour.TWICE)) as server:
        _invoke(server, invocation)
        _delivered(store, invocation)
        wait_until(lambda: _idle(server))
    assert "had been delivered already" in caplog.text
    assert "dropped" not in caplog.text
    delivery = invocation.result_delivery
    with httpx.Client(trust_env=False) as client:
        again = client.put(delivery.url, content=b"another", headers=delivery.headers)
    assert again.status_code == 412
    assert _delivered(store, invocation).run_id == invocation.run_id


def test_the_same_run_asked_often_and_at_once_is_worked_on_once(peer: Peer) -> None:
    """Twenty callers with one run: all are told accepted, the text is fetched once, one artifact is put."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent(workers=8) as server:
        threads = [threading.Thread(target=_invoke, args=(server, invocation)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: peer.bodies and _idle(server))
        _invoke(server, invocation)
        assert _idle(server)
    assert peer.calls == {"GET /text": 1, "PUT /artifact": 1}


def test_a_run_is_looked_up_and_taken_in_one_step(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two callers with one run cannot both find it unknown, however long the first takes to start the work."""
    both = threading.Barrier(2)
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent() as server:
        look_up = server._ledger.knows

        def unhurried(run_id: UUID) -> bool:
            known = look_up(run_id)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)
            return known

        monkeypatch.setattr(server._ledger, "knows", unhurried)
        callers = [threading.Thread(target=server.accept, args=(invocation,)) for _ in range(2)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        wait_until(lambda: peer.bodies and _idle(server))
    assert peer.calls == {"GET /text": 1, "PUT /artifact": 1}


def test_a_run_is_remembered_over_a_restart(peer: Peer, tmp_path: Any) -> None:
    """With a ledger file, a finished run asked again after a restart is accepted and not worked on."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    for _ in range(2):
        with _agent(ledger=tmp_path / "runs") as server:
            _invoke(server, invocation)
            wait_until(lambda: peer.bodies and _idle(server))
    assert peer.calls == {"GET /text": 1, "PUT /artifact": 1}


# --- what is refused ---


@pytest.mark.parametrize("token", [None, "x", "another-token", TOKEN + "x", TOKEN[:-1], "tökén"])
def test_without_the_token_nothing_is_taken(peer: Peer, token: str | None) -> None:
    """401, and no work."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent() as server:
        raw = [] if token is None else [(b"Authorization", f"Bearer {token}".encode())]
        with httpx.Client(trust_env=False) as client:
            answer = client.post(server.url + "/invocations", content=invocation.body(), headers=raw)
        assert (answer.status_code, _idle(server)) == (401, True)
    assert not peer.calls


def test_an_invocation_without_delivery_is_refused() -> None:
    """422 and the reason; a body that is no JSON is 400."""
    value = json.loads(_invocation(text_url="http://x/", put_url="http://x/").body())
    del value["result_delivery"]
    with _agent() as server:
        answer = _post(server, json.dumps(value).encode())
        assert (answer.status_code, answer.json()["error"]) == (422, errors.DeliveryMissing.code)
        assert _post(server, b"nonsense").status_code == 400
        assert _post(server, b"x" * 2_000_000).status_code == 413
        assert _post(server, b"", path="/elsewhere").status_code == 404


def test_a_refusal_reaches_a_caller_that_sends_too_much() -> None:
    """What is refused unread would reset the connection and lose the answer; it is read first."""
    with _agent() as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /invocations HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 1_500_000)
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1024)
        connection.settimeout(10)
        connection.sendall(b"x" * 1_500_000)
        assert connection.recv(1024).startswith(b"HTTP/1.1 413 ")


def test_a_full_agent_says_when_to_come_back(peer: Peer) -> None:
    """Beyond its bound it answers 429 with Retry-After, and forgets the run so that it can be asked again."""
    slow = Rule(act=Misbehaviour.LATE, seconds=60)
    last = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent(slow, workers=1, backlog=1, retry_after=7) as server:
        for _ in range(2):
            _invoke(server, _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact")))
        for _ in range(2):
            answer = _post(server, last.body())
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


def test_health_is_told_without_a_token() -> None:
    """A probe needs no secret and sees the load."""
    with _agent() as server, httpx.Client(trust_env=False) as client:
        answer = client.get(server.url + "/healthz")
        assert (answer.status_code, answer.json()["waiting"], answer.json()["working"]) == (200, 0, 0)


# --- slow and broken callers ---


def test_callers_that_trickle_or_hang_are_cut_off_and_harm_nobody(peer: Peer) -> None:
    """Connections that send a byte now and then end at the bound, and others are answered meanwhile."""
    with _agent(request_seconds=0.5, connections=20) as server:
        hanging = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        for index, connection in enumerate(hanging):
            connection.settimeout(10)
            connection.sendall(b"POST /invocations HTTP/1.1\r\nContent-Length: 100\r\n" + b"\r\nx" * (index % 2))
        invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
        _invoke(server, invocation)
        begun = time.monotonic()
        for connection in hanging:
            with contextlib.suppress(ConnectionError):
                while connection.recv(1024):
                    pass
            connection.close()
        assert time.monotonic() - begun < 5


def test_more_connections_than_allowed_are_turned_away() -> None:
    """The bound holds, and room that was given back is given again."""
    with _agent(connections=2, request_seconds=5.0) as server:
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        held[0].sendall(b"G")

        def crowded() -> bool:
            with socket.create_connection(("127.0.0.1", server.port)) as third:
                third.settimeout(2)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    return b" 503 " in third.recv(1024)
            return False

        wait_until(crowded)
        for connection in held:
            connection.close()

        def open_again() -> bool:
            with httpx.Client(trust_env=False) as client, contextlib.suppress(httpx.HTTPError):
                return client.get(server.url + "/healthz").status_code == 200
            return False

        wait_until(open_again)


@pytest.mark.parametrize(
    "head",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"BREW /pot HTTP/1.1\r\n\r\n",
        b"POST /invocations HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /invocations HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /invocations HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /invocations HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_broken_requests_are_refused_and_the_server_lives(head: bytes) -> None:
    """Bytes that are no request get a refusal or a closed connection."""
    with _agent(request_seconds=1.0) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection, contextlib.suppress(ConnectionError):
            connection.settimeout(10)
            connection.sendall(head)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1024)
            assert not answer or answer.split(b" ", 2)[1][:1] in b"45" or b"error" in answer.lower()
        with httpx.Client(trust_env=False) as client:
            assert client.get(server.url + "/healthz").status_code == 200


# --- a store in trouble ---


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A store that can be told to fail."""
    peer = Peer(PAGES)
    yield peer
    peer.close()


@pytest.mark.parametrize("status", [403, 404, 409, 429, 500, 503, 0])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_trouble_that_passes_is_waited_out(peer: Peer, method: str, status: int) -> None:
    """Three failures and then success is a delivery, with the very headers that were signed."""
    peer.statuses[method] = [status] * 3
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent() as server:
        _invoke(server, invocation)
        wait_until(lambda: peer.bodies)
        wait_until(lambda: _idle(server))
    assert peer.calls[f"{method} /{'text' if method == 'GET' else 'artifact'}"] == 4
    assert len(peer.bodies) == 1
    assert peer.headers[0]["If-None-Match"] == "*"
    assert peer.headers[0]["Content-Type"] == "application/json"


def test_trouble_that_does_not_pass_ends_at_the_deadline(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    """The run is dropped with a line that names it and no URL, and is not worked on again."""
    peer.statuses["PUT"] = [503] * 10_000
    invocation = _invocation(
        text_url=peer.url("/text?signature=s3cret"), put_url=peer.url("/a?sig=s3cret"), seconds=1.5
    )
    with caplog.at_level("INFO", logger="baton.agent"), _agent() as server:
        _invoke(server, invocation)
        wait_until(lambda: _idle(server))
        _invoke(server, invocation)
        assert _idle(server)
    assert peer.calls["PUT /a?sig=s3cret"] >= 2
    dropped = [record for record in caplog.records if "dropped at its deadline" in record.message]
    assert len(dropped) == 1
    assert str(invocation.run_id) in dropped[0].message
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("text", "changes", "sha256"),
    [
        (b"not the promised pages", {}, None),
        (PAGES + b" " * 2_000, {"input_bytes": len(PAGES) + 100}, None),
    ],
)
def test_an_input_that_can_never_do_is_dropped_at_once(
    peer: Peer, text: bytes, changes: dict[str, Any], sha256: str | None
) -> None:
    """Broken or oversized text is fetched once and delivers nothing."""
    peer.text = text
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"), sha256=sha256)
    with _agent(**changes) as server:
        _invoke(server, invocation)
        wait_until(lambda: _idle(server))
    assert peer.calls == {"GET /text": 1}


def test_another_text_than_the_announced_one_is_not_worked_on(peer: Peer) -> None:
    """A wrong checksum is asked for again and never classified."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"), sha256="0" * 64, seconds=2.0)
    with _agent() as server:
        _invoke(server, invocation)
        wait_until(lambda: _idle(server))
    assert peer.calls["GET /text"] >= 2
    assert not peer.bodies


def test_a_stop_is_quick_under_a_store_that_hangs(peer: Peer) -> None:
    """With every worker in a request that never ends, and a queue behind them, a stop takes at most five seconds."""
    peer.hold.clear()
    with _agent() as server:
        for _ in range(5):
            _invoke(server, _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact")))
        wait_until(lambda: server.load.working == 2)
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < 5.5
    with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as client:
        client.get(server.url + "/healthz")


# --- told to misbehave ---


def _answer_to(server: AgentServer, invocation: Invocation) -> httpx.Response:
    return _post(server, invocation.body())


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (Rule(act=Misbehaviour.REFUSE), 409),
        (Rule(act=Misbehaviour.REFUSE, status=503), 503),
        (Rule(act=Misbehaviour.SERVER_ERROR), 500),
        (Rule(act=Misbehaviour.SERVER_ERROR, status=502), 502),
    ],
)
def test_a_refusal_takes_no_work(peer: Peer, rule: Rule, status: int) -> None:
    """The status comes as told, no work is done; the next invocation of the run is taken."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    once = Rule.model_validate({**rule.model_dump(), "times": 1})
    with _agent(once) as server:
        assert _answer_to(server, invocation).status_code == status
        assert _idle(server)
        assert not peer.calls
        _invoke(server, invocation)
        wait_until(lambda: peer.bodies)


def test_answers_that_are_wrong_hide_work_that_is_done(peer: Peer) -> None:
    """Dropped, slow, of no form or for another run: behind each of them the artifact comes once."""
    acts = (
        Rule(act=Misbehaviour.DROP_CONNECTION, times=1),
        Rule(act=Misbehaviour.WRONG_BODY, times=1),
        Rule(act=Misbehaviour.WRONG_RUN_ID, times=1),
        Rule(act=Misbehaviour.SLOW_ANSWER, seconds=0.5, times=1),
    )
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent(*acts) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            _answer_to(server, invocation)
        with pytest.raises(errors.AnswerMalformed):
            parse_accepted(_answer_to(server, invocation).content, run_id=invocation.run_id)
        with pytest.raises(errors.AnswerForAnotherRun):
            parse_accepted(_answer_to(server, invocation).content, run_id=invocation.run_id)
        begun = time.monotonic()
        _invoke(server, invocation)
        assert time.monotonic() - begun >= 0.5
        wait_until(lambda: peer.bodies and _idle(server))
    assert peer.calls == {"GET /text": 1, "PUT /artifact": 1}


def test_late_is_late_even_past_the_deadline(peer: Peer) -> None:
    """What was told to be late is delivered after its deadline all the same."""
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"), seconds=0.2)
    with _agent(Rule(act=Misbehaviour.LATE, seconds=0.5)) as server:
        _invoke(server, invocation)
        wait_until(lambda: peer.bodies)
        assert datetime.now(UTC) > invocation.result_delivery.deadline


def test_never_is_never_and_twice_is_twice(peer: Peer) -> None:
    """The one leaves nothing, the other comes two times."""
    rules = (Rule(act=Misbehaviour.NEVER, times=1), Rule(act=Misbehaviour.TWICE, times=1))
    with _agent(*rules) as server:
        for path in ("/never", "/twice"):
            _invoke(server, _invocation(text_url=peer.url("/text"), put_url=peer.url(path)))
            wait_until(lambda: _idle(server))
    assert peer.calls == {"GET /text": 1, "PUT /twice": 2}


def test_a_spoiled_artifact_arrives_and_is_refused(store: Store) -> None:
    """The fault goes the whole way through the store."""
    invocation = _invocation(store)
    with _agent(Rule(act=Misbehaviour.WRONG_DIGEST)) as server:
        _invoke(server, invocation)
        with pytest.raises(errors.ArtifactWrongDigest):
            _delivered(store, invocation)


def test_misbehaving_is_closed_unless_it_was_opened(peer: Peer) -> None:
    """Without the flag there is no such address; with it a rule is given and taken back, by those with the token."""
    rule = Rule(act=Misbehaviour.REFUSE, status=400).model_dump_json().encode()
    invocation = _invocation(text_url=peer.url("/text"), put_url=peer.url("/artifact"))
    with _agent() as server:
        assert _post(server, rule, path="/misbehave").status_code == 404
    with _agent(misbehave=True) as server:
        assert _post(server, rule, path="/misbehave", token="wrong").status_code == 401
        assert _post(server, b"{}", path="/misbehave").status_code == 422
        assert _post(server, rule, path="/misbehave").status_code == 204
        assert _answer_to(server, invocation).status_code == 400
        with httpx.Client(trust_env=False) as client:
            client.delete(server.url + "/misbehave", headers={"Authorization": f"Bearer {TOKEN}"})
        _invoke(server, invocation)


def test_serve_runs_until_it_is_told_to_stop() -> None:
    """The entry point of the program ends when its event is set."""
    stop = threading.Event()
    thread = threading.Thread(target=serve, args=(_config(),), kwargs={"stop": stop})
    thread.start()
    stop.set()
    thread.join(6)
    assert not thread.is_alive()
