"""What repairs do, each as one call through the services that the pipeline itself uses.

All of them work on a case: its document is locked. Locks are taken in the pipeline's order: document, part, run, ticket.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import and_, select

from baton.db.states import EventType, FailureKind, Outcome, Part, PartState, Purpose, RegistrationStatus
from baton.db.tables import agent_run, outbox
from baton.documents import processing
from baton.outbox.keys import subject_of
from baton.outbox.life import close_document, close_open
from baton.outbox.tickets import Ticket, newest
from baton.reconcilers import messages
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.rows import Action, Case, Repaired
from baton.registration import parts, service
from baton.registration.parts import PartRow
from baton.runs import settling
from baton.runs.abandoning import abandon
from baton.runs.rows import RUN_COLUMNS, Run, as_run, read_run
from baton.runs.targets import PartTarget, RegistrationTarget, Target

_AT_ONCE: Final = timedelta(0)


def ask_again(case: Case) -> Repaired | None:
    """The next generation of the aspect's request, at once."""
    if case.aspect is Aspect.INGEST:
        return Repaired(action=Action.REDROVE, ticket_id=processing.ask_again(case.executor, case.document).id)
    if case.aspect is Aspect.REGISTRATION:
        ticket = service.postpone(case.executor, case.document, wait=_AT_ONCE)
        return Repaired(action=Action.REDROVE, ticket_id=ticket.id)
    row = lock_part(case)
    if row is None or row.state is not PartState.REQUESTED:
        return None
    served = parts.newest_ticket(case.executor, case.document, row.part)
    ticket = parts.postpone(case.executor, case.document, row, wait=_AT_ONCE, ticket=served)
    return Repaired(action=Action.REDROVE, ticket_id=ticket.id)


def adopt_ticket(case: Case) -> Repaired | None:
    """The mark of the request that stands already."""
    ticket = newest_request(case)
    if ticket is None:
        return None
    if case.aspect is Aspect.INGEST:
        processing.adopt_ticket(case.executor, case.document, ticket.id)
    elif case.aspect is Aspect.REGISTRATION:
        service.adopt_ticket(case.executor, case.document, ticket.id)
    else:
        row = lock_part(case)
        if row is None or row.state is not PartState.REQUESTED:
            return None
        parts.adopt_ticket(case.executor, row, ticket.id)
    return Repaired(action=Action.ADOPTED, ticket_id=ticket.id)


def requeue(case: Case) -> Repaired | None:
    """Back to asked for, with the request's next generation: the run that was waited for is none."""
    if case.aspect is Aspect.REGISTRATION:
        ticket = service.requeue(case.executor, case.document, wait=_AT_ONCE)
        _close_letters(case, outcome=Outcome.REPLACED)
        return Repaired(action=Action.REQUEUED, ticket_id=ticket.id)
    row = lock_part(case)
    if row is None or row.state is not PartState.RUNNING:
        return None
    served = parts.newest_ticket(case.executor, case.document, row.part)
    ticket = parts.requeue(case.executor, case.document, row, wait=_AT_ONCE, ticket=served)
    _close_letters(case, outcome=Outcome.REPLACED)
    return Repaired(action=Action.REQUEUED, ticket_id=ticket.id)


def adopt_run(case: Case, run_id: UUID) -> Repaired | None:
    """The mark of the run that stands already."""
    if case.aspect is Aspect.REGISTRATION:
        service.adopt_run(case.executor, case.document, run_id)
    else:
        row = lock_part(case)
        if row is None or row.state is not PartState.RUNNING:
            return None
        parts.adopt_run(case.executor, row, run_id)
    return Repaired(action=Action.ADOPTED, run_id=run_id)


def announce(case: Case) -> Repaired | None:
    """The next generation of the ticket that announces the run's result."""
    run_id = winning_run(case)
    if run_id is None:
        return None
    ticket = settling.announce(case.executor, run_id)
    return None if ticket is None else Repaired(action=Action.REDROVE, ticket_id=ticket.id, run_id=run_id)


def adopt_letter(case: Case) -> Repaired | None:
    """The mark of the announcement that stands already."""
    run_id = winning_run(case)
    if run_id is None:
        return None
    ticket = settling.adopt_ticket(case.executor, run_id)
    return None if ticket is None else Repaired(action=Action.ADOPTED, ticket_id=ticket.id, run_id=run_id)


def settle(case: Case) -> Repaired | None:
    """Settle the pending run by what the store said; nothing where it was not asked."""
    run_id = winning_run(case)
    if run_id is None or case.finding is None:
        return None
    settled = settling.settle(case.executor, run_id, case.finding)
    if settled.result is not settling.Result.SETTLED or settled.ticket is None:
        return None
    return Repaired(action=Action.SETTLED, ticket_id=settled.ticket.id, run_id=run_id)


