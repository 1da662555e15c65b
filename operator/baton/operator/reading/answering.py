"""From a request to an answer: first what is asked, then who asks, then whether they may, then the answer."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from baton.db.jsonforms import encoded
from baton.operator.api import Api
from baton.operator.reading import callers, views
from baton.operator.reading.callers import Caller
from baton.operator.reading.grounds import Replica
from baton.operator.reading.paths import Asked, View, asked
from baton.operator.reading.refusals import Broken, Missing, Refused, Unavailable
from baton.settings.model import Settings
from baton.telemetry import fields

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_log = logging.getLogger(__name__)

#: Questions to databases at once; who comes then is told to come again, and statuses are answered all the same.
_AT_ONCE: Final = 2

Application = Callable[["WSGIEnvironment", "StartResponse"], Iterable[bytes]]


class Answering:
    """The WSGI application."""

    def __init__(self, api: Api, *, replica: Replica, ambient: Settings) -> None:
        """:param ambient: the operator's own settings."""
        self._api = api
        self._replica = replica
        self._ambient = ambient
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        status, body = self._answered(environ)
        written = json.dumps(body, default=encoded).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(written))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        if status is HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "GET"))
        start_response(f"{status.value} {status.phrase}", headers)
        return [written]

    def _answered(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, dict[str, Any]]:
        if environ.get("REQUEST_METHOD") != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, _error("MethodNotAllowed", "nothing can be changed here")
        question: Asked | None = None
        user: str | None = None
        try:
            question = asked(environ.get("PATH_INFO", ""))
            token = callers.token_of(environ.get("HTTP_AUTHORIZATION"))
            caller = callers.authenticated(self._api, token)
            user = caller.user
            status, body = HTTPStatus.OK, self._answer(caller, question)
        except Refused as refused:
            if isinstance(refused, Broken):
                _log.error("a question could not be answered", exc_info=refused)
            status, body = refused.status, _error(refused.reason, str(refused))
        except Exception as error:  # noqa: BLE001 - the next question is another one
            _log.error("a question could not be answered", exc_info=error)
            status, body = HTTPStatus.INTERNAL_SERVER_ERROR, _error("Failed", "the operator's log says why")
        _note(question, user, status)
        return status, body

    def _answer(self, caller: Caller, question: Asked | None) -> dict[str, Any]:
        if question is None or self._replica.namespace not in (None, question.namespace):
            raise Missing("NotFound", "there is no such path, or the operator does not look after this namespace")
        callers.authorize(self._api, caller, question)
        with self._place(question):
            return views.answer(self._api, question, replica=self._replica, ambient=self._ambient)

    @contextmanager
    def _place(self, question: Asked) -> Iterator[None]:
        """One of the few places for questions to databases."""
        if question.view is View.STATUS:
            yield
            return
        if not self._places.acquire(blocking=False):
            raise Unavailable("Busy", "others are being answered; ask again in a moment")
        try:
            yield
        finally:
            self._places.release()


def _error(reason: str, message: str) -> dict[str, Any]:
    return {"error": {"reason": str(reason), "message": message}}


def _note(question: Asked | None, user: str | None, status: HTTPStatus) -> None:
    """Who asked what, and how it ended. What nobody may read is no path of ours, and is not repeated."""
    if question is None:
        _log.info("a question was turned away", extra=fields.of(status_code=status.value))
        return
    resource = f"{question.namespace}/{question.name}"
    _log.info(
        "a question was asked",
        extra=fields.of(status_code=status.value, action=question.view, loop=resource, caller=user),
    )
