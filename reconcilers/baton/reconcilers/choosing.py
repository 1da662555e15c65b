"""What a redrive does about one aspect of one document: decided from the verdict, then done through the services.

A person who redrives waits for no grace, no backoff and no attempts; what is healthy and on its way is left alone unless
that was asked for, and a person's own decision (a document that needs review) is only taken back where it was named.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from baton.db.states import PartState, ProcessingStatus, RegistrationStatus
from baton.documents import doors
from baton.reconcilers import moves
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import Verdict
from baton.reconcilers.discrepancies.ticket_dead_lettered import TICKET_DEAD_LETTERED
from baton.reconcilers.rows import Action, Case, Repaired
from baton.reconcilers.selection import Selector
from baton.registration import parts, service


class Choice(StrEnum):
    """What is to be done about an aspect."""

    REPAIR = "repair"
    """The discrepancy's own repair."""
    AGAIN = "ask again"
    """The next generation of its request, or of its letter."""
    RETRY = "retry"
    """It failed, or waits for a person: asked for anew, as an attempt of its own."""
    RE_EXTRACT = "re-extract"
    """The file is read again, as a new epoch."""

    LEFT_TO_RELAY = "left: before the relay"
    LEFT_UNDER_WAY = "left: under way"
    LEFT_TO_SETTLER = "left: its run is settled first"
    LEFT_TO_PERSON = "left: a person decides"
    LEFT_TO_UPLOADER = "left: never uploaded"
    NOTHING = "nothing to do"

    @property
    def acts(self) -> bool:
        """Whether anything is done."""
        return self in (Choice.REPAIR, Choice.AGAIN, Choice.RETRY, Choice.RE_EXTRACT)


_PLAIN: Final = {
    "failed": Choice.RETRY,
    "awaiting_retry": Choice.RETRY,
    "unreadable": Choice.RE_EXTRACT,
    "undispatched": Choice.LEFT_TO_RELAY,
    "with_agent": Choice.LEFT_UNDER_WAY,
}
_UNDER_WAY: Final = frozenset(("waiting", "held"))
_NEEDS_PERSON: Final = {
    "registration_needs_review": RegistrationStatus.REGISTRATION_NEEDS_REVIEW,
    "text_needs_review": ProcessingStatus.NEEDS_REVIEW,
}


def choose(aspect: Aspect, verdict: Verdict, selector: Selector, *, named: bool) -> Choice:
    """Decide; pure.

    :param named: the document was named by itself.
    """
    if not _is_meant(aspect, verdict, selector):
        return Choice.NOTHING
    if verdict.impossible:
        return Choice.LEFT_TO_PERSON
    found = verdict.discrepancy or verdict.settling
    if found is None:
        return _of_healthy(aspect, verdict.name, selector, named=named)
    if found.name == TICKET_DEAD_LETTERED.name:
        return Choice.AGAIN
    if found.repair is None:
        return Choice.LEFT_TO_UPLOADER
    return Choice.LEFT_TO_SETTLER if found.looks_in_store else Choice.REPAIR


def _is_meant(aspect: Aspect, verdict: Verdict, selector: Selector) -> bool:
    """A discrepancy or a status names the aspect, too."""
    if selector.aspects and aspect not in selector.aspects:
        return False
    if selector.discrepancies:
        found = verdict.discrepancy or verdict.settling
        return found is not None and found.name in selector.discrepancies
    if selector.processing or selector.registration or selector.errors:
        by_status = bool(selector.processing and aspect is Aspect.INGEST)
        by_status |= bool(selector.registration and aspect is Aspect.REGISTRATION)
        by_error = bool(selector.errors) and not (selector.processing or selector.registration)
        return by_status or (by_error and aspect.part is None)
    return True


def _of_healthy(aspect: Aspect, name: str, selector: Selector, *, named: bool) -> Choice:
    if name in _NEEDS_PERSON:
        chosen = named or _NEEDS_PERSON[name] in (*selector.registration, *selector.processing)
        again = Choice.RE_EXTRACT if aspect is Aspect.INGEST else Choice.RETRY
        return again if chosen else Choice.LEFT_TO_PERSON
    if name in _UNDER_WAY:
        return Choice.AGAIN if selector.under_way else Choice.LEFT_UNDER_WAY
    return _PLAIN.get(name, Choice.NOTHING)


def carry_out(choice: Choice, case: Case, verdict: Verdict, *, actor: str) -> Repaired | None:
    """Do it, on the case's transaction and under its lock; ``None`` where there was nothing to be done after all."""
    if choice is Choice.REPAIR:
        found = verdict.discrepancy or verdict.settling
        return None if found is None or found.repair is None else found.repair(case)
    if choice is Choice.AGAIN:
        return moves.ask_again(case) if moves.is_asked(case) else moves.announce(case)
    if choice is Choice.RE_EXTRACT:
        document = doors.re_extract(case.executor, document_id=case.document.id, actor=actor)
        return Repaired(action=Action.REDROVE, ticket_id=document.ingest_ticket_id)
    if choice is not Choice.RETRY:
        return None
    if case.part is None:
        ticket = service.request(case.executor, case.document, explicit=True)
    else:
        row = moves.lock_part(case)
        if row is None or row.state is not PartState.FAILED:
            return None
        ticket = parts.retry(case.executor, case.document, row)
    return None if ticket is None else Repaired(action=Action.RETRIED, ticket_id=ticket.id)
