"""The redrives of one reconciler: a thread that takes their turns, a page or a batch each, until none is unfinished.

What is done, and that nothing is done twice, is Postgres' business (:mod:`baton.reconcilers.redrive`): a request stands
there before anything is done, a batch is one transaction, and each looks within it whether the reconciler still works on
the database and whether repairs are held back. So this thread may die anywhere, and another goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from baton.consumers.backoff import Backoff, Failures
from baton.db.connect import read_connection
from baton.operator import credentials
from baton.operator.api import Api, ApiAway
from baton.operator.bases import Base, HeldBack
from baton.operator.courses import Course
from baton.operator.failures import ObserveOnly, ReconcilerMissing, Stopped, failure_of
from baton.operator.redrives import Place, is_dry, is_planned, per_minute, phase_of, request_of, unfinished
from baton.operator.roster import Roster
from baton.operator.scribe import Report
from baton.operator.specs import Key, SpecInvalid, Wanted
from baton.operator.standing import fit
from baton.operator.vocabulary import Phase
from baton.reconcilers import redrive
from baton.reconcilers.redrive import Progress as Kept
from baton.reconcilers.redrive import Redriver, RedriveRefused, Request, State
from baton.reconcilers.rehearsal import Rehearsal
from baton.reconcilers.results import Mode
from baton.settings.model import Settings
from baton.telemetry import fields
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Rows of documents that a plan looks at.
LOOKED_AT: Final = 100_000
_BACKOFF_MAX: Final = 30.0
#: Seconds for which the secret is good while all goes well.
_REREAD: Final = 60.0
_SILENT_AFTER: Final = 120.0
#: Seconds between two looks while repairs are held back, or while a status that says the end is not written.
_LOOK: Final = 5.0
#: Seconds between two reports that differ in numbers alone.
_QUIET: Final = 10.0

Leave = Callable[[Key, Report], None]


class Refused(Exception):
    """It will not be carried out, whatever comes."""


@dataclass(slots=True)
class _Job:
    """One redrive in this thread's hands."""

    wanted: Wanted
    course: Course
    failures: Failures
    due: float = 0.0
    rehearsal: Rehearsal | None = None
    told: tuple[Course, float] | None = None
    """What was reported last, and when."""


