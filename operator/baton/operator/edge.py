"""kopf, and nothing else of asyncio: it watches, and each event goes to the roster and is done.

No timer, daemon or handler of changes: those add finalizers and annotations, so that deletion hangs while nobody runs,
and a timer ends for good when a status cannot be written. Replicas know each other by the Lease, so peering is off.
Events are never posted by kopf, whose types the API refuses. Kinds and namespaces are not scanned for, which would take
rights on the whole cluster. Its loop beats: a frozen one fails the liveness probe, as any loop of ours does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import kopf

from baton.consumers.backoff import Backoff, Failures
from baton.operator.access import Access
from baton.operator.roster import Roster
from baton.operator.specs import Wanted
from baton.operator.vocabulary import GROUP, VERSION, Plural
from baton.telemetry import fields

_log = logging.getLogger(__name__)

#: Seconds. A watch is closed by the server after this long, and opened again: one that is dead is found out.
_WATCH: Final = 300
_BEAT: Final = 1.0
_BACKOFF_MAX: Final = 20.0
#: Seconds for which a watch that did well was open: the next one that ends begins the waits anew.
_LONG: Final = 60.0
#: Seconds that kopf may take to end before it has the process killed; and those, twice in a row, that it is given.
_EXIT: Final = 10.0
_TASKS_END: Final = 3.0
#: What kopf names the tasks without which a kind's events come to nobody; each is there for as long as the watch.
_LASTING: Final = ("watcher for ", "spawner of ", "cleaner of ")
_IDENTITY: Final = "baton"


class WatchLost(Exception):
    """A task of a watch is gone, and kopf has not noticed: it begins no other."""


class Patient:
    """Waits that never come to an end: kopf gives up when its waits do, and its watch with it."""

    def __iter__(self) -> Iterator[float]:
        """A wait after another, spread a little so that replicas do not come in step."""
        wait = 0.5
        while True:
            yield wait * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret
            wait = min(wait * 2, _BACKOFF_MAX)


class Edge:
    """Watches the resources of one namespace, or of all."""

    def __init__(
        self,
        access: Access,
        rosters: Mapping[Plural, Roster],
        *,
        beat: Callable[[], None],
        cluster_wide: bool = False,
    ) -> None:
        """:param beat: called every second by kopf's event loop.

        :param cluster_wide: watch the resources of every namespace.
        """
        self._access = access
        self._namespaces = () if cluster_wide else (access.namespace,)
        self._rosters = rosters
        self._beat = beat
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None

    def run(self, stop: threading.Event) -> None:
        """Watch until ``stop`` is set. When kopf ends by itself it is started again."""
        failures = Failures(Backoff(initial=1.0, maximum=_BACKOFF_MAX))
        while not stop.is_set():
            began = time.monotonic()
            reason: Exception | None = None
            try:
                self._run(stop)
            except Exception as error:  # noqa: BLE001 - the watch is opened again
                reason = error
            if not stop.is_set():
                if time.monotonic() - began > _LONG:
                    failures.succeeded()
                wait = failures.failed()
                _log.warning("the watch ended", exc_info=reason, extra=fields.of(seconds=round(wait, 1)))
                stop.wait(wait)

    def wake(self) -> None:
        """Have it see at once that it is to stop."""
        loop, ending = self._loop, self._ending
        if loop is not None and ending is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(ending.set)

    def _run(self, stop: threading.Event) -> None:
        """One event loop, from its start to its end; what does not end with it is left behind.

        asyncio's own runner waits without bound for tasks, some of kopf's wait for each other for ever once they are
        cancelled, and for threads that wait for ``stop``: an edge that hangs in its end is not begun again.
        """
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._watch(stop))
        finally:
            left = asyncio.all_tasks(loop)
            for each in left:
                each.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_TASKS_END))
            loop.close()

    async def _watch(self, stop: threading.Event) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        beating = asyncio.create_task(self._keep_beating(stop, self._ending))
        watching = asyncio.create_task(
            kopf.operator(
                registry=self._registry(),
                settings=settings(),
                namespaces=self._namespaces,
                clusterwide=not self._namespaces,
                standalone=True,
                # nobody is told it; without one kopf asks for the account's name, which a container's seldom has
                identity=_IDENTITY,  # type: ignore[arg-type] # a string of a kind that kopf keeps to itself
                stop_flag=self._ending,
            )
        )
        tasks = {beating, watching}
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._ending.set()  # from here on kopf would count the seconds until it kills the process
        for each in left:
            each.cancel()
        if left:
            await asyncio.wait(left, timeout=_TASKS_END)
        for each in done:
            if not each.cancelled():
                each.result()

    async def _keep_beating(self, stop: threading.Event, ending: asyncio.Event) -> None:
        """Beat, and see that each task of a watch is still there.

        :raises WatchLost: one is not.
        """
        most = 0
        while True:
            self._beat()
            lasting = sum(task.get_name().startswith(_LASTING) for task in asyncio.all_tasks())
            if stop.is_set():
                ending.set()
            elif lasting < most:
                raise WatchLost
            most = max(most, lasting)
            await asyncio.sleep(_BEAT)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.ConnectionInfo:
            return self._connection()

        for plural, roster in self._rosters.items():
            self._listen(registry, plural, roster)
        return registry

    def _listen(self, registry: kopf.OperatorRegistry, plural: Plural, roster: Roster) -> None:
        @kopf.on.event(GROUP, VERSION, plural.value, registry=registry)
        async def event(event: Mapping[str, Any], **_: object) -> None:
            self.take(roster, event)

    def take(self, roster: Roster, event: Mapping[str, Any]) -> None:
        """Hand one event to the roster; what cannot be read is logged, and stops nothing."""
        try:
            if event.get("type") == "DELETED":
                roster.drop(event["object"]["metadata"]["uid"])
            else:
                roster.put(Wanted.of(event["object"]))
        except (KeyError, TypeError, ValueError) as error:
            _log.warning("an event made no sense", exc_info=error)

    def _connection(self) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=self._access.server,
            ca_path=self._access.authority_file,
            certificate_path=self._access.certificate_file,
            private_key_path=self._access.key_file,
            token=self._access.token(),
            default_namespace=self._access.namespace,
        )


def settings() -> kopf.OperatorSettings:
    """What kopf is told: all but watching is switched off."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.peering.standalone = True
    made.scanning.disabled = True
    made.networking.error_backoffs = Patient()
    made.networking.request_timeout = 15.0
    made.networking.connect_timeout = 5.0
    made.watching.server_timeout = _WATCH
    made.watching.client_timeout = _WATCH + 30
    made.watching.connect_timeout = 5.0
    made.queueing.exit_timeout = 1.0
    made.process.ultimate_exiting_timeout = _EXIT
    return made
