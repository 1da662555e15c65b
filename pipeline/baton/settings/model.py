"""All settings of a process, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_type_hints

from baton.settings.agents import Agent, Breaker, ReferenceAgent, Runs, Sweeper
from baton.settings.operating import Operator
from baton.settings.people import Person
from baton.settings.reconciling import Reconcile
from baton.settings.stores import Aws, Bucket, Database, Queues
from baton.settings.watching import Health, Logs, Telemetry
from baton.settings.work import Consumer, Extraction, Relay


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per concern; every concern can also be built by itself, with its defaults."""

    database: Database = field(default_factory=Database)
    aws: Aws = field(default_factory=Aws)
    queues: Queues = field(default_factory=Queues)
    bucket: Bucket = field(default_factory=Bucket)
    relay: Relay = field(default_factory=Relay)
    consumer: Consumer = field(default_factory=Consumer)
    extraction: Extraction = field(default_factory=Extraction)
    agent: Agent = field(default_factory=Agent)
    reference_agent: ReferenceAgent = field(default_factory=ReferenceAgent)
    runs: Runs = field(default_factory=Runs)
    breaker: Breaker = field(default_factory=Breaker)
    sweeper: Sweeper = field(default_factory=Sweeper)
    reconcile: Reconcile = field(default_factory=Reconcile)
    operator: Operator = field(default_factory=Operator)
    telemetry: Telemetry = field(default_factory=Telemetry)
    logs: Logs = field(default_factory=Logs)
    health: Health = field(default_factory=Health)
    person: Person = field(default_factory=Person)


def concerns() -> dict[str, type[Any]]:
    """The class of each concern by its field's name, in the order they are written."""
    return get_type_hints(Settings)
