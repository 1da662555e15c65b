"""The read-only API on a real API server: who is answered, who is not, and what never leaves."""

import json
import re
import socket
from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import text

from baton.db.access import Role
from baton.embedded.ports import free_port
from baton.operator.api import Api
from baton.operator.reading import grounds
from baton.operator.reading.serving import HOST
from baton.settings.loading import load
from cluster.bed.doors import Door, door, nowhere, raw
from cluster.bed.people import account, claims_of, operator, role, signed, token
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.bed.servers import ApiServer
from cluster.resources import RECONCILERS
from support.reconciling import Loop
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

VIEWS = ("status", "plan", "report", "explain")
FILES = ("rbac.yaml", "rbac-reading.yaml")
SECRET = "hunter2"
#: A word in each text that a firm, counsel, an agent or a server may have written.
CONTENT = "Smith-v-Jones"


@pytest.fixture
def opened(world: Cluster) -> Iterator[Door]:
    """The API, with the operator's rights and no more; a resource that observes, and one who may look."""
    world.secrets(Role.OBSERVER)
    world.declare()
    account(world.kubernetes, "viewer", role("baton-viewer"))
    with operator(world.kubernetes, *FILES) as own, door(world.kubernetes, own) as found:
        viewer = token(world.kubernetes, "viewer")
        # rights take a moment to reach the authorizer
        wait_until(lambda: found.ask("status", viewer)[0] == 200, PATIENCE, what="the rights")
        yield found


@pytest.fixture
def viewer(opened: Door, world: Cluster) -> str:
    """The token of one who may look."""
    return token(world.kubernetes, "viewer")


def broken(world: Cluster) -> UUID:
    """A document whose ticket is lost, with words in every text that somebody else writes."""
    document, ticket = Loop(world.matter).queued()
    world.matter.prepare(
        "UPDATE documents SET name = :word, object_key = :word || id, processing_message = :word,"
        " registration_message = :word WHERE id = :id",
        word=CONTENT,
        id=document,
    )
    world.matter.prepare(
        "INSERT INTO ops.document_status_transition (firm_id, document_id, axis, from_status, to_status, message,"
        " extraction_epoch, registration_attempt, actor, application) SELECT firm_id, id, 'processing', 'failed',"
        " 'uploaded', :word, extraction_epoch, registration_attempt, :word, 'a program' FROM documents WHERE id = :id",
        word=CONTENT,
        id=document,
    )
    world.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET last_error = :word, parked_at = app.clock() - interval '1 day', attempts = 9 WHERE id = :id",
        word=CONTENT,
        id=ticket.id,
    )
    world.matter.prepare(
        "INSERT INTO ops.audit_event (firm_id, matter_id, document_id, event, actor) VALUES (:firm, :matter, :id, 'deleted', :word)",
        firm=world.matter.firm,
        matter=world.matter.id,
        id=document,
        word=CONTENT,
    )
    Loop(world.matter).age(document)
    return document


