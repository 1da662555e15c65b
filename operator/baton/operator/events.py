"""Events: what changed about a resource, for people who look at it with kubectl. Never kept, and never relied upon.

One is posted for a transition that a status was written for, so that a restart repeats none: what stands in the status is
no transition. The same of one resource is said once within a while however often it comes and goes, and of all resources
no more than so many a second; what is too much is dropped. A thread of its own posts them, so that no status waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import uuid4

from baton.operator.api import Api, ApiError
from baton.operator.specs import Key, Wanted
from baton.operator.vocabulary import GROUP, KINDS, VERSION, ConditionType, Plural, Reason, Status
from baton.telemetry import fields

_log = logging.getLogger(__name__)

#: Seconds within which the same is not said again of one resource.
QUIET: Final = 600.0
#: Events that may be posted at once, and those a second after that.
BURST: Final = 50
_RATE: Final = 2.0
#: Events that wait; of more the oldest are dropped.
_WAITING: Final = 500
_IDLE: Final = 5.0
_LONGEST: Final = 1024
_NAME: Final = 200
_INSTANCE: Final = 128

_SILENT: Final = frozenset({Reason.FIRST_PASS, Reason.QUEUED})
_PLAIN: Final = frozenset(
    {
        Reason.IN_ORDER,
        Reason.RUNNING,
        Reason.REHEARSED,
        Reason.FINISHED,
        Reason.SUSPENDED,
        Reason.MAINTENANCE_WINDOW,
        Reason.NOT_OWNED,
    }
)


class Kind(StrEnum):
    """The only two that the API server knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Note:
    """One event."""

    kind: Kind
    reason: str
    message: str


def notes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Iterator[Note]:
    """What is worth an event between two statuses; pure."""
    stood, stands = _conditions(before or {}), _conditions(after)
    ready, was = stands.get(ConditionType.READY), stood.get(ConditionType.READY, ("", "", ""))
    if ready is not None and ready[:2] != was[:2] and ready[1] not in _SILENT:
        yield Note(Kind.NORMAL if ready[1] in _PLAIN else Kind.WARNING, ready[1], ready[2])
    for kind, word in ((ConditionType.SUSPENDED, ""), (ConditionType.BREAKER_OPEN, "Breaker")):
        (status, reason, message), old = stands.get(kind, ("", "", "")), stood.get(kind, ("", "", ""))[0]
        opened = status == Status.TRUE and old != Status.TRUE
        if opened or (status == Status.FALSE and old == Status.TRUE):
            loud = opened and kind is ConditionType.BREAKER_OPEN
            yield Note(Kind.WARNING if loud else Kind.NORMAL, f"{word}{reason}", message)


def _conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"]: (each["status"], each["reason"], each.get("message", ""))
        for each in status.get("conditions") or ()
    }


class Herald:
    """What is to be said, and who says it."""

    def __init__(
        self, api: Api, *, identity: str, beat: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """:param identity: which replica speaks."""
        self._api = api
        self._identity = identity[:_INSTANCE]
        self._beat = beat
        self._clock = clock
        self._lock = threading.Lock()
        self._filled = threading.Event()
        self._waiting: deque[tuple[Plural, Wanted, Note]] = deque(maxlen=_WAITING)
        self._said: dict[tuple[str, str], float] = {}
        self._left = float(BURST)
        self._counted_at = clock()

    def tell(self, plural: Plural, before: Wanted, after: Mapping[str, Any]) -> None:
        """Take that a status was written; returns at once."""
        now = self._clock()
        with self._lock:
            self._said = {each: at for each, at in self._said.items() if now - at < QUIET}
            for note in notes(before.status, after):
                known = (before.key.uid, note.reason)
                if known not in self._said:
                    self._said[known] = now
                    self._waiting.append((plural, before, note))
                    self._filled.set()

    def end(self) -> None:
        """Wake the thread, for it to see that it is to stop."""
        self._filled.set()

    def run(self, stop: threading.Event) -> None:
        """Post until ``stop`` is set."""
        while not stop.is_set():
            self._beat()
            self._filled.wait(_IDLE)
            self._filled.clear()
            while not stop.is_set() and (taken := self._take()) is not None:
                self._post(*taken)
                stop.wait(self._pace())
                self._beat()

    def _take(self) -> tuple[Plural, Wanted, Note] | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _pace(self) -> float:
        """Seconds to wait before the next one."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._counted_at) * _RATE) - 1
        self._counted_at = now
        return max(0.0, -self._left / _RATE)

    def _post(self, plural: Plural, wanted: Wanted, note: Note) -> None:
        try:
            self._api.create_event(wanted.key.namespace, self._body(plural, wanted, note))
        except ApiError as error:  # an event is not worth a second try
            _log.info("an event was not posted", exc_info=error, extra=fields.of(loop=str(wanted.key)))

    def _body(self, plural: Plural, wanted: Wanted, note: Note) -> dict[str, Any]:
        key: Key = wanted.key
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{key.name[:_NAME]}.{uuid4().hex[:16]}", "namespace": key.namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": f"{GROUP}/operator",
            "reportingInstance": self._identity,
            "action": "Reconcile" if plural is Plural.RECONCILERS else "Redrive",
            "type": note.kind.value,
            "reason": note.reason,
            "note": note.message[:_LONGEST],
            "regarding": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KINDS[plural],
                "namespace": key.namespace,
                "name": key.name,
                "uid": key.uid,
                "resourceVersion": wanted.version,
            },
        }
