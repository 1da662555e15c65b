"""One pass of a reconcile loop: find, by indexes, by turn and by slices; then plan, and where it may, repair.

A pass that observes takes the very same way up to the lock, with a role that cannot write.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from baton.aws.objects import Store
from baton.aws.queues import Queue
from baton.consumers.faults import Blame, blame
from baton.db import clock
from baton.db.connect import forgettable, prepared, read_connection
from baton.db.rows import DOCUMENT_COLUMNS, Document, as_document
from baton.db.states import Lane
from baton.db.tables import documents
from baton.reconcilers import (
    apart,
    backstop,
    glance,
    jumps,
    ledger,
    leftovers,
    limits,
    owner,
    readings,
    resting,
    scrub,
    windows,
)
from baton.reconcilers.candidates import Candidates, Key
from baton.reconcilers.graces import graces
from baton.reconcilers.judging import findings, judge
from baton.reconcilers.memory import Memory, Private, Shared
from baton.reconcilers.planning import Ground, allowance, plan
from baton.reconcilers.readings import Readings
from baton.reconcilers.repairs import Repairer
from baton.reconcilers.results import Effect, Finding, Guard, Mode, PassResult, Planned
from baton.reconcilers.rows import Discrepancy
from baton.reconcilers.shares import in_turn
from baton.reconcilers.walks import JUDGED_AT_ONCE, Walk, alone, gathered, turns
from baton.runs import breaker
from baton.settings.model import Settings
from baton.telemetry import fields
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)

#: Seconds after which a long pass says again who works here.
_RENEWED_AFTER: Final = 60.0
#: What a pass calls it when a document cannot be judged.
_JUDGING: Final = "judging"
#: The name under which the end of the last pass is kept.
LAST_PASS: Final = "pass"


class Reconciler:
    """Makes passes, one after the other; several reconcilers may run at once."""

    def __init__(
        self,
        engine: Engine,
        *,
        settings: Settings,
        mode: Mode,
        queues: Mapping[Lane, Queue] | None = None,
        store: Store | None = None,
        requested_by: str | None = None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is connected yet.

        :param engine: of the reconciler's role, or for observing of the observer's.
        :param queues: to read the depths of; ``None``: readings of others are used.
        :param store: where artifacts are looked for; ``None``: no run is settled here.
        :param requested_by: whom the ledger names; ``None``: the resource.
        :param beat: called while a pass goes on.
        """
        self._engine = engine
        self._settings = settings
        self._mode = mode
        self._beat = beat
        self._memory: Memory = Shared() if mode is Mode.REPAIR else Private()
        self._readings = Readings(queues, config=settings.queues, keep=mode is Mode.REPAIR)
        self._pace = scrub.Pace(settings.reconcile.scrub_rate)
        self._cursors: dict[glance.Place, Key] = {}
        overrides = {name: timedelta(seconds=seconds) for name, seconds in settings.reconcile.graces or ()}
        self._graces = graces(overrides)
        self._repairer = Repairer(
            engine=engine,
            settings=settings,
            store=store,
            requested_by=requested_by or f"reconciler {settings.reconcile.resource}",
        )

    @property
    def memory(self) -> Memory:
        """What it remembers between passes."""
        return self._memory

    def run_once(self, stop: threading.Event | None = None) -> PassResult:
        """Make one pass.

        :raises DBAPIError: the database is away; what was repaired until then stands.
        """
        began = time.monotonic()
        self._readings.take(self._engine)
        walk = self._prepare(stop or threading.Event())
        result = walk.result
        with span(SpanName.RECONCILE_PASS) as opened:
            self._hot(walk)
            self._backstop(walk)
            self._scrub(walk)
            self._late(walk)
            opened.set(Attribute.FOUND_COUNT, result.total)
            opened.set(Attribute.REPAIRED_COUNT, result.repaired)
            opened.set(Attribute.FAILED_COUNT, result.errors)
        self._conclude(walk)
        result.seconds = time.monotonic() - began
        return result

    def ground(self, connection: Connection, *, owned: bool = True) -> Ground:
        """What a pass knows before it looks at any document."""
        now = clock.now(connection)
        lanes = self._readings.states(connection, now=now)
        return Ground(now=now, lanes=lanes, graces=self._graces, owned=owned)

    def _prepare(self, stop: threading.Event) -> Walk:
        owned = True
        if self._mode is Mode.REPAIR:
            with forgettable(self._engine) as connection, prepared(connection):
                owned = owner.claim(connection, self._settings.reconcile.resource)
                breaker.judge(connection, config=self._settings.breaker, limits=self._settings.runs)
        with read_connection(self._engine) as connection, prepared(connection):
            ground = self.ground(connection, owned=owned)
            stalled = readings.stalled(connection, ground.lanes, now=ground.now)
            result = PassResult(mode=self._mode, began=ground.now, stalled=stalled)
            walk = Walk(ground, result, stop, level=jumps.level(connection, self._memory))
            with alone(walk, glance.NAME):
                walk.shown = glance.showing(connection, now=ground.now, graces=ground.graces, lanes=ground.lanes)
        for lane in stalled:
            _log.warning("nobody consumes a lane; nothing of it is repaired", extra=fields.of(lane=lane))
        return walk

    def _remembering(self) -> AbstractContextManager[Connection]:
        """A transaction that keeps what the pass remembers, where it keeps anything in Postgres."""
        return forgettable(self._engine) if self._mode is Mode.REPAIR else read_connection(self._engine)

    def _conclude(self, walk: Walk) -> None:
        result = walk.result
        if self._mode is not Mode.REPAIR or not result.finished:
            return
        with forgettable(self._engine) as connection, prepared(connection):
            ended = clock.now(connection)
            jumps.judge(connection, self._memory, result, config=self._settings.breaker, now=ended)
            self._memory.keep(connection, LAST_PASS, {"ended_at": ended.isoformat(), "found": result.total})

    # what is looked at

    def _hot(self, walk: Walk) -> None:
        """Ask every index that shows anything. One whose question fails keeps no other from being asked."""
        shown = walk.shown
        for discrepancy in turns(walk.ground.now):
            for number, each in enumerate(discrepancy.candidates):
                if shown is not None and (discrepancy.name, number) not in shown:
                    self._cursors.pop((discrepancy.name, number), None)
                    continue
                with alone(walk, discrepancy.name):
                    for some in gathered(self._pages(walk, discrepancy, number, each)):
                        self._work(walk, some)
                        if each.of_tickets:
                            with alone(walk, leftovers.NAME):
                                self._tidy(walk, some)
                if walk.stopped:
                    return

    def _backstop(self, walk: Walk) -> None:
        """Judge some documents in open states, in turn."""
        count = self._settings.reconcile.backstop_rows
        if not count or walk.stopped:
            return
        with alone(walk, backstop.NAME):
            with self._remembering() as connection, prepared(connection):
                ids = backstop.next_rows(connection, self._memory, count=count)
            self._work(walk, ids)

    def _scrub(self, walk: Walk) -> None:
        """Judge the slices that are due. A table smaller than that is walked once, not round and round."""
        size = self._settings.reconcile.scrub_slice
        with alone(walk, scrub.NAME):
            while not walk.stopped and self._pace.due() >= size:
                taken = scrub.take_slice(self._engine, self._memory, size=size)
                if taken is None:
                    return
                with span(SpanName.RECONCILE_SCRUB) as opened:
                    self._work(walk, self._unsettled(walk, taken.document_ids))
                    opened.set(Attribute.BATCH_COUNT, len(taken.document_ids))
                walk.result.scrubbed += len(taken.document_ids)
                self._pace.spend(size)
                if taken.ended:
                    self._pace.rest()
                    return

    def _pages(self, walk: Walk, discrepancy: Discrepancy, number: int, each: Candidates) -> Iterator[list[UUID]]:
        """Pages of one index, up to the limit of a pass; the next pass goes on where this one stopped."""
        config, ground, place = self._settings.reconcile, walk.ground, (discrepancy.name, number)
        after = self._cursors.pop(place, None)
        for _ in range(config.page_limit):
            with read_connection(self._engine) as connection:
                found, after = each.page(
                    connection,
                    now=ground.now,
                    grace=ground.graces[discrepancy.name],
                    lanes=ground.lanes,
                    after=after,
                    size=config.page_size,
                )
            if found:
                yield found
            if after is None or walk.stopped:
                return
        if after is not None:
            self._cursors[place] = after
        _log.info("a pass reads no further", extra=fields.of(rule=discrepancy.name))

    def _unsettled(self, walk: Walk, document_ids: Sequence[UUID]) -> list[UUID]:
        """Leave out what rests: it is healthy, and judged by that."""
        found: list[UUID] = []
        for start in range(0, len(document_ids), JUDGED_AT_ONCE):
            some = document_ids[start : start + JUDGED_AT_ONCE]
            self._tick(walk)
            with read_connection(self._engine) as connection:
                left = resting.unsettled(
                    connection, some, lanes=walk.ground.lanes, graces=walk.ground.graces, now=walk.ground.now
                )
            walk.result.judged += len(some) - len(left)
            found += left
        return found

    # what is done with it

    def _work(self, walk: Walk, document_ids: Iterable[UUID]) -> None:
        """Judge documents that this pass has not judged yet, then plan or repair."""
        fresh = iter([each for each in dict.fromkeys(document_ids) if each not in walk.judged])
        while not walk.stopped and (some := list(islice(fresh, JUDGED_AT_ONCE))):
            self._tick(walk)
            walk.judged.update(some)
            walk.result.judged += len(some)
            found = self._findings(walk, some)
            walk.result.note(found)
            self._jump(walk)
            if not found:
                continue
            with read_connection(self._engine) as connection:
                plans, firms = self._plan(connection, walk, found)
            walk.result.show(each for each in plans if not each.ready)
            ready = [each for each in plans if each.ready]
            walk.mended.update(each.finding.document_id for each in ready)
            self._carry_out(walk, walk.shares.take(ready, firms=firms))

    def _findings(self, walk: Walk, document_ids: Sequence[UUID]) -> list[Finding]:
        """What disagrees; a document that cannot be counted with is told, and set aside."""

        def ask(some: Sequence[UUID]) -> list[Finding]:
            with read_connection(self._engine) as connection:
                return list(findings(judge(connection, some, ground=walk.ground), ground=walk.ground))

        def spoiled(document_id: UUID, error: Exception) -> None:
            if _JUDGING not in walk.result.failures:
                walk.result.failures.append(_JUDGING)
            _log.warning("a document cannot be judged", exc_info=error, extra=fields.of(document=document_id))

        return [each for some in apart.asked(document_ids, ask, spoiled=spoiled) for each in some]

    def _carry_out(self, walk: Walk, plans: Sequence[Planned]) -> None:
        """Repair, or note what would be."""
        if self._mode is Mode.REPAIR:
            self._repair(walk, [each.finding for each in plans])
            return
        walk.planned += len(plans)
        walk.result.show(plans)

    def _late(self, walk: Walk) -> None:
        """What had its share already takes what the minute has left, once everything was looked at."""
        plans = walk.shares.rest()
        if not plans or walk.stopped:
            return
        with read_connection(self._engine) as connection:
            left = max(limits.left(connection, config=self._settings.reconcile) - walk.planned, 0)
        walk.result.show(replace(each, guard=Guard.RATE) for each in plans[left:])
        self._carry_out(walk, plans[:left])

    def _tick(self, walk: Walk) -> None:
        """Say that the pass moves; and in a long one again that this resource works here, lest another one takes it over."""
        self._beat()
        if self._mode is Mode.REPAIR and walk.ground.owned and time.monotonic() - walk.claimed > _RENEWED_AFTER:
            with self._engine.begin() as connection:
                owned = owner.claim(connection, self._settings.reconcile.resource)
            walk.ground, walk.claimed = replace(walk.ground, owned=owned), time.monotonic()

    def _jump(self, walk: Walk) -> None:
        """Open the breaker as soon as too much is new, rather than after the pass has spent its repairs on it."""
        config = self._settings.breaker
        if self._mode is Mode.REPAIR and jumps.exceeds(walk.result, level=walk.level, config=config):
            with self._engine.begin() as connection:
                now = clock.now(connection)
                jumps.judge(connection, self._memory, walk.result, config=config, now=now, ended=False)
                walk.level = jumps.level(connection, self._memory)

    def _tidy(self, walk: Walk, document_ids: Sequence[UUID]) -> None:
        """Close what is left over of documents that an index over open tickets shows though nothing of them is repaired."""
        rest = [each for each in document_ids if each not in walk.mended]
        if self._mode is not Mode.REPAIR or not rest or not walk.ground.owned:
            return
        with read_connection(self._engine) as connection:
            if windows.held(connection) is not None:
                return
        closed = leftovers.close(self._engine, rest, ground=walk.ground)
        walk.result.left_over += closed
        if closed:
            _log.info("tickets that nothing waits for were closed", extra=fields.of(count=closed))

    def _plan(
        self, connection: Connection, walk: Walk, found: Sequence[Finding]
    ) -> tuple[list[Planned], Mapping[UUID, UUID]]:
        """What is to be done about each, and whose the documents are."""
        ids = {each.document_id for each in found}
        rows = connection.execute(select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(ids)))
        read: Mapping[UUID, Document] = {each.id: each for each in map(as_document, rows)}
        firms = {each.id: each.firm_id for each in read.values()}
        allowed = allowance(connection, ground=walk.ground, settings=self._settings)
        walk.shares.open(allowed.left, among=len(walk.names) + 1)  # one for what no index shows
        plans = plan(
            in_turn(found, firms=firms),
            documents=read,
            entries=ledger.read_entries(connection, list(ids)),
            allowed=replace(allowed, left=allowed.left - walk.planned),
            ground=walk.ground,
            settings=self._settings,
        )
        return plans, firms

    def _repair(self, walk: Walk, found: Sequence[Finding]) -> None:
        size = self._settings.reconcile.batch_size
        for start in range(0, len(found), size):
            if walk.stopped:
                return
            self._tick(walk)
            batch = found[start : start + size]
            try:
                done = self._repairer.repair(batch, ground=walk.ground)
            except Exception as error:
                if blame(error) is Blame.DATABASE:
                    raise
                walk.result.effects.update((each.name, Effect.ERROR) for each in batch)
                _log.warning("a batch of repairs failed", exc_info=error, extra=fields.of(count=len(batch)))
            else:
                walk.result.effects.update(done.effects)
                walk.result.vanished += done.vanished
                walk.result.show(done.plans)
