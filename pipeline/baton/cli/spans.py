"""Moments and lengths of time, told to people from the database's now."""

from __future__ import annotations

from datetime import datetime, timedelta

from baton.cli.printing import moment


def span(length: timedelta) -> str:
    """A length of time: ``45 s``, ``12 min``, ``3 h``, ``4 days``."""
    seconds = max(int(length.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def relative(at: datetime, *, now: datetime) -> str:
    """A moment with how far it is: ``2026-01-01 10:00:00 UTC (in 5 min)``."""
    far = f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"
    return f"{moment(at)} UTC ({far})"
