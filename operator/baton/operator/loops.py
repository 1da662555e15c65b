"""One resource's loop: pass after pass in a thread of its own, whatever happens in between.

Nothing it meets ends it but the resource's deletion, the loss of leadership and the end of the process. It waits on one
event, so that an idle loop does nothing at all until it is due or woken.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from baton.consumers.backoff import Backoff, Failures
from baton.operator import credentials
from baton.operator.api import Api, ApiAway
from baton.operator.conditions import Failure, Seen
from baton.operator.credentials import Credentials
from baton.operator.failures import Conflict, failure_of
from baton.operator.roster import Change, Roster
from baton.operator.specs import Key, SpecInvalid, Wanted
from baton.operator.standing import Standing
from baton.operator.statuses import Report
from baton.reconcilers import gauges
from baton.reconcilers.results import PassResult
from baton.settings.model import Settings
from baton.telemetry import fields, instruments, metrics
from baton.telemetry.progress import Progress

_log = logging.getLogger(__name__)

#: Seconds; the longest wait after a failure, and what it may always be: else a loop that hurries would hurry to fail.
_BACKOFF_MAX: Final = 30.0
_BACKOFF_MIN: Final = 5.0
#: Seconds for which credentials are good while passes succeed; after a failure they are read at once.
_REREAD: Final = 60.0
#: Seconds without a beat after which a loop counts as stuck: longer than any statement may take.
_SILENT_AFTER: Final = 120.0
_SPREAD: Final = 0.1

Leave = Callable[[Key, Report], None]


def longest(wanted: Wanted) -> float:
    """The seconds after which what failed is tried again at the latest: work goes on within one interval."""
    try:
        return max(_BACKOFF_MIN, wanted.interval)
    except SpecInvalid:
        return _BACKOFF_MAX


class ResourceLoop:
    """Runs in a thread of its own from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        key: Key,
        *,
        roster: Roster,
        api: Api,
        leave: Leave,
        ambient: Settings,
        progress: Progress,
        installation: str | None = None,
    ) -> None:
        """:param leave: takes a report for writing, and returns at once.

        :param installation: which of all operators this is; ``None``: not known.

        :param ambient: the operator's own settings.
        """
        self._key = key
        self._roster = roster
        self._api = api
        self._leave = leave
        self._ambient = ambient
        self._progress = progress
        self._installation = installation
        self._name = f"loop {key}"
        self._woken = threading.Event()
        self._cut = threading.Event()
        self._stopped = False
        self._standing: Standing | None = None
        self._read_at = 0.0
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._last: PassResult | None = None
        self._ended: datetime | None = None
        self._handled: str | None = None

    def start(self) -> None:
        """Begin. Until the first pass has ended, or its failure is said, a process that begins is not ready."""
        self._name = self._progress.declare_another(self._name, silent_after=_SILENT_AFTER)
        if self._progress.settled():
            self._progress.ready(self._name, "its first pass is under way")
        else:
            self._progress.not_ready(self._name, "its first pass is under way")
        self._thread.start()

    def tell(self, change: Change) -> None:
        """Let it know that its resource has changed."""
        if change in (Change.SPEC, Change.GONE):
            self._cut.set()
        if change is not Change.STATUS:
            self._woken.set()

    def stop(self) -> None:
        """Have it end as soon as it can; :meth:`join` waits for it."""
        self._stopped = True
        self._cut.set()
        self._woken.set()

    def join(self, timeout: float) -> bool:
        """Wait for its end; ``False`` where it takes longer than ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with instruments.of_resource(self._key.namespace, self._key.name):
            self._keep_on()
        instruments.forget(self._key.namespace, self._key.name)

    def _keep_on(self) -> None:
        failures = Failures(Backoff(initial=1.0, maximum=_BACKOFF_MAX))
        try:
            while not self._stopped:
                self._woken.clear()
                self._cut.clear()
                wanted = self._roster.latest(self._key.uid)
                if wanted is None or self._stopped:
                    break
                self._rest(self._guarded(wanted, failures))
            if self._roster.latest(self._key.uid) is None:
                self._let_go()
        finally:
            self._close()
            self._progress.retire(self._name)

    def _guarded(self, wanted: Wanted, failures: Failures) -> float:
        """A turn; what fails in telling a failure ends nothing either."""
        try:
            return self._turn(wanted, failures)
        except Exception as error:  # noqa: BLE001 - a loop that ended would be missed by nobody
            _log.error("a turn failed", exc_info=error, extra=fields.of(loop=str(self._key)))
            return _BACKOFF_MAX

    def _turn(self, wanted: Wanted, failures: Failures) -> float:
        """One pass and its report; returns the seconds until the next."""
        try:
            standing = self._stand(wanted, again=failures.count > 0 or wanted.asked_at != self._handled)
            result = standing.make_pass(self._cut)
            levels = standing.levels(result)
            if not result.finished:
                return 0.0
            self._tell_pass(wanted, result, levels, failure_of(standing.lacks[0]) if standing.lacks else None)
        except Exception as error:  # noqa: BLE001 - the next pass heals
            return self._tell_failure(wanted, error, min(failures.failed(), longest(wanted)))
        failures.succeeded()
        return wanted.interval * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - jitter, no secret

    def _stand(self, wanted: Wanted, *, again: bool) -> Standing:
        """What a pass stands on; made anew where spec or credentials differ from those of the last."""
        known = self._standing
        credentials_ = self._credentials(wanted, again=again)
        if known is not None and known.generation == wanted.generation and known.credentials == credentials_:
            return known
        if known is not None and not known.credentials.same_database(credentials_):
            self._let_go()  # else it would stay ours, and held back, without anybody
        self._close()
        self._standing = Standing(
            wanted,
            credentials_,
            ambient=self._ambient,
            api=self._api,
            installation=self._installation,
            beat=self._beat,
        )
        return self._standing

    def _credentials(self, wanted: Wanted, *, again: bool) -> Credentials:
        known = self._standing
        same = known is not None and known.generation == wanted.generation
        if known is not None and same and not again and time.monotonic() - self._read_at < _REREAD:
            return known.credentials
        try:
            found = credentials.read(self._api, wanted, ambient=self._ambient.aws)
        except ApiAway:
            if known is None or not same:
                raise
            found = known.credentials  # the API server's absence stops no pass, and delays one in a minute at most
        self._read_at = time.monotonic()
        return found

    def _tell_pass(self, wanted: Wanted, result: PassResult, levels: gauges.Levels, failure: Failure | None) -> None:
        ended = None if result.began is None else result.began + timedelta(seconds=result.seconds)
        self._last, self._ended, self._handled = result, ended, wanted.asked_at
        if result.total or result.errors:
            counts = {"found": result.total, "repaired": result.repaired, "failed": result.errors}
            _log.info("a pass ended", extra=fields.of(loop=str(self._key), **counts))
        seen = Seen(
            generation=wanted.generation,
            passed=True,
            failure=failure,
            found={name: count for name, count in result.found.items() if count},
            held=levels.held,
            breaker=levels.breaker,
        )
        self._leave(self._key, Report(seen=seen, result=result, ended=ended, handled=wanted.asked_at))
        self._show(failure)

    def _tell_failure(self, wanted: Wanted, error: Exception, wait: float) -> float:
        failure = failure_of(error)
        _log.warning(
            "a pass was not made",
            exc_info=None if failure.reason.needs_somebody else error,
            extra=fields.of(loop=str(self._key), reason=failure.reason, seconds=round(wait, 1)),
        )
        self._leave(self._key, self._report(wanted, failure))
        self._show(failure)
        if isinstance(error, Conflict):
            return wanted.interval
        return wait

    def _show(self, failure: Failure | None) -> None:
        """In metrics, and of a process that begins in its readiness: one that fails for a reason has begun, too."""
        metrics.OPERATOR_READY.set(int(failure is None))
        metrics.OPERATOR_STALLED.set(int(failure is not None and failure.reason.needs_somebody))
        self._progress.ready(self._name, "passes" if failure is None else f"does not pass: {failure.reason}")

    def _report(self, wanted: Wanted, failure: Failure) -> Report:
        """What is known still, and what failed. Levels are not: they are the database's."""
        found = None if self._last is None else {name: count for name, count in self._last.found.items() if count}
        seen = Seen(generation=wanted.generation, passed=self._last is not None, failure=failure, found=found)
        return Report(seen=seen, result=self._last, ended=self._ended, handled=self._handled)

    def _rest(self, wait: float) -> None:
        until = time.monotonic() + wait
        while (left := until - time.monotonic()) > 0 and not self._woken.wait(min(left, _SILENT_AFTER / 2)):
            self._beat()
        self._beat()

    def _beat(self) -> None:
        self._progress.beat(self._name)

    def _let_go(self) -> None:
        if self._standing is None:
            return
        try:
            self._standing.let_go()
        except Exception as error:  # noqa: BLE001 - ownership lapses by itself
            _log.warning("the database was not let go", exc_info=error, extra=fields.of(loop=str(self._key)))

    def _close(self) -> None:
        if self._standing is not None:
            self._standing.close()
            self._standing = None
