"""Who may ask what of the read-only API: paths, tokens, reviews. A real API server decides in `tests/cluster`."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from baton.operator.api import Api, ApiAway, ApiError, ApiRefused
from baton.operator.reading.answering import Answering
from baton.operator.reading.callers import Caller, authenticated, authorize, token_of
from baton.operator.reading.grounds import Replica
from baton.operator.reading.paths import Asked, View, asked
from baton.operator.reading.refusals import Forbidden, Unauthenticated, Unavailable
from baton.settings.model import Settings
from baton.settings.secret import Secret

DOCUMENT = "0198c0de-0000-7000-8000-000000000001"
BASE = "/v1/namespaces/law/registrationreconcilers/main"
TOKEN = "hunter2.hunter2.hunter2"


class Reviews:
    """An API server that answers reviews as it is told, and notes what it was asked."""

    def __init__(self, *, user: Mapping[str, Any] | None = None, access: object = None) -> None:
        self.user = {"authenticated": True, "user": {"username": "eve"}} if user is None else user
        self.access = {"allowed": True} if access is None else access
        self.seen: list[Any] = []

    def review_token(self, token: Secret, *, audiences: Sequence[str] = ()) -> Any:
        """Answer who it is."""
        self.seen.append(tuple(audiences))
        if isinstance(self.user, ApiError):
            raise self.user
        return {"status": self.user}

    def review_access(self, namespace: str, **more: Any) -> Any:
        """Answer whether they may."""
        self.seen.append({"namespace": namespace, **more})
        if isinstance(self.access, ApiError):
            raise self.access
        return {"status": self.access}


def api_of(reviews: Reviews) -> Api:
    """In the place of the client."""
    return cast("Api", reviews)


@pytest.mark.parametrize("view", ["status", "plan", "report"])
def test_a_view_of_a_resource_is_read(view: str) -> None:
    """By its path, whole."""
    assert asked(f"{BASE}/{view}") == Asked(View(view), "law", "main")


def test_a_document_is_read() -> None:
    """By its id alone."""
    assert asked(f"{BASE}/explain/{DOCUMENT}") == Asked(View.EXPLAIN, "law", "main", UUID(DOCUMENT))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "/v1",
        f"{BASE}",
        f"{BASE}/",
        f"{BASE}/status/",
        f"{BASE}/status\n",
        f"{BASE}/status?x=1",
        f"{BASE}/STATUS",
        f"{BASE}/secrets",
        f"{BASE}/explain",
        f"{BASE}/explain/",
        f"{BASE}/explain/{DOCUMENT}/",
        f"{BASE}/explain/{DOCUMENT.upper()}",
        f"{BASE}/explain/{DOCUMENT[:-1]}",
        f"{BASE}/explain/{DOCUMENT}\x00",
        f"{BASE}/explain/{{{DOCUMENT}}}",
        f"{BASE}/explain/' OR 1=1 --",
        f"{BASE}/status/{DOCUMENT}",
        "/v1/namespaces/../registrationreconcilers/main/status",
        "/v1/namespaces/law/../kube-system/registrationreconcilers/main/status",
        "/v1/namespaces/LAW/registrationreconcilers/main/status",
        "/v1/namespaces/law/registrationreconcilers/-main/status",
        "/v1/namespaces/law/registrationreconcilers/ma in/status",
        "/v1/namespaces/law/registrationreconcilers/m\u0430in/status",
        f"/v1/namespaces/{'a' * 64}/registrationreconcilers/main/status",
        f"/v1/namespaces/law/registrationreconcilers/{'a' * 254}/status",
        f"/v1/namespaces/law/registrationreconcilers/main/{'status' * 10_000}",
        "/v1/namespaces/law/secrets/main/status",
        "/v2/namespaces/law/registrationreconcilers/main/status",
        "/api/v1/namespaces/law/secrets/database",
    ],
)
def test_what_is_no_path_is_none(path: str) -> None:
    """Nothing is guessed, nothing cut off."""
    assert asked(path) is None


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", f"Bearer {TOKEN} {TOKEN}", "Bearer \u20ac", f"Bearer {'a' * 17_000}"],
)
def test_without_a_token_nobody_is_asked(header: str | None) -> None:
    """And what was sent is not repeated."""
    with pytest.raises(Unauthenticated) as refused:
        token_of(header)
    assert "hunter2" not in str(refused.value)


def test_a_token_shows_only_stars() -> None:
    """Wherever it ends up."""
    assert "hunter2" not in repr(token_of(f"Bearer {TOKEN}"))


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"authenticated": False, "user": {"username": "eve"}},
        {"authenticated": "true", "user": {"username": "eve"}},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
        {"authenticated": True, "user": "eve"},
        {"error": "invalid bearer token"},
    ],
)
def test_whom_the_review_does_not_name_is_nobody(user: Mapping[str, Any]) -> None:
    """Only a plain yes with a name is one."""
    with pytest.raises(Unauthenticated):
        authenticated(api_of(Reviews(user=user)), Secret(TOKEN))


def test_a_token_is_for_this_api_or_for_the_api_server() -> None:
    """And an API server that does not look at audiences has not said that it is for this one."""
    reviews = Reviews()
    assert authenticated(api_of(reviews), Secret(TOKEN)) == Caller("eve", None, (), {})
    assert reviews.seen == [("baton.pramaan.dev",), ()]
    reviews = Reviews(user={"authenticated": True, "audiences": ["baton.pramaan.dev"], "user": {"username": "eve"}})
    authenticated(api_of(reviews), Secret(TOKEN))
    assert reviews.seen == [("baton.pramaan.dev",)]


def test_everything_that_is_known_of_the_caller_is_reviewed() -> None:
    """Groups and the rest decide, too; and the very document's subresource is asked about."""
    caller = Caller("eve", "7", ("a", "b"), {"scopes": ["x"]})
    reviews = Reviews()
    question = asked(f"{BASE}/explain/{DOCUMENT}")
    assert question is not None
    authorize(api_of(reviews), caller, question)
    user = {"user": "eve", "uid": "7", "groups": ["a", "b"], "extra": {"scopes": ["x"]}}
    assert reviews.seen == [{"namespace": "law", "name": "main", "subresource": "explain", "user": user}]