class RedriveLoop:
    """Runs in a thread of its own from :meth:`start` until nothing is left or :meth:`stop`."""

    def __init__(
        self,
        place: Place,
        *,
        redrives: Roster,
        reconcilers: Roster,
        api: Api,
        leave: Leave,
        ambient: Settings,
        progress: Progress,
        ended: Callable[[RedriveLoop], bool],
    ) -> None:
        """:param ended: asks whether this loop may end, as nothing is left; ``False`` where something has come.

        :param leave: takes a report for writing, and returns at once.
        """
        self._place = place
        self._redrives = redrives
        self._reconcilers = reconcilers
        self._api = api
        self._leave = leave
        self._ambient = ambient
        self._progress = progress
        self._ended = ended
        self._name = f"redrives {place}"
        self._woken = threading.Event()
        self._stopped = False
        self._jobs: dict[str, _Job] = {}
        self._base: Base | None = None
        self._read_at: float | None = None
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)

    @property
    def place(self) -> Place:
        """Whose redrives they are."""
        return self._place

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Let it look at once: a redrive or the reconciler has changed."""
        self._woken.set()

    def stop(self) -> None:
        """Have it end as soon as it can."""
        self._stopped = True
        self._woken.set()

    def join(self, timeout: float) -> bool:
        """Wait for its end; ``False`` where it takes longer than ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._name = self._progress.declare_another(self._name, silent_after=_SILENT_AFTER)
        self._progress.ready(self._name)  # its resources' conditions tell, not the process' readiness
        try:
            while not self._stopped:
                if self._woken.is_set():
                    self._woken.clear()
                    self._hurry()
                todo = unfinished(self._redrives, self._place)
                self._forget({each.key.uid for each in todo})
                if todo:
                    self._next([self._job(each) for each in todo])
                elif self._ended(self):
                    return
                self._beat()
        finally:
            self._close()
            self._progress.retire(self._name)

    def _hurry(self) -> None:
        """Something has changed that may be what somebody waits for."""
        for job in self._jobs.values():
            course = job.course
            if course.failure is not None or course.held is not None or course.phase is Phase.PLANNED:
                job.due = 0.0

    def _job(self, wanted: Wanted) -> _Job:
        job = self._jobs.get(wanted.key.uid)
        if job is None:
            course = Course(
                generation=wanted.generation, request_id=wanted.key.uid, dry=is_dry(wanted), phase=phase_of(wanted)
            )
            job = _Job(wanted, course, Failures(Backoff(initial=1.0, maximum=_BACKOFF_MAX)))
            self._jobs[wanted.key.uid] = job
        job.wanted = wanted
        return job

    def _next(self, jobs: list[_Job]) -> None:
        """Take the turn of whoever is due first, or wait for it."""
        job = min(jobs, key=lambda each: each.due)
        wait = job.due - time.monotonic()
        if wait > 0:
            self._woken.wait(min(wait, _SILENT_AFTER / 2))
            return
        job.due = time.monotonic() + self._turn(job)

    def _turn(self, job: _Job) -> float:
        """One page or batch; returns the seconds until the next turn."""
        try:
            wait = self._step(job)
        except HeldBack as error:
            self._tell(job, replace(job.course, held=error.held, failure=None))
            return _LOOK
        except Refused as error:
            failure = failure_of(error.__cause__ or error)
            self._tell(job, replace(job.course, phase=Phase.REFUSED, failure=failure, held=None))
            return _LOOK
        except Exception as error:  # noqa: BLE001 - tried again
            return self._failed(job, error)
        job.failures.succeeded()
        return wait

    def _failed(self, job: _Job, error: Exception) -> float:
        failure, wait = failure_of(error), job.failures.failed()
        _log.warning(
            "a redrive does not go on",
            exc_info=None if failure.reason.needs_somebody else error,
            extra=fields.of(loop=str(job.wanted.key), reason=failure.reason, seconds=round(wait, 1)),
        )
        self._read_at = None  # the secret may be another one by now
        self._tell(job, replace(job.course, failure=failure, held=None))
        return wait

    def _step(self, job: _Job) -> float:
        if job.course.phase.final:  # its end waits to be written
            self._tell(job, job.course)
            return _LOOK
        base = self._stand()
        kept = redrive.find(base.engine, UUID(job.wanted.key.uid))
        if kept is not None:
            return self._go_on(job, base, kept)
        try:
            request = request_of(job.wanted)
        except SpecInvalid as error:
            raise Refused from error
        if not job.course.dry:
            if base.reconciler.mode is not Mode.REPAIR:
                raise Refused from ObserveOnly(f"the reconciler {self._place.reconciler} only observes")
            with read_connection(base.engine) as connection:
                base.allowed(connection)
        if job.course.plan is None:
            return self._plan(job, base, request)
        return self._begin(job, base, request)

    def _plan(self, job: _Job, base: Base, request: Request) -> float:
        """Look at one more page of what would be done."""
        if job.rehearsal is None:
            job.rehearsal = Rehearsal(base.engine, request.selector, ground_of=base.ground)
        job.rehearsal.step()
        counts, complete = job.rehearsal.counts, job.rehearsal.complete
        if not complete and counts.examined < LOOKED_AT:
            return 0.0
        job.rehearsal = None
        phase = Phase.FINISHED if job.course.dry else Phase.PLANNED
        going = replace(job.course, phase=phase, plan=counts, planned_all=complete, failure=None, held=None)
        self._tell(job, going)
        return _LOOK

    def _begin(self, job: _Job, base: Base, request: Request) -> float:
        """Begin, once the plan can be read: whoever dies in between, nothing is done that nobody was told before."""
        if not is_planned(job.wanted):
            self._tell(job, replace(job.course, failure=None, held=None))
            return _LOOK
        try:
            redrive.begin(base.engine, request)
        except RedriveRefused as error:
            raise Refused from SpecInvalid(str(error))
        return 0.0

    def _go_on(self, job: _Job, base: Base, kept: Kept) -> float:
        """One batch of what was begun; here, by another operator, or before a crash."""
        course = replace(
            job.course, began=kept.created_at, done=kept.counts, finished=kept.finished_at, failure=None, held=None
        )
        if kept.state is State.FINISHED:
            self._tell(job, replace(course, phase=Phase.FINISHED))
            return _LOOK
        job.course = replace(course, phase=Phase.RUNNING)
        if kept.state is State.STOPPED:
            raise Stopped("it was stopped in the database; resume it there")
        if base.reconciler.mode is not Mode.REPAIR:
            raise ObserveOnly(f"the reconciler {self._place.reconciler} only observes")
        rate = per_minute(job.wanted)
        redriver = Redriver(
            engine=base.engine, settings=base.settings, ground_of=base.ground_to_repair, per_minute=rate
        )
        done = redriver.batch(kept.request)
        if done is None:  # it has just ended
            return 0.0
        self._tell(job, replace(job.course, done=done.counts))
        return done.worked * 60.0 / rate

    def _tell(self, job: _Job, course: Course) -> None:
        """Report; numbers alone not each time."""
        job.course = course
        if job.told is not None:
            before, at = job.told
            same = replace(before, done=course.done) == course
            if same and not course.phase.final and time.monotonic() - at < _QUIET:
                return
        job.told = (course, time.monotonic())
        self._leave(job.wanted.key, course)

    def _stand(self) -> Base:
        """The reconciler's database; opened anew where spec or secret differ from those of the last turn."""
        reconciler = self._reconciler()
        known = self._base
        same = known is not None and (known.reconciler.key, known.reconciler.generation) == (
            reconciler.key,
            reconciler.generation,
        )
        fresh = self._read_at is not None and time.monotonic() - self._read_at < _REREAD
        if known is not None and same and fresh:
            return known
        try:
            url = credentials.database(self._api, reconciler)
        except ApiAway:
            if known is None or not same:
                raise
            url = known.url  # the API server's absence stops no redrive, and delays one in a minute at most
        if known is None or not same or known.url != url:
            self._close()
            self._base = known = Base.opened(reconciler, url, ambient=self._ambient)
        fit(known.engine, reconciler.mode)
        self._read_at = time.monotonic()
        return known

    def _reconciler(self) -> Wanted:
        for each in self._reconcilers.all():
            if (each.key.namespace, each.key.name) == (self._place.namespace, self._place.reconciler):
                return each
        raise ReconcilerMissing(f"there is no reconciler {self._place.reconciler} in this namespace")

    def _forget(self, todo: set[str]) -> None:
        """Let go of what has ended; what was deleted on its way is stopped in the database, too."""
        for uid in [each for each in self._jobs if each not in todo]:
            job = self._jobs.pop(uid)
            if self._redrives.latest(uid) is not None or job.course.phase is not Phase.RUNNING or self._base is None:
                continue
            try:
                redrive.halt(self._base.engine, UUID(uid))
            except Exception as error:  # noqa: BLE001 - nobody goes on with it anyway
                _log.warning("a redrive was not stopped", exc_info=error, extra=fields.of(loop=str(job.wanted.key)))

    def _beat(self) -> None:
        self._progress.beat(self._name)

    def _close(self) -> None:
        if self._base is not None:
            self._base.engine.dispose()
            self._base = None
            self._read_at = None
