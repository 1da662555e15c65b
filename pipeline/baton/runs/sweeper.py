"""The sweeper: settles runs whose time is over, whether or not anybody announced their artifact.

The artifact is always looked for before the run is locked. There, it is settled like any delivery; absent, the run
expires; where the store does not answer, the run waits, up to a day past its deadline, and then expires too, so that no
document waits for a store for ever. Runs that the agent accepted long ago are looked at before their deadline as well:
the announcement may have got lost. Where artifacts were announced to nobody until now, the first pass looks at every
accepted run.

Pages go by key, and a pass that had to stop goes on where it stopped: rows that cannot be settled hide nobody.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Engine, Select, bindparam, func, or_, select, tuple_

from baton.aws.errors import AwsError, BucketMissing, Unavailable
from baton.aws.objects import Store
from baton.consumers.backoff import Backoff, Failures
from baton.consumers.faults import Blame, blame
from baton.db.connect import read_connection
from baton.db.tables import agent_run
from baton.runs import messages
from baton.runs.findings import Delivered, Expired, Finding, Rejected, look
from baton.runs.rows import PENDING, RUN_COLUMNS, Run, as_run
from baton.runs.settling import Result, settle_now
from baton.settings.agents import Runs
from baton.settings.agents import Sweeper as SweeperSettings
from baton.telemetry import fields, metrics
from baton.telemetry.labels import Settler
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.progress import Progress
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)

LOOP: Final = "sweeper"
#: Looks in a row that the store failed before the rest of the pass is put off.
_STORE_AWAY_AFTER: Final = 3
_Cursor = tuple[datetime, UUID]

# The index over pending runs by deadline serves both halves: an early look is at an accepted run whose deadline is near
# enough that it must have been made long ago.
_CLOCK = select(func.app.clock()).scalar_subquery()
_PAGE = (
    select(*RUN_COLUMNS)
    .where(
        PENDING,
        agent_run.c.deadline_at < _CLOCK + bindparam("horizon"),
        or_(
            agent_run.c.deadline_at < _CLOCK - bindparam("slack"),
            agent_run.c.accepted_at < _CLOCK - bindparam("early"),
        ),
    )
    .order_by(agent_run.c.deadline_at, agent_run.c.run_id)
    .limit(bindparam("size"))
)
_AFTER = tuple_(agent_run.c.deadline_at, agent_run.c.run_id) > tuple_(bindparam("deadline"), bindparam("run"))


class Move(StrEnum):
    """What is done with a run that was looked for; exactly one of these."""

    SETTLE = "settle"
    """Its artifact is there."""
    EXPIRE = "expire"
    WAIT = "wait"
    """It is inside its time, or the store's patience."""


def decide(run: Run, found: Finding | None, *, store_failed: bool, limits: Runs) -> Move:
    """Choose by what the look at the store brought.

    :param found: ``None`` where there is no artifact, or none that could be fetched.
    """
    if found is not None:
        return Move.SETTLE
    patience = limits.storage_patience if store_failed else limits.upload_slack
    return Move.EXPIRE if run.seconds_left < -patience else Move.WAIT


@dataclass(slots=True)
class Swept:
    """What one pass did."""

    looked: int = 0
    delivered: int = 0
    rejected: int = 0
    expired: int = 0
    waiting: int = 0
    too_late: int = 0
    """Somebody else was faster."""
    unanswered: int = 0
    """The store failed."""
    failed: int = 0
    """An error of the row's own; it is tried again in the next pass."""
    finished: bool = True
    """Whether the pass came to the end of the pending runs."""


@dataclass(slots=True)
class _Early:
    """When runs inside their deadline were last looked at, so that they are not looked at in every pass."""

    interval: float
    seen: dict[UUID, float] = field(default_factory=dict)

    def due(self, run: Run) -> bool:
        now = time.monotonic()
        last = self.seen.get(run.run_id)
        if last is not None and now - last < self.interval:
            return False
        self.seen[run.run_id] = now
        return True

    def forget(self) -> None:
        horizon = time.monotonic() - 2 * self.interval
        self.seen = {run_id: last for run_id, last in self.seen.items() if last > horizon}


