"""The cast: the processes that a cluster would deploy, each with its own database role and environment.

Whoever dies is started again, as a cluster would: at once, then after growing waits while it dies young.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from baton.db.access import Role
from baton.db.states import Lane
from baton.demo.stage import ACCOUNT, Stage
from baton.embedded.children import Child, Program
from baton.embedded.ports import LOOPBACK, free_port
from baton.settings.agents import Agent, ReferenceAgent, Runs, Sweeper
from baton.settings.inheriting import inherited
from baton.settings.loading import environment
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from baton.settings.secret import Secret
from baton.settings.stores import Database
from baton.settings.watching import LogFormat, Logs
from baton.settings.work import Consumer, Extraction, Relay

RELAY_INGEST: Final = "relay ingest"
RELAY_REGISTRAR: Final = "relay registrar"
EXTRACTOR: Final = "extractor"
REGISTRAR: Final = "registrar"
SETTLER: Final = "settler"
AGENT: Final = "agent"
RECONCILER: Final = "reconciler"

_CONSUMER: Final = Consumer(workers=3, receive_wait=2, heartbeat=2.0, shutdown_grace=5.0, max_attempts=20)
_SWEEPER: Final = Sweeper(interval=2.0, early_look=6.0)
_RUNS: Final = Runs(deadline=120.0, upload_slack=5.0, retry_initial=1.0, retry_max=5.0)
_EXTRACTION: Final = Extraction(wall_seconds=60.0, cpu_seconds=60)
_RELAY: Final = Relay(idle_wait=1.0, backoff_max=2.0)
#: Graces are for real traffic; a person who watches has none.
_RECONCILE: Final = Reconcile(
    interval=1.0,
    graces=tuple(
        (name, 0.5)
        for name in ("ingest_stalled", "request_stalled", "apply_stalled", "understanding_stalled", "fan_out_missing")
    ),
)
_LOGS: Final = Logs(format=LogFormat.JSON)

_YOUNG: Final = 5.0  # seconds of life below which the next start waits
_LONGEST_WAIT: Final = 5.0
_LOOK: Final = 0.1
_GRACE: Final = 6.0


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the cast."""

    name: str
    arguments: tuple[str, ...]
    role: Role | None = None
    """Its database role; ``None``: it has no database."""
    queues: bool = True
    """Whether it knows SQS and S3."""
    calls_agent: bool = False
    later: bool = False
    """Whether it is started only when an act asks for it."""


PARTS: Final = (
    Part(RELAY_INGEST, ("relay", "--lane", Lane.INGEST.value), Role.RELAY),
    Part(RELAY_REGISTRAR, ("relay", "--lane", Lane.REGISTRAR.value), Role.RELAY),
    Part(EXTRACTOR, ("extractor",), Role.EXTRACTOR),
    Part(REGISTRAR, ("registrar",), Role.REGISTRAR, calls_agent=True),
    Part(SETTLER, ("settler",), Role.SETTLER),
    Part(AGENT, ("agent",), queues=False),
    Part(RECONCILER, ("reconcile",), Role.RECONCILER, later=True),
)


More = Callable[[Part], Mapping[str, str]]


def nothing_more(_part: Part) -> Mapping[str, str]:
    """Nothing besides a process's own variables."""
    return {}


def settings_of(part: Part, stage: Stage, *, agent_port: int, token: Secret) -> Settings:
    """What one process is told: what it needs, and nobody else's secrets."""
    settings = Settings(logs=_LOGS, queues=stage.queues, bucket=stage.bucket, consumer=_CONSUMER, runs=_RUNS)
    if part.role is not None:
        settings = replace(settings, database=Database(url=stage.database_url(part.role)))
    if part.calls_agent:
        url = f"http://{LOOPBACK}:{agent_port}"
        settings = replace(settings, agent=Agent(url=url, token=token, connect_timeout=1.0, read_timeout=5.0))
    match part.name:
        case "agent":
            reference = ReferenceAgent(port=agent_port, workers=2)
            settings = replace(Settings(logs=_LOGS), agent=Agent(token=token), reference_agent=reference)
        case "settler":
            settings = replace(settings, sweeper=_SWEEPER)
        case "extractor":
            settings = replace(settings, extraction=_EXTRACTION)
        case "reconciler":
            settings = replace(settings, reconcile=_RECONCILE)
        case _:
            settings = replace(settings, relay=_RELAY)
    return settings


