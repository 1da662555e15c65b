"""The hooks: at the driver's own door, at the SDK's and at the HTTP client's, so that no statement or call goes round them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from botocore.client import BaseClient
from botocore.httpsession import URLLib3Session
from psycopg import sql

from baton.outbox import wake
from baton.runs.invocation import AgentClient
from support.crashing.points import Crash, Kind, Point, Tracer, normalized

#: What the libraries ask of a session before its worker has it, and when it is given back: whether they do depends on
#: what the session's last user left.
_GREETINGS = (
    "SELECT typname AS name",
    "select current_schema()",
    "select pg_catalog.version()",
    "show ",
    'SAVEPOINT "',
    'RELEASE "',
    "BEGIN",
    "ROLLBACK",
)


class Receipts:
    """Messages that somebody was given and has not deleted: what a queue hides for those who died."""

    def __init__(self) -> None:
        self.held: dict[str, set[str]] = {}
        """By the queue's URL."""

    def note(self, request: Any, content: bytes) -> None:
        """Read one call that the service has answered."""
        action = _text(request.headers.get("X-Amz-Target", "")).rpartition(".")[2]
        if action not in ("ReceiveMessage", "DeleteMessageBatch"):
            return
        asked = json.loads(_text(request.body))
        held = self.held.setdefault(asked["QueueUrl"], set())
        if action == "ReceiveMessage":
            held.update(each["ReceiptHandle"] for each in json.loads(content or b"{}").get("Messages") or ())
        else:
            held.difference_update(each["ReceiptHandle"] for each in asked["Entries"])


class Hooks:
    """Installed once; they tell whichever tracer there is."""

    def __init__(self) -> None:
        self.tracer = Tracer()
        self.receipts = Receipts()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Be there for the length of a block."""
        with pytest.MonkeyPatch.context() as patch:
            self.watch(patch)
            self._watch_threads(patch)
            # waking relays is a thread's work, costs a second at most when it is lost, and nobody listens here
            patch.setattr(wake._Notifier, "expect", lambda *_: None)
            yield

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """See every statement and call of this process from now on."""
        self._watch_database(patch)
        self._watch_services(patch)
        self._watch_agent(patch)

    def _watch_database(self, patch: pytest.MonkeyPatch) -> None:
        hooks = self
        execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany
        command = psycopg.Connection._exec_command

        def watched_execute(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            hooks._session(cursor.connection)
            hooks._before(normalized(_statement(query, cursor)))
            return execute(cursor, query, *arguments, **options)

        def watched_executemany(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            hooks._session(cursor.connection)
            hooks._before(normalized(_statement(query, cursor)))
            return executemany(cursor, query, *arguments, **options)

        def watched_command(connection: Any, asked: Any, *arguments: Any, **options: Any) -> Any:
            hooks._session(connection)
            label = normalized(_text(asked))
            point = hooks._before(label)
            result = yield from command(connection, asked, *arguments, **options)
            hooks.tracer.reached(point, Kind.UNSEEN)
            return result

        patch.setattr(psycopg.Cursor, "execute", watched_execute)
        patch.setattr(psycopg.Cursor, "executemany", watched_executemany)
        patch.setattr(psycopg.Connection, "_exec_command", watched_command)

    def _watch_services(self, patch: pytest.MonkeyPatch) -> None:
        hooks = self
        send, call = URLLib3Session.send, BaseClient._make_api_call  # type: ignore[attr-defined]
        asked = threading.local()

        def watched_send(session: Any, request: Any) -> Any:
            point: Point | None = getattr(asked, "point", None)
            answer = send(session, request)
            hooks.receipts.note(request, answer.content if not request.stream_output else b"")
            hooks.tracer.reached(point, Kind.UNSEEN)
            return answer

        def watched_call(client: Any, operation: str, arguments: Any) -> Any:
            asked.point = hooks.tracer.before(f"{client.meta.service_model.service_name}:{operation}")
            try:
                answer = call(client, operation, arguments)
                hooks.tracer.reached(asked.point, Kind.AFTER)
            except Exception:  # an error is an answer, too
                hooks.tracer.reached(asked.point, Kind.AFTER)
                raise
            finally:
                asked.point = None
            return answer

        patch.setattr(URLLib3Session, "send", watched_send)
        patch.setattr(BaseClient, "_make_api_call", watched_call)

    def _watch_agent(self, patch: pytest.MonkeyPatch) -> None:
        hooks = self
        invoke, handle = AgentClient.invoke, httpx.HTTPTransport.handle_request
        asked = threading.local()

        def watched_handle(transport: Any, request: Any) -> Any:
            answer = handle(transport, request)
            hooks.tracer.reached(getattr(asked, "point", None), Kind.UNSEEN)
            return answer

        def watched_invoke(agent: Any, body: bytes) -> Any:
            asked.point = hooks.tracer.before("http:invoke")
            try:
                reply = invoke(agent, body)
                hooks.tracer.reached(asked.point, Kind.AFTER)
            except Exception:
                hooks.tracer.reached(asked.point, Kind.AFTER)
                raise
            finally:
                asked.point = None
            return reply

        patch.setattr(httpx.HTTPTransport, "handle_request", watched_handle)
        patch.setattr(AgentClient, "invoke", watched_invoke)

    @staticmethod
    def _watch_threads(patch: pytest.MonkeyPatch) -> None:
        usual = threading.excepthook

        def quiet(arguments: Any) -> None:
            if not issubclass(arguments.exc_type, Crash):
                usual(arguments)

        patch.setattr(threading, "excepthook", quiet)

    def _before(self, label: str) -> Point | None:
        worker = self.tracer.current
        if label.startswith(_GREETINGS) and not (worker is not None and worker.dead):
            return None
        return self.tracer.before(label)

    def _session(self, connection: Any) -> None:
        worker = self.tracer.current
        if worker is not None and not worker.dead:
            worker.sessions.add(connection.info.backend_pid)


def _statement(query: Any, cursor: Any) -> str:
    return query.as_string(cursor) if isinstance(query, sql.Composable) else _text(query)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes | bytearray) else str(value or "")
