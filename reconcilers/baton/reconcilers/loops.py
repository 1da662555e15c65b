"""A supervised loop: pass after pass, whatever happens in between.

A pass that fails is tried again after growing waits; nothing that it meets ends the loop. Waits are spread a little, so
that replicas do not come in step.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import Final

from baton.consumers.backoff import Backoff, Failures
from baton.consumers.faults import Blame, blame
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import PassResult
from baton.telemetry import fields, metrics
from baton.telemetry.labels import PassOutcome
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

LOOP: Final = "reconciler"
#: Seconds; the longest wait for a database that is away. It comes back without telling.
_BACKOFF_MAX: Final = 10.0
#: A wait is looked at this often for a stop.
_TICK: Final = 0.25
#: Seconds without a beat after which the loop counts as stuck: longer than any statement may take.
_SILENT_AFTER: Final = 120.0
_SPREAD: Final = 0.1


class Loop:
    """Runs in the thread that calls :meth:`run`; :meth:`wake` may be called from any other."""

    def __init__(
        self,
        reconciler: Reconciler,
        *,
        interval: float,
        progress: Progress | None = None,
        before: Callable[[], None] = lambda: None,
        after: Callable[[PassResult], None] | None = None,
    ) -> None:
        """:param interval: seconds between the end of a pass and the next.

        :param before: called before each pass; what it raises fails the pass.
        :param after: called with each result; what it raises is logged.
        """
        self._reconciler = reconciler
        self._interval = interval
        self._progress = progress
        self._before = before
        self._after = after
        self._woken = threading.Event()
        if progress is not None:
            progress.declare(LOOP, silent_after=_SILENT_AFTER + interval)

    def wake(self) -> None:
        """Make a pass now, or right after the one under way."""
        self._woken.set()

    def beat(self) -> None:
        """Say that the loop is moving."""
        if self._progress is not None:
            self._progress.beat(LOOP)

    def run(self, stop: threading.Event) -> None:
        """Make passes until ``stop`` is set."""
        failures = Failures(Backoff(initial=1.0, maximum=_BACKOFF_MAX))
        while not stop.is_set():
            self._woken.clear()
            self.beat()
            try:
                self._before()
                result = self._reconciler.run_once(stop)
            except Exception as error:  # noqa: BLE001 - the next pass heals
                wait = failures.failed()
                metrics.PASSES.add(outcome=PassOutcome.FAILED)
                _log.warning("a pass failed", exc_info=error, extra=fields.of(seconds=round(wait, 1)))
                if self._progress is not None:
                    who = "the database" if blame(error) is Blame.DATABASE else "a pass"
                    self._progress.not_ready(LOOP, f"{who} fails")
            else:
                failures.succeeded()
                wait = self._interval * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - jitter, no secret
                self._tell(result)
            self._rest(wait, stop)
        if self._progress is not None:
            self._progress.retire(LOOP)

    def _tell(self, result: PassResult) -> None:
        if self._progress is not None:
            self._progress.ready(LOOP)
        if result.total or result.errors:
            counts = {"found": result.total, "repaired": result.repaired, "failed": result.errors}
            _log.info("a pass ended", extra=fields.of(**counts, refused=result.refused.total()))
        if self._after is None:
            return
        try:
            self._after(result)
        except Exception as error:  # noqa: BLE001 - showing what was done must not undo it
            _log.warning("a pass could not be shown", exc_info=error)

    def _rest(self, wait: float, stop: threading.Event) -> None:
        left = wait
        while left > 0 and not stop.is_set() and not self._woken.wait(min(left, _TICK)):
            left -= _TICK
            self.beat()