def test_who_may_look_is_told_ids_and_states(opened: Door, viewer: str, world: Cluster) -> None:
    """Of each view; no name, key, message or actor of a firm, and no secret, is in any of them."""
    document = broken(world)
    told = {view: opened.ask(f"{view}/{document}" if view == "explain" else view, viewer) for view in VIEWS}
    assert {view: status for view, (status, _) in told.items()} == dict.fromkeys(VIEWS, 200)
    explained = told["explain"][1]["explanation"]
    assert explained["document"]["id"] == str(document)
    assert any(event["kind"] == "audit" for event in explained["timeline"])
    assert told["plan"][1]["plan"]["found"] == {"ticket_parked": 1}
    assert told["plan"][1]["plan"]["plans"][0]["document"] == str(document)
    assert {each["level"] for each in told["report"][1]["findings"]} <= {"ok", "warning", "fault", "unknown"}
    assert told["status"][1]["replica"] == {"identity": "test", "leads": False, "version": "0.1.0"}
    everything = json.dumps(told)
    assert CONTENT not in everything
    for secret in (world.database.url(Role.OBSERVER), world.account.environ["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in everything


def test_nothing_is_written_though_the_login_may(opened: Door, viewer: str, world: Cluster) -> None:
    """By the reconciler's own login a plan is only made: neither document, owner nor ledger changes."""
    world.secrets(Role.RECONCILER)
    world.change({"mode": "Repair"})
    loop = Loop(world.matter)
    (document,) = loop.lost()
    loop.consumers()
    before = world.matter.read(document)
    assert opened.ask("plan", viewer)[1]["plan"]["ready"] == 1
    assert opened.ask("report", viewer)[0] == 200
    assert world.matter.read(document) == before
    assert loop.ledger() == []
    assert world.matter.count("ops.owner") == 0
    body = world.kubernetes.read(RECONCILERS, "main")
    api = Api(world.kubernetes.access)
    try:
        with grounds.opened(api, body, ambient=load()) as ground, ground.engine.connect() as connection:
            assert connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on"
    finally:
        api.close()


def test_who_may_not_look_is_not_told(opened: Door, world: Cluster) -> None:
    """Whoever has no rights, other rights, or rights elsewhere; and not whether there is such a resource."""
    account(world.kubernetes, "nobody")
    account(
        world.kubernetes,
        "reader",
        [
            {
                "apiGroups": ["baton.pramaan.dev"],
                "resources": [RECONCILERS, f"{RECONCILERS}/status"],
                "verbs": ["list", "watch", "patch"],
            }
        ],
    )
    for name in ("nobody", "reader"):
        mine = token(world.kubernetes, name)
        document = broken(world)
        for view in VIEWS:
            path = f"{view}/{document}" if view == "explain" else view
            assert opened.reason(path, mine) == (403, "Forbidden")
        assert opened.ask("status", mine, name="nothing")[0] == 403


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_is_a_right_of_its_own(opened: Door, world: Cluster, view: str) -> None:
    """Whoever may have one has only that one."""
    group = {"apiGroups": ["baton.pramaan.dev"], "verbs": ["get"]}
    account(world.kubernetes, "one", [{**group, "resources": [f"{RECONCILERS}/{view}"], "resourceNames": ["main"]}])
    mine = token(world.kubernetes, "one")
    document = broken(world)

    def may(other: str) -> bool:
        return opened.ask(f"{other}/{document}" if other == "explain" else other, mine)[0] == 200

    wait_until(lambda: may(view), PATIENCE, what="the right")
    assert [other for other in VIEWS if may(other)] == [view]


def test_a_token_that_is_none_is_nobodys(
    opened: Door, viewer: str, world: Cluster, api_server: ApiServer | None
) -> None:
    """Missing, invented, forged, over, for somebody else, or of an account that is gone."""
    assert opened.reason("status", None) == (401, "Unauthorized")
    assert opened.reason("status", "invented") == (401, "Unauthorized")
    header, claims, signature = viewer.split(".")
    assert opened.reason("status", f"{header}.{claims}.{signature[::-1]}") == (401, "Unauthorized")
    assert opened.reason("status", f"{header}.{claims}.") == (401, "Unauthorized")
    assert opened.reason("status", token(world.kubernetes, "viewer", "somebody-else")) == (401, "Unauthorized")
    if api_server is not None:
        key = api_server.authority.with_name("accounts.key")
        assert opened.ask("status", signed(viewer, key))[0] == 200
        over = signed(viewer, key, exp=claims_of(viewer)["iat"] - 60)
        assert opened.reason("status", over) == (401, "Unauthorized")
    path = f"/api/v1/namespaces/{world.kubernetes.namespace}/serviceaccounts/viewer"
    world.kubernetes.http.delete(path).raise_for_status()
    wait_until(lambda: opened.reason("status", viewer) == (401, "Unauthorized"), PATIENCE, what="its end")


def test_a_token_for_the_operator_is_good_for_nothing_else(opened: Door, world: Cluster) -> None:
    """So that an operator that was taken over has nothing to go on with."""
    own = token(world.kubernetes, "viewer", "baton.pramaan.dev")
    assert opened.ask("status", own)[0] == 200
    answer = world.kubernetes.http.get(world.kubernetes.path(RECONCILERS), headers={"Authorization": f"Bearer {own}"})
    assert answer.status_code == 401


def test_a_right_that_is_taken_away_is_gone(opened: Door, viewer: str, world: Cluster) -> None:
    """With the next question: nothing is remembered."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.kubernetes.namespace}/rolebindings/viewer-viewer"
    world.kubernetes.http.delete(path).raise_for_status()
    wait_until(lambda: opened.reason("plan", viewer) == (403, "Forbidden"), PATIENCE, what="the end of the right")


def test_who_cannot_be_asked_about_is_not_told(world: Cluster) -> None:
    """Without an API server, and without the right to ask it."""
    world.secrets(Role.OBSERVER)
    world.declare()
    account(world.kubernetes, "viewer", role("baton-viewer"))
    viewer = token(world.kubernetes, "viewer")
    with operator(world.kubernetes, "rbac.yaml") as own:
        with door(world.kubernetes, own, server=nowhere()) as found:
            assert {found.reason(view, viewer) for view in ("status", "plan")} == {(503, "ApiServerAway")}
        with door(world.kubernetes, own) as found:
            assert found.reason("status", viewer) == (503, "ReviewsNotAllowed")


GARBAGE = (
    "/",
    "//",
    "/v1",
    "/v1/namespaces//registrationreconcilers/main/status",
    "/v1/namespaces/{0}/registrationreconcilers/main",
    "/v1/namespaces/{0}/registrationreconcilers/main/",
    "/v1/namespaces/{0}/registrationreconcilers/main/status/",
    "/v1/namespaces/{0}/registrationreconcilers/main/secrets",
    "/v1/namespaces/{0}/registrationreconcilers/main/status%00",
    "/v1/namespaces/{0}/registrationreconcilers/main/status%0a",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain/",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain/1",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain/%27%20OR%201%3D1",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain/0198C0DE-0000-7000-8000-000000000001",
    "/v1/namespaces/{0}/registrationreconcilers/main/explain/../status",
    "/v1/namespaces/{0}/registrationreconcilers/%2e%2e/status",
    "/v1/namespaces/{0}/registrationreconcilers/main%2f..%2fmain/status",
    "/v1/namespaces/{0}/registrationreconcilers/ma%20in/status",
    "/v1/namespaces/{0}/registrationreconcilers/%ff%fe/status",
    "/v1/namespaces/{0}/registrationreconcilers/m\u0430in/status",
    "/v1/namespaces/{0}/registrationreconcilers/$(id)/status",
    "/v1/namespaces/{0}/registrationreconcilers/{{{{7*7}}}}/status",
    "/v1/namespaces/{0}/secrets/database/status",
    "/v1/namespaces/../{0}/registrationreconcilers/main/status",
    "/v1/namespaces/kube-system/registrationreconcilers/main/status",
    "/v1/namespaces/%7b0%7d/registrationreconcilers/main/status",
    "/apis/baton.pramaan.dev/v1alpha1/namespaces/{0}/registrationreconcilers/main",
    "http://other/v1/namespaces/{0}/registrationreconcilers/other/status",
    "*",
)


def request(door: Door, token: str, *, path: str | None = None, more: bytes = b"") -> bytes:
    """A request as it goes over the wire, up to its last header."""
    target = (path or door.path("status")).encode()
    start = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    return start + b"Authorization: Bearer " + token.encode() + b"\r\n" + more + b"\r\n"


def code(answer: bytes) -> int:
    """The status of an answer; 0 where the connection was cut instead."""
    return int(answer.split(maxsplit=2)[1]) if answer else 0


def test_garbage_is_turned_away(opened: Door, viewer: str) -> None:
    """In each part of a path, even by one who may look: never answered, never a fault of ours, never repeated."""
    for path in (each.format(opened.namespace) for each in GARBAGE):
        answer = raw(opened.port, request(opened, viewer, path=path))
        assert 400 <= code(answer) < 500, path
        assert not re.search(b"OR 1|id\\)|49|kube-system|%", answer.partition(b"\r\n\r\n")[2]), path
    assert opened.reason("explain/0198c0de-0000-7000-8000-000000000001", viewer) == (404, "NotFound")
    assert opened.ask("status", viewer, name="nothing")[0] == 404


def test_what_is_too_large_or_never_ends_is_turned_away(opened: Door, viewer: str) -> None:
    """Neither headers, bodies nor silent connections take memory or a place from others."""
    assert code(raw(opened.port, request(opened, viewer))) == 200
    large = b"X-Large: " + b"a" * 100_000 + b"\r\n"
    assert code(raw(opened.port, request(opened, viewer, more=large))) in (0, 400, 431)
    long = b"Content-Length: 1000000\r\n"
    assert code(raw(opened.port, request(opened, viewer, more=long) + b"a" * 100_000)) in (0, 413)
    chunked = b"Transfer-Encoding: chunked\r\n"
    body = b"ffff\r\n" + b"a" * 65_535 + b"\r\n0\r\n\r\n"
    assert code(raw(opened.port, request(opened, viewer, more=chunked) + body)) in (0, 413)
    assert code(raw(opened.port, b"\x16\x03\x01\x02\x00" * 100 + b"\r\n\r\n")) in (0, 400)
    assert code(raw(opened.port, request(opened, "a" * 20_000))) == 401
    silent = [socket.create_connection((HOST, opened.port)) for _ in range(16)]
    try:
        for each in silent:
            each.sendall(b"GET /v1/name")
        assert opened.ask("status", viewer)[0] == 200
    finally:
        for each in silent:
            each.close()


def test_what_a_condition_would_say_is_said(opened: Door, viewer: str, world: Cluster) -> None:
    """With its reason, and never with a secret; what needs no database is answered all the same."""
    kubernetes = world.kubernetes
    for values, labels, status, reason in (
        ({"DATABASE_URL": f"postgresql://x:{SECRET}@127.0.0.1:9/x"}, None, 503, "DatabaseUnreachable"),
        ({"DATABASE_URL": f"mysql://x:{SECRET}@db/x"}, None, 409, "SecretInvalid"),
        ({"DATABASE_URL": world.database.url(Role.RELAY)}, None, 409, "DatabaseUnfit"),
        ({"DATABASE_URL": world.database.url("nobody_we_know")}, None, 409, "LoginRefused"),
        ({"DATABASE_URL": f"postgresql://x:{SECRET}@127.0.0.1:9/x?autocommit=1"}, None, 409, "SecretInvalid"),
        ({"OTHER": "x"}, None, 409, "SecretKeyMissing"),
        ({"DATABASE_URL": f"postgresql://x:{SECRET}@127.0.0.1/x"}, {}, 409, "SecretNotAllowed"),
    ):
        kubernetes.secret("database", values, labels=labels)
        for view in ("plan", "report"):
            answer = opened.ask(view, viewer)
            assert (answer[0], answer[1]["error"]["reason"]) == (status, reason)
            assert SECRET not in json.dumps(answer)
    assert opened.ask("status", viewer)[0] == 200


def test_every_replica_answers(world: Cluster) -> None:
    """The one that leads and the one that does not; and both keep living."""
    world.secrets(Role.RECONCILER)
    world.declare(mode="Repair")
    account(world.kubernetes, "viewer", role("baton-viewer"))
    viewer = token(world.kubernetes, "viewer")
    ports = {"one": free_port(), "two": free_port()}

    def doors() -> dict[str, bool]:
        """By replica whether it leads."""
        found = {}
        for name, port in ports.items():
            try:
                status, body = Door(port, world.kubernetes.namespace).ask("status", viewer)
            except OSError:
                continue
            if status == 200:
                found[name] = body["replica"]["leads"]
        return found

    with world.replica("one", BATON_OPERATOR_READING_PORT=str(ports["one"])) as one:
        wait_until(lambda: doors() == {"one": True}, PATIENCE, what="the first replica")
        with world.replica("two", BATON_OPERATOR_READING_PORT=str(ports["two"])) as two:
            wait_until(lambda: doors() == {"one": True, "two": False}, PATIENCE, what="the second replica")
            world.wait_for("Ready", "True", "InOrder")
            document, _ = Loop(world.matter).queued()
            for port in ports.values():
                status, body = Door(port, world.kubernetes.namespace).ask(f"explain/{document}", viewer)
                assert (status, body["explanation"]["document"]["id"]) == (200, str(document))
            assert one.end() == 0
            wait_until(lambda: doors() == {"two": True}, PATIENCE, what="the second replica's turn")
            assert viewer not in one.told() + two.told()
            assert "a question was asked" in two.told()
            assert two.end() == 0
