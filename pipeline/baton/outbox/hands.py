"""Further batches of a lane on their way, while it has more than one session carries.

What one batch waits for (the queue's answer, the disk at its commit) the others use. A hand judges nothing: it stops at
the first batch that was not full or did not go well. The relay goes on meanwhile, meets the same fault, backs off from
it, and calls the hands again once a full batch of its own has gone well.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from baton.outbox.batches import Batches
from baton.outbox.fates import leaves_more

_log = logging.getLogger(__name__)

#: Seconds that a hand with nothing to do keeps its database session.
_KEPT: Final = 60.0


class Hands:
    """A thread and a session for each batch beside the relay's own; none of either before they are called."""

    def __init__(self, sessions: Sequence[Batches], *, size: int, bound: float) -> None:
        """No thread is started, and nothing connected.

        :param size: tickets of a full batch.
        :param bound: seconds that a batch takes at most, for :meth:`close`.
        """
        self._hands = [_Hand(each, size=size) for each in sessions]
        self._bound = bound

    def call(self) -> None:
        """There is a backlog: carry some of it."""
        for each in self._hands:
            each.call()

    def close(self) -> None:
        """Finish the batches that are under way, and give the sessions back."""
        for each in self._hands:
            each.stop()
        for each in self._hands:
            each.join(self._bound)


class _Hand:
    def __init__(self, batches: Batches, *, size: int) -> None:
        self._batches = batches
        self._size = size
        self._called = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def call(self) -> None:
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="relay-hand", daemon=True)
            self._thread.start()
        if not self._stopped.is_set():
            self._called.set()

    def stop(self) -> None:
        self._stopped.set()
        self._called.set()

    def join(self, seconds: float) -> None:
        if self._thread is None:
            return
        self._thread.join(seconds)
        if not self._thread.is_alive():  # else it still has the session, and no second thread may take it
            self._thread = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._called.wait(_KEPT):
                self._carry()
                self._called.clear()  # a call that came meanwhile may be older than what stopped this hand
            else:
                self._batches.close()
        self._batches.close()

    def _carry(self) -> None:
        try:
            while not self._stopped.is_set() and leaves_more(self._batches.run_once(), size=self._size):
                pass
        except Exception as error:  # noqa: BLE001 - the relay meets it too, and says so
            _log.debug("a hand stops: %s", type(error).__name__)
            self._batches.drop()
