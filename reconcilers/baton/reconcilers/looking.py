"""Looking for a run's artifact before anything is locked, where a repair would settle the run."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Engine

from baton.aws.errors import AwsError
from baton.aws.objects import Store
from baton.db.connect import read_connection
from baton.db.rows import Document, read_document
from baton.reconcilers.aspects import Aspect
from baton.registration import parts
from baton.runs import messages
from baton.runs.findings import Expired, Finding, look
from baton.runs.rows import Run, read_run
from baton.runs.sweeper import Move, decide
from baton.settings.agents import Runs
from baton.telemetry import fields, metrics

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """What the store said about one run; it is of no use for any other."""

    run_id: UUID
    finding: Finding


def look_for(engine: Engine, store: Store, document_id: UUID, aspect: Aspect, *, limits: Runs) -> Look | None:
    """Look for the artifact of the aspect's run; ``None`` where nothing may be concluded yet.

    A store that fails is never taken for absence before its patience is over.
    """
    with read_connection(engine) as connection:
        document = read_document(connection, document_id)
        run = None if document is None else _run(connection, document, aspect)
    if run is None or not run.pending:
        return None
    found: Finding | None = None
    failed = False
    try:
        found = look(store, run, max_bytes=limits.artifact_max_bytes)
    except AwsError as error:
        failed = True
        metrics.SWEEP_FAILURES.add()
        _log.warning("an artifact could not be looked for", exc_info=error, extra=fields.of(run=run.run_id))
    if decide(run, found, store_failed=failed, limits=limits) is Move.WAIT:
        return None
    return Look(run.run_id, found or Expired(messages.UNREADABLE_STORE if failed else messages.EXPIRED))


def run_of(connection: Connection, document: Document, aspect: Aspect) -> UUID | None:
    """The run that the aspect's mark names."""
    if aspect.part is None:
        return document.registration_run_id
    row = parts.read_part(connection, document, aspect.part)
    return None if row is None else row.run_id


def _run(connection: Connection, document: Document, aspect: Aspect) -> Run | None:
    run_id = run_of(connection, document, aspect)
    return None if run_id is None else read_run(connection, run_id)
