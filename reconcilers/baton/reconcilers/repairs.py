"""Repairing: documents in small batches, locked, judged again, put right, written into the ledger, one transaction each.

1. The artifact of a run that would be settled is looked for; nothing is locked.
2. This minute's repairs are reserved, in a transaction of its own.
3. The documents are locked with ``SKIP LOCKED``: what live work holds is left for the next pass.
4. They are judged again, by the same expression; what turned out right by itself is left.
5. Each repair runs in a savepoint, so that a row that fails is undone alone. Afterwards the aspect is judged once more: a
   repair that left it as it was is an error, never a repair.
6. Its ledger row, its tickets and what was not needed of the reservation commit together.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DBAPIError

from baton.aws.objects import Store
from baton.consumers.faults import Blame, blame
from baton.db import crashpoints
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
from baton.reconcilers.rows import Case, Discrepancy, Repaired
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
        with self.engine.begin() as connection:
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
        used = 0
        touched: set[UUID] = set()
        for each in (each for each in plans if each.ready):
            document = locked[each.finding.document_id]
            if document.id in touched:
                judged |= judge(connection, [document.id], ground=ground)
                if not stands(judged, each.finding):
                    done.vanished += 1  # the repair of another aspect put it right, or took it over
                    continue
            verdict = judged[document.id][each.finding.aspect]
            look = looks.get((document.id, each.finding.aspect))
            effect = self._one(connection, each, document, look=look, verdict=verdict, ground=ground)
            if effect is None:
                done.vanished += 1
                continue
            used += 1
            done.effects.append((each.finding.name, effect))
            touched.add(document.id)
            again = read_document(connection, document.id)
            if again is not None:
                locked[document.id] = again
        return used

    def _one(
        self,
        connection: Connection,
        planned: Planned,
        document: Document,
        *,
        look: Look | None,
        verdict: Verdict,
        ground: Ground,
    ) -> Effect | None:
        finding = planned.finding
        discrepancy = DISCREPANCIES[finding.name]
        if look is not None and looking.run_of(connection, document, finding.aspect) != look.run_id:
            return None
        about = {
            Attribute.FIRM: document.firm_id,
            Attribute.DOCUMENT: document.id,
            Attribute.RULE: finding.name,
        }
        with span(SpanName.RECONCILE_REPAIR, attributes=about) as opened:
            try:
                with connection.begin_nested():
                    repaired = self._carry_out(connection, planned, document, look=look, discrepancy=discrepancy)
                    if repaired is None:
                        return None
                    self._expect_effect(connection, finding, verdict, ground=ground)
                    effect = Effect.GAVE_UP if planned.exhausted else Effect.REPAIRED
                    self._write(connection, document, finding, effect=effect, repaired=repaired)
            except Exception as error:
                if isinstance(error, DBAPIError) and blame(error) is Blame.DATABASE:
                    raise
                opened.fail(type(error))
                self._failed(connection, document, finding, error)
                effect = Effect.ERROR
            opened.set(Attribute.OUTCOME, effect)
        return effect

    def _expect_effect(self, connection: Connection, finding: Finding, before: Verdict, *, ground: Ground) -> None:
        """A repair may lead to another disagreement, even of the same name, but never leave things as they were."""
        judged = judge(connection, [finding.document_id], ground=ground, aspects=[finding.aspect])
        after = judged[finding.document_id][finding.aspect]
        if (after.name, after.due) == (before.name, before.due):
            raise RepairWithoutEffect(finding.name)

    def _carry_out(
        self,
        connection: Connection,
        planned: Planned,
        document: Document,
        *,
        look: Look | None,
        discrepancy: Discrepancy,
    ) -> Repaired | None:
        if discrepancy.repair is None:
            return None
        return discrepancy.repair(
            Case(
                executor=connection,
                document=document,
                aspect=planned.finding.aspect,
                settings=self.settings,
                exhausted=planned.exhausted,
                finding=None if look is None else look.finding,
            )
        )

    def _write(
        self, connection: Connection, document: Document, finding: Finding, *, effect: Effect, repaired: Repaired
    ) -> None:
        ledger.write(
            connection,
            document,
            finding.aspect,
            discrepancy=finding.name,
            action=repaired.action,
            effect=effect,
            requested_by=self.requested_by,
            reason=self.reason,
            ticket_id=repaired.ticket_id,
            run_id=repaired.run_id,
        )
        extra = fields.of(document=document.id, rule=finding.name, action=repaired.action, outcome=effect)
        _log.info("a document was repaired", extra=extra)

    def _failed(self, connection: Connection, document: Document, finding: Finding, error: Exception) -> None:
        """A failure is undone alone; the ledger has it, so that it counts as an attempt and is not tried again at once."""
        _log.warning("a repair failed", exc_info=error, extra=fields.of(document=document.id, rule=finding.name))
        ledger.write(
            connection,
            document,
            finding.aspect,
            discrepancy=finding.name,
            action=DISCREPANCIES[finding.name].action,
            effect=Effect.ERROR,
            requested_by=self.requested_by,
            reason=self.reason,
            detail={"error": type(error).__name__},
        )


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
