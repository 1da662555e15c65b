"""What the HTTP side may ask of the agent behind it."""

import threading
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from baton.agent.config import AgentConfig
from baton.agent.misbehaviour import Script
from baton.contract.invocations import Invocation


class Acceptance(Enum):
    """What became of an invocation."""

    STARTED = auto()
    KNOWN = auto()
    FULL = auto()


@dataclass(frozen=True, slots=True)
class Load:
    """Runs waiting and runs worked on."""

    waiting: int
    working: int


class Agent(Protocol):
    """The agent behind a port."""

    config: AgentConfig
    script: Script
    stopping: threading.Event

    @property
    def load(self) -> Load:
        """How much there is to do."""

    def is_authorized(self, header: str | None) -> bool:
        """Whether an Authorization header carries the token."""

    def accept(self, invocation: Invocation) -> Acceptance:
        """Start the work of a run that is not known yet, if there is room for it."""
