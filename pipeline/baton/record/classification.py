"""The applier of ``registrar.classification.v1``: intents, inbox items, verdict, and the first part of understanding.

Intents and items are carried out as the firm's own member, so that row-level security stands between an agent and
every other firm; the verdict and the tickets are the registrar's.
"""

from __future__ import annotations

from sqlalchemy import Connection

from baton.contract.classification import Intent, LinkDocument, Outcome, Turn
from baton.db.connect import as_member
from baton.db.rows import Document
from baton.db.states import Part, RegistrationStatus
from baton.record import assertions, inbox
from baton.record.firm_policy import read_policy
from baton.record.intents import Decided, Draft, decide, draft_of
from baton.record.letters import Letter
from baton.record.links import Directory, read_directory
from baton.registration import parts, service

FIRST_PART = Part.CARD


def apply_classification(connection: Connection, letter: Letter) -> None:
    """Carry a turn into the Record and end the registration.

    Understanding is asked for only where the verdict is *registered*: a document under review may yet be declined,
    re-read or moved, and each part is a paid run. Its retry asks once it is registered.
    """
    turn = letter.effect
    if not isinstance(turn, Turn):
        raise TypeError("the effect of a classification is a turn")
    document = letter.document
    with as_member(connection, document.firm_id):
        _carry_out(connection, letter, turn)
        items = (*inbox.items_of(turn), *inbox.duplicates_of(connection, document))
        inbox.raise_items(connection, document, items, run_id=letter.delivery.run_id)
    registered = turn.verdict.outcome is Outcome.REGISTERED
    if registered:
        parts.request(connection, document, FIRST_PART)
    service.conclude(
        connection,
        document,
        verdict=RegistrationStatus.REGISTERED if registered else RegistrationStatus.REGISTRATION_NEEDS_REVIEW,
        message=turn.verdict.note,
        understood=registered,
    )


def _carry_out(connection: Connection, letter: Letter, turn: Turn) -> None:
    executing = assertions.Turn(letter.document, letter.delivery.run_id)
    executing.retire(connection)
    if not turn.intents:
        return
    ours = executing.claim(connection, [intent.key for intent in turn.intents])
    intents = [intent for intent in turn.intents if intent.key in ours]
    if not intents:
        return
    policy = read_policy(connection)
    standing = executing.standing(connection)
    decided: dict[str, Decided | None] = {}
    for draft in _drafts(connection, letter.document, intents):
        decided[draft.key] = decide(draft, rule=policy[draft.kind], standing=standing)
    executing.write(connection, decided)


def _drafts(connection: Connection, document: Document, intents: list[Intent]) -> list[Draft]:
    directory = Directory(())
    if any(isinstance(intent, LinkDocument) for intent in intents):
        directory = read_directory(connection, document)
    drafts = []
    for intent in intents:
        if isinstance(intent, LinkDocument):
            found = directory.find(intent.target)
            drafts.append(draft_of(intent, target=found.target, unresolved=found.reason))
        else:
            drafts.append(draft_of(intent))
    return drafts