class Sweeper:
    """One sweeping loop. Several may run at once: a run is settled by whoever locks it first."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        *,
        config: SweeperSettings,
        limits: Runs,
        unannounced: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Make a sweeper.

        :param unannounced: the bucket was not telling about artifacts until now.
        """
        self._engine = engine
        self._store = store
        self._config = config
        self._limits = limits
        self._unannounced = unannounced
        self._progress = progress
        self._cursor: _Cursor | None = None
        self._early = _Early(config.early_look)

    def run(self, stop: threading.Event) -> None:
        """Sweep until ``stop`` is set. A pass that fails is tried again, after growing waits."""
        failures = Failures(Backoff(initial=min(1.0, self._config.interval), maximum=max(self._config.interval, 1.0)))
        if self._progress is not None:
            self._progress.declare(LOOP, silent_after=4 * self._config.interval + 300)
        wait = 0.0
        while not stop.wait(wait):
            self._beat()
            try:
                self.run_once(stop)
            except Exception as error:  # noqa: BLE001 - the next pass heals
                wait = failures.failed()
                _log.warning("a sweep failed", exc_info=error, extra=fields.of(seconds=round(wait, 1)))
                if self._progress is not None:
                    self._progress.not_ready(LOOP, f"{blame(error)} does not answer")
            else:
                failures.succeeded()
                wait = self._config.interval
                if self._progress is not None:
                    self._progress.ready(LOOP)
        if self._progress is not None:
            self._progress.retire(LOOP)

    def run_once(self, stop: threading.Event | None = None) -> Swept:
        """Look at every run whose time is over, page by page.

        :raises DBAPIError: the database is away; what was settled until then stands.
        """
        swept = Swept()
        with span(SpanName.RUN_SWEEP) as opened:
            away = 0
            while swept.finished and (page := self._page()):
                for run in page:
                    if stop is not None and stop.is_set():
                        swept.finished = False
                        break
                    self._cursor = (run.deadline_at, run.run_id)
                    away = 0 if self._sweep(run, swept) else away + 1
                    if away >= _STORE_AWAY_AFTER:
                        swept.finished = False
                        break
                self._beat()
            if swept.finished:
                self._cursor = None
                self._unannounced = False
                self._early.forget()
            opened.set(Attribute.FOUND_COUNT, swept.looked)
            opened.set(Attribute.FAILED_COUNT, swept.failed + swept.unanswered)
        if swept.delivered or swept.rejected or swept.expired or swept.failed or swept.unanswered:
            found = swept.delivered + swept.rejected
            _log.info("swept", extra=fields.of(found=found, failed=swept.failed, count=swept.looked))
        return swept

    def _page(self) -> Sequence[Run]:
        statement, values = self._query()
        with read_connection(self._engine) as connection:
            return [as_run(row) for row in connection.execute(statement, values)]

    def _query(self) -> tuple[Select[Any], dict[str, object]]:
        limits, config = self._limits, self._config
        early = 0.0 if self._unannounced else config.early_look
        values: dict[str, object] = {
            "slack": timedelta(seconds=limits.upload_slack),
            "early": timedelta(seconds=early),
            "horizon": timedelta(seconds=max(limits.deadline - early, 0.0)),
            "size": config.batch_size,
        }
        if self._cursor is None:
            return _PAGE, values
        return _PAGE.where(_AFTER), values | {"deadline": self._cursor[0], "run": self._cursor[1]}

    def _sweep(self, run: Run, swept: Swept) -> bool:
        """Look for one run's artifact, decide, act; ``False`` where the store as a whole did not answer.

        A failing row is counted and left for the next pass.
        """
        overdue = run.seconds_left < -self._limits.upload_slack
        if not overdue and not self._early.due(run):
            return True
        swept.looked += 1
        found: Finding | None = None
        fault: AwsError | None = None
        try:
            try:
                found = look(self._store, run, max_bytes=self._limits.artifact_max_bytes)
            except AwsError as error:
                fault = error
                swept.unanswered += 1
                metrics.SWEEP_FAILURES.add()
                _log.warning("an artifact could not be looked for", exc_info=error, extra=fields.of(run=run.run_id))
            if decide(run, found, store_failed=fault is not None, limits=self._limits) is Move.WAIT:
                swept.waiting += 1
            else:
                finding = found or Expired(messages.EXPIRED if fault is None else messages.UNREADABLE_STORE)
                settlement = settle_now(self._engine, run, finding, settler=Settler.SWEEPER)
                _count(swept, finding, settled=settlement.result is Result.SETTLED)
        except Exception as error:
            if blame(error) is Blame.DATABASE:
                raise
            swept.failed += 1
            _log.warning("a run could not be settled", exc_info=error, extra=fields.of(run=run.run_id))
        return not isinstance(fault, Unavailable | BucketMissing)

    def _beat(self) -> None:
        if self._progress is not None:
            self._progress.beat(LOOP)


def _count(swept: Swept, finding: Finding, *, settled: bool) -> None:
    if not settled:
        swept.too_late += 1
    elif isinstance(finding, Delivered):
        swept.delivered += 1
    elif isinstance(finding, Rejected):
        swept.rejected += 1
    else:
        swept.expired += 1
