"""Waits that double, with jitter, so that many consumers do not come back in step."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """A wait that doubles with each failure in a row."""

    initial: float = 1.0
    """Seconds after the first failure."""
    maximum: float = 30.0
    """Seconds; the longest wait."""

    def seconds(self, failures: int) -> float:
        """The wait after ``failures`` failures in a row (from 1): between half of it and all of it."""
        doublings = min(max(failures - 1, 0), 30)
        whole = min(self.maximum, self.initial * 2.0**doublings)
        return whole * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


class Failures:
    """How often in a row something failed."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self.count = 0

    def failed(self) -> float:
        """Note one more failure; seconds to wait."""
        self.count += 1
        return self._backoff.seconds(self.count)

    def succeeded(self) -> None:
        """Begin anew."""
        self.count = 0
