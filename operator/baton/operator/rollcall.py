"""The roll-call: all resources are listed now and then, so that nothing depends on an event that never came.

Redrives whose time is over are deleted on the way. It is the only thing that the operator ever writes but statuses, its
Lease and events; a resource that somebody changed since it was read stays.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from baton.operator.api import Api, ApiConflict, ApiError, ApiMissing
from baton.operator.redrives import expired, phase_of
from baton.operator.roster import Roster
from baton.operator.specs import Wanted
from baton.operator.vocabulary import Phase, Plural
from baton.telemetry import fields, metrics

_log = logging.getLogger(__name__)


class RollCall:
    """Over all kinds."""

    def __init__(
        self,
        api: Api,
        rosters: Mapping[Plural, Roster],
        *,
        namespace: str | None,
        leads: Callable[[], bool],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """:param namespace: ``None``: all of them.

        :param leads: whether this replica works; only then is anything deleted.

        :param now: what a redrive's end is compared with. A clock that is wrong deletes a record early; the ledger has it.
        """
        self._api = api
        self._rosters = rosters
        self._namespace = namespace
        self._leads = leads
        self._now = now

    def make(self) -> None:
        """List every kind, and delete what was kept for long enough.

        :raises ApiError: a kind could not be listed.
        """
        for plural, roster in self._rosters.items():
            known = {wanted.key.uid: wanted.version for wanted in roster.all()}
            roster.recount(map(Wanted.of, self._api.resources(plural, self._namespace)), known=known)
        phases = Counter(map(phase_of, self._rosters[Plural.REDRIVES].all()))
        for phase in Phase:
            metrics.OPERATOR_REDRIVES.set(phases[phase], state=phase)
        if self._leads():
            self._tidy()

    def _tidy(self) -> None:
        redrives = self._rosters[Plural.REDRIVES]
        for wanted in redrives.all():
            if not expired(wanted, now=self._now()):
                continue
            key = wanted.key
            try:
                self._api.delete(Plural.REDRIVES, key.namespace, key.name, uid=key.uid, version=wanted.version)
            except (ApiConflict, ApiMissing):
                continue  # the next list shows what became of it
            except ApiError as error:
                _log.warning("a finished redrive was not deleted", exc_info=error, extra=fields.of(loop=str(key)))
                continue
            redrives.drop(key.uid)
            _log.info("a finished redrive was deleted, as it asked to be", extra=fields.of(loop=str(key)))