def program_of(part: Part, stage: Stage, settings: Settings, *, more: Mapping[str, str]) -> Program:
    """The process as a child: ``python -m baton.cli …`` with an environment of its own."""
    environ = {
        **inherited(),
        "TMPDIR": str(stage.scratch),
        **(stage.aws.environ(ACCOUNT) if part.queues else {}),
        **environment(settings),
        **more,
    }
    return Program(
        name=part.name,
        argv=(sys.executable, "-m", "baton.cli", *part.arguments),
        log=stage.logs / f"{part.name.replace(' ', '-')}.log",
        environ=environ,
        folder=stage.folder,
    )


@dataclass(slots=True)
class Member:
    """One process, and how often it was started."""

    child: Child
    starts: int = 1
    started_at: float = field(default_factory=time.monotonic)
    quick_deaths: int = 0
    back_at: float | None = None
    """When it is started again; ``None``: it runs."""
    held: bool = False
    """Whether it is to stay away."""


class Cast:
    """The running processes, looked after by a thread."""

    def __init__(self, stage: Stage, *, more: More = nothing_more) -> None:
        """Prepare, start nothing.

        :param more: what a process's environment gets besides its own variables, such as an address for spans.
        """
        agent_port, token = free_port(), Secret(secrets.token_urlsafe(24))
        self._members = {
            part.name: Member(
                Child(
                    program_of(
                        part, stage, settings_of(part, stage, agent_port=agent_port, token=token), more=more(part)
                    )
                ),
                starts=0 if part.later else 1,
                held=part.later,
            )
            for part in PARTS
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="cast", daemon=True)

    def start(self) -> None:
        """Start every process, and look after them from now on."""
        for member in self._members.values():
            if not member.held:
                member.child.start()
        self._thread.start()

    def begin(self, name: str) -> None:
        """Start a process that is there for later."""
        member = self._members[name]
        member.child.start()
        member.starts, member.started_at, member.held = 1, time.monotonic(), False

    def hold(self, name: str) -> None:
        """``kill -9`` one process, and do not start it again."""
        self._members[name].held = True
        self.kill(name)

    def release(self, name: str) -> None:
        """Let a process that was held be started again."""
        self._members[name].held = False

    def stop(self, *, within: float = _GRACE) -> None:
        """Ask every process to end, all at once, and kill those that have not ended ``within`` seconds."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(30)
        children = [member.child for member in self._members.values() if member.starts]
        for child in children:
            child.send(signal.SIGTERM)
        deadline = time.monotonic() + within
        for child in children:
            if child.wait(timeout=max(0.0, deadline - time.monotonic())) is None:
                child.kill()

    def kill(self, name: str) -> int:
        """``kill -9`` one process, and none of its own children; returns the process id that it had."""
        child = self._members[name].child
        pid = child.pid
        child.send(signal.SIGKILL)
        return pid

    def starts(self) -> dict[str, int]:
        """How often each process was started that was started at all."""
        return {name: member.starts for name, member in self._members.items() if member.starts}

    def pids(self) -> dict[str, int]:
        """The process id of each that runs."""
        return {
            name: member.child.pid for name, member in self._members.items() if member.starts and member.child.running
        }

    def log_tail(self, name: str) -> str:
        """The last lines that a process logged."""
        return self._members[name].child.log_tail()

    def _look_after(self) -> None:
        while not self._stop.wait(_LOOK):
            for member in self._members.values():
                self._look_at(member)

    def _look_at(self, member: Member) -> None:
        if member.held or member.child.running:
            return
        now = time.monotonic()
        if member.back_at is None:
            young = now - member.started_at < _YOUNG
            member.quick_deaths = member.quick_deaths + 1 if young else 0
            wait = 0.0 if member.quick_deaths < 2 else min(_LONGEST_WAIT, 0.25 * 2**member.quick_deaths)
            member.back_at = now + wait
        if now >= member.back_at:
            member.child.start()
            member.starts += 1
            member.started_at, member.back_at = now, None


@contextmanager
def running_cast(stage: Stage, *, more: More = nothing_more) -> Iterator[Cast]:
    """The processes for the length of a block."""
    cast = Cast(stage, more=more)
    try:
        cast.start()
        yield cast
    except BaseException:
        cast.stop(within=0.0)  # whoever interrupts does not want to wait
        raise
    cast.stop()


def has_recogniser() -> bool:
    """Whether scanned pages can be read on this machine."""
    return shutil.which("tesseract") is not None
