"""The results queue: the store says that an artifact was written.

A message is a hint and nothing more. It leads to a run by its key; whatever it says besides is not believed, and a hint
that never comes costs only time, because the sweeper looks by itself.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import Engine

from baton.aws.errors import AwsError
from baton.aws.notifications import NotificationKind, ObjectCreated, parse
from baton.aws.objects import Store
from baton.aws.receiving import Message
from baton.consumers.verdicts import Ack, Retry, Verdict
from baton.db.connect import read_connection
from baton.runs.findings import look
from baton.runs.rows import read_run
from baton.runs.settling import settle_now, tell_late
from baton.settings.agents import Runs
from baton.telemetry import fields
from baton.telemetry.labels import Settler

_log = logging.getLogger(__name__)

_KEY: Final = re.compile(r"agent-runs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/artifact\.json", re.ASCII)
_STORE_AWAY: Final = timedelta(seconds=15)


class Results:
    """Settles runs whose artifacts were announced; shared between threads."""

    def __init__(self, engine: Engine, store: Store, *, limits: Runs) -> None:
        self._engine = engine
        self._store = store
        self._limits = limits

    def handle(self, message: Message) -> Verdict:
        """Settle every run that the message leads to; the message comes again only where the store was away."""
        notification = parse(message.body)
        if notification.kind is NotificationKind.UNREADABLE:
            _log.warning("a notification could not be read", extra=fields.of(message=message.message_id))
            return Ack()
        for created in notification.objects:
            try:
                self._settle(created)
            except AwsError as error:
                _log.warning("an artifact could not be fetched", exc_info=error)
                return Retry(_STORE_AWAY)
        return Ack()

    def _settle(self, created: ObjectCreated) -> None:
        run_id = run_of(created.key)
        if run_id is None or created.bucket != self._store.name:
            _log.info("a notification was none of ours")
            return
        with read_connection(self._engine) as connection:
            run = read_run(connection, run_id)
        if run is None or run.result_key != created.key:
            _log.warning("an artifact belongs to no run", extra=fields.of(run=run_id))
            return
        if not run.pending:
            tell_late(run)
            return
        finding = look(self._store, run, max_bytes=self._limits.artifact_max_bytes)
        if finding is None:
            _log.warning("an announced artifact is not there", extra=fields.of(run=run_id))
            return
        settle_now(self._engine, run, finding, settler=Settler.RESULTS)


def run_of(key: str) -> UUID | None:
    """The run whose artifact an object is, by its key; ``None`` for any other object."""
    match = _KEY.fullmatch(key)
    return None if match is None else UUID(match[1])