@pytest.mark.parametrize(
    "access", [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}, "yes", ["allowed"]]
)
def test_what_is_not_plainly_allowed_is_forbidden(access: object) -> None:
    """An answer that makes no sense is a no."""
    with pytest.raises(Forbidden):
        authorize(api_of(Reviews(access=access)), Caller("eve", None, (), {}), Asked(View.PLAN, "law", "main"))


@pytest.mark.parametrize("error", [ApiAway("away"), ApiRefused("the API server answers 403")])
def test_who_cannot_be_reviewed_is_not_answered(error: ApiError) -> None:
    """Fails closed: neither who it is nor what they may is assumed."""
    with pytest.raises(Unavailable):
        authenticated(api_of(Reviews(user=cast("Any", error))), Secret(TOKEN))
    with pytest.raises(Unavailable):
        authorize(api_of(Reviews(access=error)), Caller("eve", None, (), {}), Asked(View.PLAN, "law", "main"))


def answered(reviews: Reviews, path: str, *, method: str = "GET", token: str | None = TOKEN) -> tuple[int, Any]:
    """Status and body."""
    seen: list[Any] = []
    replica = Replica("one", lambda: True, "law")
    application = Answering(api_of(reviews), replica=replica, ambient=Settings())
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "wsgi.input": io.BytesIO()}
    if token is not None:
        environ["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    body = b"".join(application(cast("Any", environ), cast("Any", lambda *told: seen.append(told))))
    return int(seen[0][0].split()[0]), json.loads(body)


def test_nobody_learns_without_a_token_which_paths_there_are() -> None:
    """Whatever is asked, who asks comes first."""
    assert answered(Reviews(), f"{BASE}/status", token=None)[0] == 401
    assert answered(Reviews(), "/nothing", token=None)[0] == 401
    assert answered(Reviews(), "/nothing")[0] == 404


def test_another_namespace_is_not_looked_into() -> None:
    """An operator of one namespace has no reviews to ask for in others."""
    reviews = Reviews()
    assert answered(reviews, BASE.replace("law", "other") + "/status")[0] == 404
    assert reviews.seen == [("baton.pramaan.dev",), ()]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(method: str) -> None:
    """There is one method."""
    reviews = Reviews()
    assert answered(reviews, f"{BASE}/status", method=method)[0] == 405
    assert reviews.seen == []


def test_a_token_is_in_no_log_line_and_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """However the question ends."""
    caplog.set_level("DEBUG")
    for reviews in (
        Reviews(user=cast("Any", ApiAway("away"))),
        Reviews(user={}),
        Reviews(access={}),
        Reviews(),  # which then fails: there is no resource to be had
    ):
        for path in (f"{BASE}/status", f"/{TOKEN}"):
            status, body = answered(reviews, path)
            assert status >= 400
            assert "hunter2" not in json.dumps(body)
    written = [record.getMessage() + str(record.__dict__) + str(record.exc_text) for record in caplog.records]
    assert written
    assert "hunter2" not in "\n".join(written)