def fail(case: Case, *, kind: FailureKind = FailureKind.ATTEMPTS_EXHAUSTED) -> Repaired | None:
    """End the aspect visibly, with a sentence for counsel; its tickets are closed."""
    if case.aspect is Aspect.INGEST:
        processing.fail(case.executor, case.document, kind=kind, message=messages.NOT_READ)
        events = [EventType.INGEST_REQUESTED]
        close_document(case.executor, case.document.id, outcome=Outcome.REFUSED, event_types=events)
        return Repaired(action=Action.FAILED)
    run_id = winning_run(case)
    target = _target(case)
    if target is None:
        return None
    limits = case.settings.runs
    message = messages.NOT_REGISTERED if case.part is None else messages.NOT_UNDERSTOOD
    if is_asked(case):
        ticket = newest_request(case)
        if ticket is None:
            # without any request there is nothing to give up: ask, once more, and be counted
            return ask_again(case)
        abandon(case.executor, target, ticket, limits=limits, kind=kind, message=message)
    else:
        target.fail(case.executor, kind=kind, message=message, retryable=False, limits=limits)
    _close(case)
    return Repaired(action=Action.FAILED, run_id=run_id)


def is_asked(case: Case) -> bool:
    """Whether the aspect waits for its request to be served, rather than for a run's answer."""
    if case.aspect is Aspect.INGEST:
        return True
    if case.part is None:
        return case.document.registration_status is RegistrationStatus.QUEUED
    row = lock_part(case)
    return row is not None and row.state is PartState.REQUESTED


def lock_part(case: Case) -> PartRow | None:
    """The part's row, locked."""
    return None if case.part is None else parts.lock_part(case.executor, case.document, case.part)


def newest_request(case: Case) -> Ticket | None:
    """The newest request of the aspect."""
    if case.part is not None:
        return parts.newest_ticket(case.executor, case.document, case.part)
    ingest = case.aspect is Aspect.INGEST
    event = EventType.INGEST_REQUESTED if ingest else EventType.REGISTRATION_REQUESTED
    return newest(case.executor, subject_of(case.document, event))


def winning_run(case: Case) -> UUID | None:
    """What the mark says."""
    if case.part is None:
        return case.document.registration_run_id
    row = parts.read_part(case.executor, case.document, case.part)
    return None if row is None else row.run_id


def run_that_may_win(case: Case) -> Run | None:
    """The run that the mark names, if it is this aspect's, in this pass."""
    run_id = winning_run(case)
    run = None if run_id is None else read_run(case.executor, run_id)
    if run is None or run.document_id != case.document.id or run.purpose.value != purpose_of(case).value:
        return None
    return run if run.extraction_run_id == case.document.extraction_run_id else None


def newest_run(case: Case) -> Run | None:
    """The newest run of the aspect in the present pass."""
    row = case.executor.execute(
        select(*RUN_COLUMNS)
        .where(
            agent_run.c.document_id == case.document.id,
            agent_run.c.purpose == purpose_of(case).value,
            agent_run.c.extraction_run_id == case.document.extraction_run_id,
        )
        .order_by(agent_run.c.seq.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else as_run(row)


def purpose_of(case: Case) -> Purpose:
    """What the aspect's runs are for."""
    return Purpose.CLASSIFY if case.part is None else Purpose(case.part.value)


def _target(case: Case) -> Target | None:
    if case.part is None:
        return RegistrationTarget(case.document)
    row = lock_part(case)
    return None if row is None else PartTarget(case.document, row)


def _close(case: Case) -> None:
    """Close what is open of the aspect: an index over open tickets would bring it back for ever."""
    if case.part is None:
        events = [EventType.REGISTRATION_REQUESTED]
        close_document(case.executor, case.document.id, outcome=Outcome.REFUSED, event_types=events)
    else:
        of_part = [outbox.c.event_type.in_([each.value for each in parts.REQUESTS]), outbox.c.part == case.part.value]
        close_open(case.executor, and_(outbox.c.document_id == case.document.id, *of_part), outcome=Outcome.REFUSED)
    _close_letters(case, outcome=Outcome.REFUSED)


def _close_letters(case: Case, *, outcome: Outcome) -> None:
    """Close what announces any run of the aspect, of the present pass or of an earlier one: none of them can win now."""
    runs = select(agent_run.c.run_id).where(
        agent_run.c.document_id == case.document.id, agent_run.c.purpose == purpose_of(case).value
    )
    letters = and_(
        outbox.c.document_id == case.document.id,
        outbox.c.event_type == EventType.ARTIFACT_DELIVERED.value,
        outbox.c.run_id.in_(runs),
    )
    close_open(case.executor, letters, outcome=outcome)


#: The first part of a pass; the others are asked for by the chain.
FIRST_PART: Final = Part.CARD
