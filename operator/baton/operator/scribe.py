"""Writing statuses: one thread for all resources, so that no loop ever waits for the API server.

A loop leaves its report on the desk and goes on; one that was overtaken is never written. A status is computed from the
resource as it stands and written onto that version only; where it changed meanwhile both are done anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from baton.consumers.backoff import Backoff, Failures
from baton.operator.api import Api, ApiAway, ApiConflict, ApiError, ApiMissing
from baton.operator.roster import Roster
from baton.operator.specs import Key, Wanted
from baton.operator.statuses import worth_writing
from baton.operator.vocabulary import Plural
from baton.telemetry import fields, metrics

_log = logging.getLogger(__name__)

#: Seconds; the longest wait for an API server that is away.
_BACKOFF_MAX: Final = 15.0
_TRIES: Final = 5
#: Seconds between two signs of life while nothing is to be written.
_IDLE: Final = 5.0


class Report(Protocol):
    """What a loop wants to be read of its resource."""

    def status(self, *, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
        """The whole status as a patch.

        :param before: the status that stands.
        """
        ...


class Scribe:
    """The desk of one kind of resources, and who writes from it."""

    def __init__(
        self,
        api: Api,
        roster: Roster,
        *,
        beat: Callable[[], None],
        plural: Plural = Plural.RECONCILERS,
        tell: Callable[[Plural, Wanted, Mapping[str, Any]], None] = lambda *_: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """:param tell: called once a status is written, with the resource as it stood, and what was written.

        :param now: for times that people read.
        """
        self._api = api
        self._roster = roster
        self._beat = beat
        self._plural = plural
        self._tell = tell
        self._now = now
        self._lock = threading.Lock()
        self._desk: dict[Key, Report] = {}
        self._filled = threading.Event()

    def leave(self, key: Key, report: Report) -> None:
        """Have a report written, in the place of any that was not written yet."""
        with self._lock:
            self._desk[key] = report
        self._filled.set()

    def end(self) -> None:
        """Wake the thread, for it to see that it is to stop."""
        self._filled.set()

    def run(self, stop: threading.Event) -> None:
        """Write until ``stop`` is set, and then once more what lies there."""
        failures = Failures(Backoff(initial=0.5, maximum=_BACKOFF_MAX))
        while not stop.is_set():
            self._beat()
            self._filled.wait(_IDLE)
            self._filled.clear()
            if self.write_all():
                failures.succeeded()
            elif not stop.wait(failures.failed()):
                self._filled.set()
        self.write_all()

    def write_all(self) -> bool:
        """Write what lies on the desk; ``False``: the API server is away, and it still lies there."""
        while (taken := self._take()) is not None:
            key, report = taken
            try:
                self._write(key, report)
            except ApiAway as error:
                _log.warning("a status waits for the API server", exc_info=error, extra=fields.of(loop=str(key)))
                with self._lock:
                    self._desk.setdefault(key, report)
                return False
            except ApiMissing:
                self._roster.drop(key.uid)
            except ApiError as error:
                _log.warning("a status was not written", exc_info=error, extra=fields.of(loop=str(key)))
            except Exception as error:  # noqa: BLE001 - one resource's status is no reason to leave the others' lying
                _log.error("a status could not be made", exc_info=error, extra=fields.of(loop=str(key)))
            self._beat()
        return True

    def _take(self) -> tuple[Key, Report] | None:
        with self._lock:
            return self._desk.popitem() if self._desk else None

    def _write(self, key: Key, report: Report) -> None:
        wanted = self._roster.latest(key.uid)
        for _ in range(_TRIES):
            if wanted is None:
                return
            patch = report.status(before=wanted.status, now=self._now())
            if not worth_writing(patch, before=wanted.status):
                return
            try:
                body = self._api.write_status(
                    self._plural, key.namespace, key.name, status=patch, version=wanted.version
                )
            except ApiConflict:
                wanted = self._read(key)
                continue
            metrics.OPERATOR_STATUS_WRITES.add()
            self._tell(self._plural, wanted, patch)
            self._roster.put(Wanted.of(body))
            return
        _log.warning("a status changes faster than it can be written", extra=fields.of(loop=str(key)))

    def _read(self, key: Key) -> Wanted | None:
        found = Wanted.of(self._api.resource(self._plural, key.namespace, key.name))
        if found.key.uid != key.uid:  # another one of the same name
            self._roster.drop(key.uid)
            return None
        self._roster.put(found)
        return found
