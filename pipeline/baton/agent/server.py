"""The reference agent as a server: accept at once, work in the pool, stop cleanly."""

import hmac
import logging
import threading
import time
from types import TracebackType
from typing import Final, Self

from baton.agent.accepting import Acceptance, Load
from baton.agent.config import AgentConfig
from baton.agent.deliveries import Courier, Task
from baton.agent.ledger import RunLedger
from baton.agent.listening import Listener
from baton.agent.misbehaviour import Script
from baton.agent.pool import Pool
from baton.contract.invocations import Invocation

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 5.0
"""Longest time that a stop takes."""


class AgentServer:
    """The agent on one port, in threads of its own; usable as a context manager.

    `script` tells it to misbehave; without one it behaves, and `config.misbehave` lets one be given over HTTP.
    """

    def __init__(self, config: AgentConfig, *, script: Script | None = None) -> None:
        self.config = config
        self.script = script or Script()
        self.stopping = threading.Event()
        self._ledger = RunLedger(capacity=config.remembered, path=config.ledger)
        self._courier = Courier(config)
        self._pool: Pool[Task] = Pool(self._work, drop=self._finish, threads=config.workers, backlog=config.backlog)
        # one invocation at a time is looked up and taken, so that the same run asked twice at once is one run
        self._door = threading.Lock()
        self._listener = Listener(self)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.server_address[1]

    @property
    def url(self) -> str:
        """The base URL; `/invocations` is below it."""
        return f"http://{self.config.host}:{self.port}"

    @property
    def load(self) -> Load:
        """How much there is to do; nothing of both is idle."""
        return Load(*self._pool.counts())

    def start(self) -> None:
        """Listen and work, without blocking."""
        self._pool.start()
        self._listener.listen()
        logger.info("the reference agent listens on port %d", self.port)

    def stop(self, *, timeout: float = STOP_SECONDS) -> None:
        """Close the port, finish what is in a thread, drop the rest; at most `timeout` seconds. Safe to call twice."""
        if self.stopping.is_set():
            return
        until = time.monotonic() + timeout
        self.stopping.set()
        self._listener.stop()
        left = self._pool.stop(timeout=max(0.0, until - time.monotonic() - 0.2))
        for task in left:
            logger.warning("run %s was not worked on: the agent stops", task.invocation.run_id)
        self._courier.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def is_authorized(self, header: str | None) -> bool:
        """Whether an Authorization header carries the token; takes the same time whichever characters differ."""
        scheme, _blank, token = (header or "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self.config.token.encode())

    def accept(self, invocation: Invocation) -> Acceptance:
        """Start the work of a run that is not known yet, if there is room for it."""
        with self._door:
            if self._ledger.knows(invocation.run_id):
                return Acceptance.KNOWN
            # asked before the script is, so that a refusal does not use up one of a rule's times
            if not self._pool.has_room:
                return Acceptance.FULL
            self._ledger.begin(invocation.run_id)
            if not self._pool.submit(Task(invocation, rule=self.script.for_work(invocation))):
                self._ledger.forget(invocation.run_id)
                return Acceptance.FULL
            return Acceptance.STARTED

    def _work(self, task: Task) -> float | None:
        again = self._courier.work(task)
        if again is None:
            self._finish(task)
        return again

    def _finish(self, task: Task) -> None:
        self._ledger.finish(task.invocation.run_id)


def serve(config: AgentConfig, *, stop: threading.Event) -> None:
    """Run an agent until `stop` is set. Raises OSError when the port cannot be had."""
    with AgentServer(config):
        stop.wait()
