"""The agent, its runs, and what may be spent on them.

Durations are seconds and sizes bytes unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.settings import parsers
from baton.settings.fields import setting
from baton.settings.secret import Secret


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent outside, as the dispatcher calls it."""

    url: str | None = setting(
        "BATON_AGENT_URL",
        parsers.http_url,
        default=None,
        unset="no agent is known; programs that invoke one ask for it",
        meaning="Base URL of the agent; `/invocations` is appended.",
    )
    token: Secret | None = setting(
        "BATON_AGENT_TOKEN",
        parsers.secret,
        default=None,
        unset="no agent is known; programs that invoke one ask for it",
        meaning="Bearer token for the agent.",
        secret=True,
    )
    connect_timeout: float = setting(
        "BATON_AGENT_CONNECT_TIMEOUT",
        parsers.seconds(0.1, 60),
        default=3.0,
        meaning="Longest wait for a connection.",
        unit="seconds",
    )
    read_timeout: float = setting(
        "BATON_AGENT_READ_TIMEOUT",
        parsers.seconds(0.1, 300),
        default=10.0,
        meaning="Longest wait for the agent's answer.",
        unit="seconds",
    )


@dataclass(frozen=True, slots=True)
class ReferenceAgent:
    """The reference agent's own server."""

    host: str = setting(
        "BATON_REFERENCE_AGENT_HOST",
        parsers.text,
        default="127.0.0.1",
        meaning="Address to listen on; 0.0.0.0 inside a container.",
    )
    port: int = setting(
        "BATON_REFERENCE_AGENT_PORT",
        parsers.port,
        default=8085,
        meaning="Port to listen on; 0 takes a free one.",
    )
    workers: int = setting(
        "BATON_REFERENCE_AGENT_WORKERS",
        parsers.integer(1, 64),
        default=4,
        meaning="Runs worked on at once.",
        unit="threads",
    )
    backlog: int = setting(
        "BATON_REFERENCE_AGENT_BACKLOG",
        parsers.integer(1, 100_000),
        default=200,
        meaning="Accepted runs that may wait; beyond it invocations are answered 429.",
        unit="runs",
    )
    misbehave: bool = setting(
        "BATON_REFERENCE_AGENT_MISBEHAVE",
        parsers.flag,
        default=False,
        meaning="Open POST /misbehave, for trials only.",
    )


@dataclass(frozen=True, slots=True)
class Runs:
    """Agent runs: their time, their size, and what may be spent."""

    deadline: float = setting(
        "BATON_RUN_DEADLINE",
        parsers.seconds(1, 86_400),
        default=900.0,
        meaning="Time from dispatch by which the agent must have delivered.",
        unit="seconds",
    )
    upload_slack: float = setting(
        "BATON_RUN_UPLOAD_SLACK",
        parsers.seconds(0, 3600),
        default=60.0,
        meaning="Time after the deadline in which an upload under way still counts.",
        unit="seconds",
    )
    storage_patience: float = setting(
        "BATON_RUN_STORAGE_PATIENCE",
        parsers.seconds(60, 604_800),
        default=86_400.0,
        meaning="How long after the deadline a failing object store is asked again.",
        unit="seconds",
    )
    artifact_max_bytes: int = setting(
        "BATON_RUN_ARTIFACT_MAX_BYTES",
        parsers.size(1024, 256 * 2**20),
        default=4 * 2**20,
        meaning="Largest artifact that is accepted.",
        unit="bytes",
    )
    max_attempts: int = setting(
        "BATON_RUN_MAX_ATTEMPTS",
        parsers.integer(1, 100),
        default=5,
        meaning="Registration attempts of one pass before it fails for good.",
        unit="attempts",
    )
    retry_initial: float = setting(
        "BATON_RUN_RETRY_INITIAL",
        parsers.seconds(0.1, 86_400),
        default=30.0,
        meaning="First wait before an agent that was away is asked again; doubled each time.",
        unit="seconds",
    )
    retry_max: float = setting(
        "BATON_RUN_RETRY_MAX",
        parsers.seconds(1, 604_800),
        default=900.0,
        meaning="Longest of those waits.",
        unit="seconds",
    )
    hourly_budget: int | None = setting(
        "BATON_RUN_HOURLY_BUDGET",
        parsers.integer(0, 10_000_000),
        default=None,
        unset="no limit",
        meaning="Paid agent runs that may start in an hour, over all replicas.",
        unit="runs an hour",
    )


@dataclass(frozen=True, slots=True)
class Breaker:
    """When the spending of agent runs stops by itself."""

    window_runs: int = setting(
        "BATON_BREAKER_WINDOW_RUNS",
        parsers.integer(1, 10_000),
        default=50,
        meaning="Settled runs that are looked back on.",
        unit="runs",
    )
    window_time: float = setting(
        "BATON_BREAKER_WINDOW_TIME",
        parsers.seconds(1, 86_400),
        default=600.0,
        meaning="Time that is looked back on, where it holds more runs.",
        unit="seconds",
    )
    failure_ratio: float = setting(
        "BATON_BREAKER_FAILURE_RATIO",
        parsers.ratio,
        default=0.5,
        meaning="Share of failed runs at which the breaker opens.",
        unit="0 to 1",
    )
    min_runs: int = setting(
        "BATON_BREAKER_MIN_RUNS",
        parsers.integer(1, 10_000),
        default=10,
        meaning="Settled runs below which nothing is concluded from their failing.",
        unit="runs",
    )
    discrepancy_cap: int = setting(
        "BATON_BREAKER_DISCREPANCY_CAP",
        parsers.integer(1, 100_000_000),
        default=20_000,
        meaning="New discrepancies within the time looked back on at which the breaker opens, whatever the runs say.",
        unit="discrepancies",
    )
    cooldown: float = setting(
        "BATON_BREAKER_COOLDOWN",
        parsers.seconds(1, 86_400),
        default=300.0,
        meaning="Time before trial runs are let through.",
        unit="seconds",
    )
    trial_runs: int = setting(
        "BATON_BREAKER_TRIAL_RUNS",
        parsers.integer(1, 1000),
        default=3,
        meaning="Trial runs that decide whether the breaker closes.",
        unit="runs",
    )


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The loop that settles runs past their deadline."""

    interval: float = setting(
        "BATON_SWEEPER_INTERVAL",
        parsers.seconds(0.1, 3600),
        default=30.0,
        meaning="Wait between two looks.",
        unit="seconds",
    )
    batch_size: int = setting(
        "BATON_SWEEPER_BATCH_SIZE",
        parsers.integer(1, 1000),
        default=100,
        meaning="Runs looked at in one pass.",
        unit="runs",
    )
    early_look: float = setting(
        "BATON_SWEEPER_EARLY_LOOK",
        parsers.seconds(1, 86_400),
        default=300.0,
        meaning="Age at which an accepted run's artifact is looked for, before its deadline.",
        unit="seconds",
    )
