"""One accepted run, from fetching its text to delivering its artifact."""

import hashlib
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Misbehaviour, Rule
from baton.agent.rules.results import effect_for
from baton.agent.spoiling import artifact_for
from baton.contract.errors import PagesInvalid
from baton.contract.invocations import InputKind, InputPointer, Invocation
from baton.contract.pages import PageText, parse_pages

logger = logging.getLogger(__name__)

# 403 may be a clock or a policy that is about to be mended; 409 is a PUT under way at the same time
_AGAIN: Final = frozenset({307, 403, 404, 408, 409, 425, 429})
_DELIVERED_ALREADY: Final = 412


class _Again(Exception):
    """What was tried may succeed later."""


class _Hopeless(Exception):
    """What was tried will not succeed, however often."""


@dataclass(slots=True)
class Task:
    """An accepted run and how far it has come."""

    invocation: Invocation
    rule: Rule | None = None
    artifact: bytes | None = None
    attempts: int = 0
    waited: bool = False

    @property
    def act(self) -> Misbehaviour | None:
        """What the script has in mind for this run."""
        return self.rule.act if self.rule else None


class Courier:
    """Works on tasks; shared by all threads. Holds the one HTTP client for the object store."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        # no proxies or certificates from the environment: the pipeline's URLs are all there is to know
        self._client = httpx.Client(
            timeout=httpx.Timeout(
                config.read_timeout, connect=config.connect_timeout, pool=config.connect_timeout + config.read_timeout
            ),
            limits=httpx.Limits(max_connections=config.workers, max_keepalive_connections=config.workers),
            follow_redirects=False,
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections, also under a thread that still waits on one."""
        self._client.close()

    def work(self, task: Task) -> float | None:
        """Take a task one step further; None when it is over, else the seconds until the next step."""
        if task.rule and task.act is Misbehaviour.LATE and not task.waited:
            task.waited = True
            return task.rule.seconds
        if task.act is Misbehaviour.NEVER:
            self._note(task, "is never delivered, as told")
            return None
        try:
            if task.artifact is None:
                effect = effect_for(
                    task.invocation.purpose, pages=self._pages(task.invocation), context=task.invocation.context
                )
                task.artifact = artifact_for(task.invocation, effect=effect, act=task.act)
            self._deliver(task)
            if task.act is Misbehaviour.TWICE:
                self._deliver(task)
        except _Hopeless as error:
            self._note(task, f"was dropped: {error}", level=logging.WARNING)
            return None
        except _Again as error:
            return self._later(task, error)
        return None

    def _later(self, task: Task, error: _Again) -> float | None:
        left = (task.invocation.result_delivery.deadline - datetime.now(UTC)).total_seconds()
        wait = min(self._config.first_backoff * 2.0 ** min(task.attempts, 20), self._config.longest_backoff)
        # spread by run, not by chance, so that a store which comes back is not met by all at once
        wait *= 0.75 + 0.5 * (task.invocation.run_id.int % 997) / 997
        task.attempts += 1
        if wait >= left:
            self._note(
                task, f"was dropped at its deadline after {task.attempts} attempts: {error}", level=logging.WARNING
            )
            return None
        return wait

    def _pages(self, invocation: Invocation) -> tuple[PageText, ...]:
        for pointer in invocation.inputs:
            if pointer.kind is InputKind.TEXT or pointer.content_type.startswith("text/"):
                try:
                    return parse_pages(self._fetch(pointer), content_type=pointer.content_type)
                except PagesInvalid as error:
                    raise _Hopeless(str(error)) from None
        raise _Hopeless("no input that holds text")

    def _fetch(self, pointer: InputPointer) -> bytes:
        until = time.monotonic() + self._config.fetch_seconds
        body = bytearray()
        try:
            with self._client.stream("GET", pointer.url, headers={"Accept-Encoding": "identity"}) as response:
                _check(response, doing="the input")
                for chunk in response.iter_raw():
                    body += chunk
                    if len(body) > self._config.input_bytes:
                        raise _Hopeless(f"the input has more than {self._config.input_bytes} bytes")
                    if time.monotonic() > until:
                        raise _Again("the input came too slowly")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Again(f"the input could not be fetched ({type(error).__name__})") from None
        if pointer.sha256 is not None and hashlib.sha256(body).hexdigest() != pointer.sha256:
            raise _Again("the input is not the one that was announced")
        return bytes(body)

    def _deliver(self, task: Task) -> None:
        delivery = task.invocation.result_delivery
        try:
            response = self._client.put(delivery.url, content=task.artifact or b"", headers=delivery.headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Again(f"the artifact could not be delivered ({type(error).__name__})") from None
        if response.status_code == _DELIVERED_ALREADY:
            self._note(task, "had been delivered already")
            return
        _check(response, doing="the artifact")
        self._note(task, "was delivered")

    def _note(self, task: Task, what: str, *, level: int = logging.INFO) -> None:
        # never a URL: it is signed, and whoever reads it in a log can use it
        run_id = str(task.invocation.run_id)
        logger.log(level, "run %s (%s) %s", run_id, task.invocation.purpose, what, extra={"run_id": run_id})


def _check(response: httpx.Response, *, doing: str) -> None:
    status = response.status_code
    if response.is_success:
        return
    if status in _AGAIN or status >= 500:
        raise _Again(f"{doing} met the answer {status}")
    raise _Hopeless(f"{doing} met the answer {status}")
