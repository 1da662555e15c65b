"""The Lease: which replica works.

It saves work, it keeps nothing safe: that is Postgres' business. So a leader goes on while the API server is away, for
nobody could take over either, and gives up only on seeing another holder. A Lease is taken over once it was seen
unchanged for its length by one's own clock; clocks of machines are never compared.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from baton.operator.api import Api, ApiConflict, ApiError, ApiMissing

_log = logging.getLogger(__name__)

#: A leader writes this many times within the Lease's length.
_RENEWALS: Final = 3
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class Election:
    """One replica's side of it; :meth:`step` by step, in one thread."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """:param duration: seconds without a change after which a Lease lapses.

        :param clock: seconds; this process's own.
        """
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration = duration
        self._clock = clock
        self._seen: tuple[str, float] | None = None
        self.leads = False
        self.installation: str | None = None
        """The Lease's uid, which all replicas know and no other installation has; ``None``: not known yet."""

    @property
    def every(self) -> float:
        """Seconds between two steps."""
        return self._duration / _RENEWALS

    def step(self) -> bool:
        """Renew the Lease, take it, or see who has it; returns whether this replica leads now.

        :raises ApiError: the API server did not say; what was so before is so still.
        """
        try:
            lease = self._api.lease(self._namespace, self._name)
        except ApiMissing:
            return self._won(lambda: self._api.create_lease(self._namespace, self._body({}, taken=True)))
        self._know(lease)
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder == self._identity:
            return self._won(lambda: self._replace(lease, taken=False))
        if holder:
            self.leads = False
            if not self._lapsed(str(lease["metadata"]["resourceVersion"])):
                return False
        return self._won(lambda: self._replace(lease, taken=True))

    def release(self) -> None:
        """Let the Lease go, so that nobody has to wait; whatever happens is only logged."""
        if not self.leads:
            return
        self.leads = False
        try:
            lease = self._api.lease(self._namespace, self._name)
            if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                body = self._body(lease, taken=False)
                body["spec"]["holderIdentity"] = ""
                self._api.replace_lease(self._namespace, self._name, body)
        except ApiError as error:
            _log.warning("the lease was not let go; it lapses", exc_info=error)

    def _know(self, lease: Any) -> None:
        self.installation = (lease.get("metadata") or {}).get("uid") or self.installation

    def _won(self, write: Callable[[], Any]) -> bool:
        try:
            self._know(write() or {})
        except ApiConflict:  # somebody wrote it between: the next step sees who
            return self.leads
        if not self.leads:
            _log.info("this replica works from now on")
        self.leads = True
        return True

    def _lapsed(self, version: str) -> bool:
        now = self._clock()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        return now - self._seen[1] >= self._duration

    def _replace(self, lease: Any, *, taken: bool) -> object:
        return self._api.replace_lease(self._namespace, self._name, self._body(lease, taken=taken))

    def _body(self, lease: Any, *, taken: bool) -> dict[str, Any]:
        now = datetime.now(UTC).strftime(_FORMAT)
        old = lease.get("spec") or {}
        spec = {
            **old,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._duration)),
            "renewTime": now,
        }
        if taken:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + 1
        metadata = lease.get("metadata") or {"name": self._name, "namespace": self._namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def keep(
    election: Election, *, stop: threading.Event, beat: Callable[[], None], turned: Callable[[bool], None]
) -> None:
    """Step until ``stop`` is set, then let the Lease go.

    :param turned: called whenever this replica begins or ceases to lead.
    """
    led = False
    while not stop.is_set():
        beat()
        try:
            leads = election.step()
        except ApiError as error:
            _log.warning("the lease could not be looked at", exc_info=error)
            leads = election.leads
        if leads != led:
            led = leads
            turned(leads)
        stop.wait(election.every)
    election.release()
