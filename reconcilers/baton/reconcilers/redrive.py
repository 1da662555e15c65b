"""Redriving what somebody chose, with a reason: in small transactions, at a rate, resumable, and never twice.

1. The request is written down before anything is done: who, why, what. Its id is what makes it one request.
2. A batch is one transaction: the request's row is locked, so that of two that carry it out one waits; the next page of
   documents is read from its cursor; each document is locked, judged, and redriven through the services, in a savepoint
   of its own; its ledger row names request, reason and person; the cursor moves in the same transaction.
3. Between batches it waits as the rate asks.

Whatever interrupts it, the cursor stands where the last whole batch ended. An aspect that the request has redriven
before is left alone even if it comes by again, by the ledger.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from baton.consumers.faults import Blame, blame
from baton.db.connect import read_connection
from baton.db.rows import Document, lock_document, read_document
from baton.db.tables import redrive, registration_repair
from baton.reconcilers import deadletters, ledger
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.choosing import Choice, carry_out, choose
from baton.reconcilers.classification import Verdict
from baton.reconcilers.judging import judge
from baton.reconcilers.planning import Ground
from baton.reconcilers.results import Effect
from baton.reconcilers.rows import Case, Repaired
from baton.reconcilers.selection import Selector, page
from baton.reconcilers.tallies import ABSENT, ACTS, BUSY, FAILED, OTHERS, Counts
from baton.settings.model import Settings
from baton.telemetry import fields

_log = logging.getLogger(__name__)

#: What the ledger calls it where nothing disagreed: a failure that a person wants tried again.
BY_HAND: Final = "redrive"
#: Documents locked at once.
BATCH: Final = 20
_LOCK_TIMEOUT: Final = text("SET LOCAL lock_timeout = '2s'")


class RedriveRefused(ValueError):
    """The request cannot be carried out; the message says why."""


class State(StrEnum):
    """How far a request is."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for, by whom, and why."""

    id: UUID
    selector: Selector
    reason: str
    requested_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A request, and how far it is."""

    request: Request
    state: State
    counts: Counts
    created_at: datetime
    finished_at: datetime | None


Grounds = Callable[[Connection], Ground]


def begin(engine: Engine, request: Request) -> Progress:
    """Write the request down, or find it again by its id.

    :raises SelectorRefused: nothing was named, or a name is none.
    :raises RedriveRefused: no reason, or the id is that of another request.
    """
    request.selector.checked()
    if not request.reason.strip() or len(request.reason) > 1000:
        raise RedriveRefused("a redrive has a reason, of at most 1000 characters")
    with engine.begin() as connection:
        connection.execute(
            insert(redrive)
            .values(
                id=request.id,
                requested_by=request.requested_by,
                reason=request.reason,
                selector=request.selector.as_json(),
            )
            .on_conflict_do_nothing(index_elements=["id"])
        )
        found = _read(connection, request.id)
    if found is None or (found.request.selector, found.request.reason) != (request.selector, request.reason):
        raise RedriveRefused(f"{request.id} is another request: its documents or its reason differ")
    return found


def find(engine: Engine, request_id: UUID) -> Progress | None:
    """How far a request is; ``None`` where there is none."""
    with read_connection(engine) as connection:
        return _read(connection, request_id)


def halt(engine: Engine, request_id: UUID) -> None:
    """Have nobody go on with a request, until it is resumed."""
    with engine.begin() as connection:
        connection.execute(
            update(redrive)
            .where(redrive.c.id == request_id, redrive.c.state == State.RUNNING.value)
            .values(state=State.STOPPED.value, finished_at=func.app.clock())
        )


def resume(engine: Engine, request_id: UUID) -> Progress:
    """The request that was begun before; one that was stopped runs again.

    :raises RedriveRefused: there is none.
    :raises SelectorRefused: what is kept of it makes no sense.
    """
    with engine.begin() as connection:
        connection.execute(
            update(redrive)
            .where(redrive.c.id == request_id, redrive.c.state == State.STOPPED.value)
            .values(state=State.RUNNING.value, finished_at=None)
        )
        found = _read(connection, request_id)
    if found is None:
        raise RedriveRefused(f"there is no redrive {request_id}")
    found.request.selector.checked()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriver:
    """Carries a request out."""

    engine: Engine
    """Of the reconciler's role."""
    settings: Settings
    ground_of: Grounds
    per_minute: float = 600.0
    """Documents a minute."""

    def run(self, request: Request, *, stop: threading.Event, tell: Callable[[Counts], object]) -> Progress:
        """Batch after batch until it is finished or ``stop`` is set; it may be resumed later.

        :param tell: called after each batch.
        """
        while not stop.is_set():
            done = self.batch(request)
            if done is None:
                break
            tell(done.counts)
            stop.wait(done.worked * 60.0 / self.per_minute)
        with read_connection(self.engine) as connection:
            found = _read(connection, request.id)
        if found is None:
            raise RedriveRefused(f"there is no redrive {request.id}")
        return found

    def batch(self, request: Request) -> Batch | None:
        """One batch, in one transaction; ``None`` where the request is not running any more."""
        with self.engine.begin() as connection:
            row = connection.execute(
                select(redrive.c.state, redrive.c.cursor, redrive.c.counts)
                .where(redrive.c.id == request.id)
                .with_for_update(key_share=True)
            ).one_or_none()
            if row is None or row.state != State.RUNNING.value:
                return None
            connection.execute(_LOCK_TIMEOUT)
            counts = Counts.from_json(row.counts)
            ground = self.ground_of(connection)
            found = page(connection, request.selector, after=row.cursor, size=BATCH, ground=ground)
            counts.examined += found.examined
            if found.absent:
                counts.note(OTHERS, ABSENT, found.absent)
            worked = sum(
                self._document(connection, each, request, counts=counts, ground=ground) for each in found.document_ids
            )
            values: dict[str, Any] = {"cursor": found.after, "counts": counts.as_json()}
            if found.after is None:
                values |= {"state": State.FINISHED.value, "finished_at": func.app.clock()}
            connection.execute(update(redrive).where(redrive.c.id == request.id).values(values))
        return Batch(counts, worked)

    def _document(
        self, connection: Connection, document_id: UUID, request: Request, *, counts: Counts, ground: Ground
    ) -> bool:
        """Redrive whatever of the document is meant; returns whether anything was written."""
        try:
            with connection.begin_nested():
                document = lock_document(connection, document_id)
                if document is None or not document.live:
                    return False
                noted = list(self._aspects(connection, document, request, ground=ground))
        except Exception as error:
            if blame(error) is Blame.DATABASE and not _is_lock(error):
                raise
            why = BUSY if _is_lock(error) else FAILED
            _log.warning("a document was not redriven", exc_info=error, extra=fields.of(document=document_id))
            counts.note(self._passed_over(connection, document_id, request, ground=ground, why=why), why)
            return False
        for what in noted:
            counts.note(document.firm_id, what)
        return any(what in ACTS for what in noted)

    def _passed_over(
        self, connection: Connection, document_id: UUID, request: Request, *, ground: Ground, why: str
    ) -> UUID | str:
        """Write into the ledger what could not be done of a document that is busy or failed; returns its firm.

        Read without the lock that could not be had: what it says is what was seen, and nothing depends on it. Where that
        fails, too, the document stands in the log alone.
        """
        try:
            with connection.begin_nested():
                document = read_document(connection, document_id)
                if document is None:
                    return OTHERS
                for aspect, verdict in judge(connection, [document.id], ground=ground).get(document.id, {}).items():
                    named = request.selector.names(document.id)
                    if choose(aspect, verdict, request.selector, named=named) is not Choice.NOTHING:
                        _enter(connection, document, aspect, verdict, request=request, action=why)
        except Exception as error:
            if blame(error) is Blame.DATABASE and not _is_lock(error):
                raise
            _log.warning("a document is missing in the ledger", exc_info=error, extra=fields.of(document=document_id))
            return OTHERS
        return document.firm_id

    def _aspects(
        self, connection: Connection, document: Document, request: Request, *, ground: Ground
    ) -> Iterator[str]:
        done = _done_before(connection, document.id, request.id)
        verdicts = judge(connection, [document.id], ground=ground).get(document.id, {})
        acted, chosen = False, bool(done)
        for aspect, before in verdicts.items():
            if aspect.value in done:
                continue
            verdict, found = before, document
            if acted:  # another aspect's redrive may have taken this one with it
                verdict = judge(connection, [document.id], ground=ground, aspects=[aspect])[document.id][aspect]
                found = read_document(connection, document.id) or document
            choice = choose(aspect, verdict, request.selector, named=request.selector.names(document.id))
            if choice is Choice.NOTHING:
                continue
            chosen = True
            if choice.acts:
                if not self._act(connection, found, aspect, verdict, choice=choice, request=request):
                    continue
                acted = True
            else:
                # whoever asked for it looks in the ledger for what was left alone, and why
                _enter(connection, found, aspect, verdict, request=request, action=choice.value)
            yield choice.value
        if not chosen and request.selector.names(document.id):
            for aspect, verdict in islice(verdicts.items(), 1):
                _enter(connection, document, aspect, verdict, request=request, action=Choice.NOTHING.value)
                yield Choice.NOTHING.value

    def _act(
        self,
        connection: Connection,
        document: Document,
        aspect: Aspect,
        verdict: Verdict,
        *,
        choice: Choice,
        request: Request,
    ) -> bool:
        case = Case(executor=connection, document=document, aspect=aspect, settings=self.settings)
        repaired = carry_out(choice, case, verdict, actor=request.requested_by)
        if repaired is None:
            return False
        _enter(connection, document, aspect, verdict, request=request, action=repaired.action, repaired=repaired)
        deadletters.settle_closed(connection, document.id, reason=request.reason)
        return True


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: the counts so far, and how many documents it worked on."""

    counts: Counts
    worked: int


def _enter(
    connection: Connection,
    document: Document,
    aspect: Aspect,
    verdict: Verdict,
    *,
    request: Request,
    action: str,
    repaired: Repaired | None = None,
) -> None:
    found = verdict.discrepancy or verdict.settling
    ledger.write(
        connection,
        ledger.Row(
            document=document,
            aspect=aspect,
            # under its own name it would count as one of the attempts after which a discrepancy fails visibly
            discrepancy=BY_HAND,
            action=action,
            effect=_effect(action, repaired),
            requested_by=request.requested_by,
            reason=request.reason,
            repaired=repaired,
            detail={"redrive": str(request.id), "found": verdict.name if found is None else found.name},
        ),
    )


def _effect(action: str, repaired: Repaired | None) -> Effect:
    if repaired is not None:
        return Effect.REPAIRED
    return Effect.ERROR if action == FAILED else Effect.LEFT


def _read(connection: Connection, request_id: UUID) -> Progress | None:
    row = connection.execute(select(redrive).where(redrive.c.id == request_id)).one_or_none()
    if row is None:
        return None
    return Progress(
        request=Request(
            id=row.id,
            selector=Selector.from_json(row.selector),
            reason=row.reason,
            requested_by=row.requested_by,
        ),
        state=State(row.state),
        counts=Counts.from_json(row.counts),
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def _done_before(connection: Connection, document_id: UUID, request_id: UUID) -> frozenset[str]:
    """Aspects that the request has redriven or left already, for whatever but being busy; by the index on document."""
    r = registration_repair.c
    rows = connection.scalars(
        select(r.aspect).where(
            r.document_id == document_id,
            r.detail["redrive"].astext == str(request_id),
            r.action.not_in((BUSY, FAILED)),
        )
    )
    return frozenset(rows)


def _is_lock(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == "55P03"
