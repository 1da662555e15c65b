"""The loops that repair: how often they look, and how much they may do.

Durations are seconds unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.settings import parsers
from baton.settings.fields import setting


@dataclass(frozen=True, slots=True)
class Reconcile:
    """One reconcile loop. Several may run at once; limits are kept in Postgres and hold for all of them together."""

    resource: str = setting(
        "BATON_RECONCILE_RESOURCE",
        parsers.text,
        default="default",
        meaning="Who works on this database; loops of another name find it taken and repair nothing.",
    )
    interval: float = setting(
        "BATON_RECONCILE_INTERVAL",
        parsers.seconds(0.1, 3600),
        default=30.0,
        meaning="Wait between two passes.",
        unit="seconds",
    )
    page_size: int = setting(
        "BATON_RECONCILE_PAGE_SIZE",
        parsers.integer(1, 1000),
        default=100,
        meaning="Candidates that one question brings.",
        unit="documents",
    )
    page_limit: int = setting(
        "BATON_RECONCILE_PAGE_LIMIT",
        parsers.integer(1, 100_000),
        default=200,
        meaning="Pages of one discrepancy that a pass reads; the next pass goes on behind them.",
        unit="pages",
    )
    batch_size: int = setting(
        "BATON_RECONCILE_BATCH_SIZE",
        parsers.integer(1, 200),
        default=20,
        meaning="Documents locked, judged again and repaired in one transaction.",
        unit="documents",
    )
    backstop_rows: int = setting(
        "BATON_RECONCILE_BACKSTOP_ROWS",
        parsers.integer(0, 10_000),
        default=1000,
        meaning="Documents in open states that each pass judges in turn, whatever the indexes say.",
        unit="documents",
    )
    scrub_rate: float = setting(
        "BATON_RECONCILE_SCRUB_RATE",
        parsers.number(0, 100_000),
        default=500.0,
        meaning="Documents a second that are judged in key order; 0 turns the scrub off.",
        unit="documents a second",
    )
    scrub_slice: int = setting(
        "BATON_RECONCILE_SCRUB_SLICE",
        parsers.integer(1, 10_000),
        default=1000,
        meaning="Documents of one slice of the scrub.",
        unit="documents",
    )
    repairs_per_minute: int = setting(
        "BATON_RECONCILE_REPAIRS_PER_MINUTE",
        parsers.integer(0, 1_000_000),
        default=600,
        meaning="Repairs in a minute, over all replicas.",
        unit="repairs",
    )
    max_attempts: int = setting(
        "BATON_RECONCILE_MAX_ATTEMPTS",
        parsers.integer(1, 100),
        default=5,
        meaning="Repairs of one discrepancy on one document and pass before it fails visibly.",
        unit="repairs",
    )
    backoff_initial: float = setting(
        "BATON_RECONCILE_BACKOFF_INITIAL",
        parsers.seconds(0, 86_400),
        default=60.0,
        meaning="Wait after the first of those repairs; doubled each time.",
        unit="seconds",
    )
    backoff_max: float = setting(
        "BATON_RECONCILE_BACKOFF_MAX",
        parsers.seconds(0, 604_800),
        default=3600.0,
        meaning="Longest of those waits.",
        unit="seconds",
    )
    parked_attempts: int = setting(
        "BATON_RECONCILE_PARKED_ATTEMPTS",
        parsers.integer(0, 100),
        default=3,
        meaning="How often a parked ticket is sent again before its document fails visibly.",
        unit="times",
    )
    parked_interval: float = setting(
        "BATON_RECONCILE_PARKED_INTERVAL",
        parsers.seconds(0, 604_800),
        default=3600.0,
        meaning="Wait between those times.",
        unit="seconds",
    )
    graces: tuple[tuple[str, float], ...] | None = setting(
        "BATON_RECONCILE_GRACES",
        parsers.durations,
        default=None,
        unset="each discrepancy has its own",
        meaning="Graces of single discrepancies, such as `request_stalled=10m,run_lapsed=5m`.",
        unit="seconds",
    )
