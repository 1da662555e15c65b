"""Repairing: documents in small batches, locked, judged again, put right, written into the ledger, one transaction each.

1. The artifact of a run that would be settled is looked for; nothing is locked.
2. This minute's repairs are reserved, in a transaction of its own.
3. The documents are locked with ``SKIP LOCKED``: what live work holds is left for the next pass.
4. They are judged again, by the same expression; what turned out right by itself is left.
5. Each repair runs in a savepoint, so that a row that fails is undone alone. Afterwards the documents are judged once
   more: a repair that left its aspect as it was is an error, never a repair.
6. The ledger's rows, the tickets and what was not needed of the reservation commit together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DBAPIError

from baton.aws.objects import Store
from baton.consumers.faults import Blame, blame
from baton.db import crashpoints
from baton.db.connect import prepared
from baton.db.rows import DOCUMENT_COLUMNS, Document, as_document, read_document
from baton.db.tables import documents
from baton.reconcilers import ledger, limits, looking
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, Verdict
from baton.reconcilers.judging import judge, stands
from baton.reconcilers.limits import Reserved
from baton.reconcilers.looking import Look
from baton.reconcilers.planning import Ground, allowance, plan
from baton.reconcilers.results import Effect, Finding, Guard, Planned
from baton.reconcilers.rows import Case, Repaired
from baton.settings.model import Settings
from baton.telemetry import fields
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import span

_log = logging.getLogger(__name__)

#: Long enough for any other short transaction, short enough that a document waits for nobody behind it.
_LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '2s'")


class RepairWithoutEffect(Exception):
    """A repair ran, and its discrepancy holds as before."""


@dataclass(slots=True)
class Done:
    """What became of one batch."""

    plans: list[Planned] = field(default_factory=list)
    """What was not done, and why."""
    effects: list[tuple[str, Effect]] = field(default_factory=list)
    vanished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairer:
    """Repairs findings; shared by the loop and by declared redrives."""

    engine: Engine
    settings: Settings
    store: Store | None
    """``None``: runs are not settled here."""
    requested_by: str
    reason: str | None = None

    def repair(self, findings: Sequence[Finding], *, ground: Ground) -> Done:
        """Repair one batch of findings.

        :raises DBAPIError: the database is away; nothing of the batch was done.
        """
        done = Done()
        looks: dict[tuple[UUID, Aspect], Look] = {}
        rest: list[Finding] = []
        for each in findings:
            if DISCREPANCIES[each.name].looks_in_store:
                found = self._look(each, done)
                if found is None:
                    continue
                looks[each.document_id, each.aspect] = found
            rest.append(each)
        if not rest:
            return done
        reserved = limits.reserve(self.engine, len(rest), config=self.settings.reconcile)
        with self.engine.begin() as connection, prepared(connection):
            connection.execute(_LOCK_TIMEOUT)
            used = self._batch(connection, rest, done, looks=looks, ground=ground, reserved=reserved)
            limits.give_back(connection, reserved, reserved.count - used)
            crashpoints.reach("reconcile.repaired")
        return done

    def _look(self, finding: Finding, done: Done) -> Look | None:
        """What the store says, or ``None`` with the reason noted: one row that cannot be read stops no other."""
        found = None
        try:
            if self.store is not None:
                found = looking.look_for(
                    self.engine, self.store, finding.document_id, finding.aspect, limits=self.settings.runs
                )
        except Exception as error:
            if blame(error) is Blame.DATABASE:
                raise
            _log.warning("a run could not be looked at", exc_info=error, extra=_about(finding))
            done.effects.append((finding.name, Effect.ERROR))
            return None
        if found is None:
            done.plans.append(_held(finding, Guard.STORE))
        return found

    def _batch(
        self,
        connection: Connection,
        findings: Sequence[Finding],
        done: Done,
        *,
        looks: Mapping[tuple[UUID, Aspect], Look],
        ground: Ground,
        reserved: Reserved,
    ) -> int:
        """Repair what of the findings still holds under the lock; returns how many of the reservation were used."""
        locked = _lock(connection, {each.document_id for each in findings})
        done.plans.extend(_held(each, Guard.LOCKED) for each in findings if each.document_id not in locked)
        if not locked:
            return 0
        judged = dict(judge(connection, sorted(locked), ground=ground))
        standing = [each for each in findings if each.document_id in locked and stands(judged, each)]
        done.vanished += sum(each.document_id in locked for each in findings) - len(standing)
        plans = plan(
            standing,
            documents=locked,
            entries=ledger.read_entries(connection, sorted(locked)),
            allowed=allowance(connection, ground=ground, settings=self.settings, left=reserved.count),
            ground=ground,
            settings=self.settings,
        )
        done.plans.extend(each for each in plans if not each.ready)
        batch = _Batch(connection, ground, looks, locked, judged)
        waiting = [each for each in plans if each.ready]
        while waiting:
            turn, waiting = _one_each(waiting)
            self._round(batch, turn)
            if waiting:
                batch.read_again(each.finding.document_id for each in waiting)
                # the repair of another aspect may have put it right, or taken it over
                still = [each for each in waiting if stands(batch.judged, each.finding)]
                batch.vanished += len(waiting) - len(still)
                waiting = still
        done.vanished += batch.vanished
        done.effects += [(each.finding.name, each.effect) for each in batch.made]
        return len(batch.made)

    def _round(self, batch: _Batch, turn: Sequence[Planned]) -> None:
        """Repair one finding a document. Where one of them has no effect all are undone, and made again each by itself."""
        connection = batch.connection
        try:
            with connection.begin_nested():
                made = [each for each in (self._one(batch, planned) for planned in turn) if each is not None]
                judged = judge(connection, sorted(each.document.id for each in made), ground=batch.ground)
                for each in made:
                    _expect_effect(each, batch.judged, judged)
                self._write(connection, made)
        except Exception as error:
            if isinstance(error, DBAPIError) and blame(error) is Blame.DATABASE:
                raise
            if len(turn) > 1:
                for planned in turn:
                    self._round(batch, [planned])
                return
            (planned,) = turn
            made, judged = [_failed(planned, batch.documents[planned.finding.document_id], error)], {}
            self._write(connection, made)
        batch.vanished += len(turn) - len(made)
        batch.made += made
        batch.judged |= judged

    def _one(self, batch: _Batch, planned: Planned) -> _Made | None:
        """Make one repair, undone alone where it fails; ``None``: there was nothing to be done after all."""
        finding = planned.finding
        document = batch.documents[finding.document_id]
        look = batch.looks.get((document.id, finding.aspect))
        if look is not None and looking.run_of(batch.connection, document, finding.aspect) != look.run_id:
            return None
        about = {
            Attribute.FIRM: document.firm_id,
            Attribute.DOCUMENT: document.id,
            Attribute.RULE: finding.name,
        }
        with span(SpanName.RECONCILE_REPAIR, attributes=about) as opened:
            try:
                with batch.connection.begin_nested():
                    repaired = self._carry_out(batch.connection, planned, document, look=look)
            except Exception as error:
                if isinstance(error, DBAPIError) and blame(error) is Blame.DATABASE:
                    raise
                opened.fail(type(error))
                made = _failed(planned, document, error)
            else:
                if repaired is None:
                    return None
                effect = Effect.GAVE_UP if planned.exhausted else Effect.REPAIRED
                made = _Made(finding, document, effect, repaired)
            opened.set(Attribute.OUTCOME, made.effect)
        return made

    def _carry_out(
        self,
        connection: Connection,
        planned: Planned,
        document: Document,
        *,
        look: Look | None,
    ) -> Repaired | None:
        repair = DISCREPANCIES[planned.finding.name].repair
        if repair is None:
            return None
        return repair(
            Case(
                executor=connection,
                document=document,
                aspect=planned.finding.aspect,
                settings=self.settings,
                exhausted=planned.exhausted,
                finding=None if look is None else look.finding,
            )
        )

    def _write(self, connection: Connection, made: Sequence[_Made]) -> None:
        """The rows of the ledger. A failure has one too, so that it counts as an attempt and is not tried again at once."""
        ledger.write(
            connection,
            *(
                ledger.Row(
                    document=each.document,
                    aspect=each.finding.aspect,
                    discrepancy=each.finding.name,
                    action=DISCREPANCIES[each.finding.name].action if each.repaired is None else each.repaired.action,
                    effect=each.effect,
                    requested_by=self.requested_by,
                    reason=self.reason,
                    repaired=each.repaired,
                    detail=each.detail,
                )
                for each in made
            ),
        )
        for each in made:
            if each.repaired is not None:
                extra = fields.of(
                    document=each.document.id,
                    rule=each.finding.name,
                    action=each.repaired.action,
                    outcome=each.effect,
                )
                _log.info("a document was repaired", extra=extra)


@dataclass(frozen=True, slots=True)
class _Made:
    """What became of one repair."""

    finding: Finding
    document: Document
    """As it was before."""
    effect: Effect
    repaired: Repaired | None = None
    """``None``: it failed."""
    detail: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Batch:
    """The locked documents of one transaction, as they have become by now."""

    connection: Connection
    ground: Ground
    looks: Mapping[tuple[UUID, Aspect], Look]
    documents: dict[UUID, Document]
    judged: dict[UUID, Mapping[Aspect, Verdict]]
    made: list[_Made] = field(default_factory=list)
    vanished: int = 0

    def read_again(self, document_ids: Iterable[UUID]) -> None:
        """See what the repairs so far have made of these documents."""
        for document_id in set(document_ids):
            document = read_document(self.connection, document_id)
            if document is not None:
                self.documents[document_id] = document


def _one_each(plans: Sequence[Planned]) -> tuple[list[Planned], list[Planned]]:
    """The first plan of each document, and the others."""
    first: dict[UUID, Planned] = {}
    for each in plans:
        first.setdefault(each.finding.document_id, each)
    return list(first.values()), [each for each in plans if first[each.finding.document_id] is not each]


def _expect_effect(
    made: _Made, before: Mapping[UUID, Mapping[Aspect, Verdict]], after: Mapping[UUID, Mapping[Aspect, Verdict]]
) -> None:
    """A repair may lead to another disagreement, even of the same name, but never leave things as they were."""
    if made.repaired is None:
        return
    was, now = (judged[made.document.id][made.finding.aspect] for judged in (before, after))
    if (now.name, now.due) == (was.name, was.due):
        raise RepairWithoutEffect(made.finding.name)


def _failed(planned: Planned, document: Document, error: Exception) -> _Made:
    finding = planned.finding
    _log.warning("a repair failed", exc_info=error, extra=fields.of(document=document.id, rule=finding.name))
    return _Made(finding, document, Effect.ERROR, detail={"error": type(error).__name__})


def _lock(connection: Connection, document_ids: set[UUID]) -> dict[UUID, Document]:
    rows = connection.execute(
        select(*DOCUMENT_COLUMNS)
        .where(documents.c.id.in_(document_ids))
        .order_by(documents.c.id)
        .with_for_update(key_share=True, skip_locked=True)
    )
    return {found.id: found for found in map(as_document, rows)}


def _about(finding: Finding) -> dict[str, dict[str, fields.Value]]:
    return fields.of(document=finding.document_id, rule=finding.name)


def _held(finding: Finding, guard: Guard) -> Planned:
    return Planned(finding=finding, action=DISCREPANCIES[finding.name].action, guard=guard)
