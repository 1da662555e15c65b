"""What a person decides about documents, one after the other: one that is refused does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import click
from sqlalchemy import Connection

from baton.cli import sights
from baton.cli.desks import Desk, open_desk
from baton.cli.failures import words_of
from baton.cli.printing import print_json, printable
from baton.cli.sights import Sight
from baton.settings.exits import Exit

#: Does it in the transaction it is given; the actor's name is for the audit trail.
Decision = Callable[[Connection, UUID, str], object]


@dataclass(frozen=True, slots=True)
class _Decided:
    document: UUID
    sight: Sight | None = None
    error: str | None = None
    code: Exit = Exit.OK

    def as_json(self) -> dict[str, object]:
        now = None if self.sight is None else self.sight.as_json()
        return {"id": self.document, "ok": self.error is None, "error": self.error, "now": now}


def decide(documents: Sequence[UUID], decision: Decision, *, firm: str | None, done: str, as_json: bool) -> Exit:
    """Carry the decision out for each document, in a transaction of its own, and tell what became of it.

    :param done: one word for a document where it was.
    """
    decided = []
    with open_desk(firm, connections=1) as desk:
        for document in dict.fromkeys(documents):
            each = _one(desk, document, decision)
            decided.append(each)
            if each.error is not None:
                click.echo(f"baton: {document}: {each.error}", err=True)
            elif not as_json and each.sight is not None:
                now = f"{each.sight.processing.value}, {each.sight.registration.value}"
                click.echo(f"{done} {document} {printable(each.sight.name)}: {now}")
    if as_json:
        print_json({"documents": [each.as_json() for each in decided]})
    codes = {each.code for each in decided if each.error is not None}
    if not codes:
        return Exit.OK
    return codes.pop() if len(codes) == 1 else Exit.FAILED


def _one(desk: Desk, document: UUID, decision: Decision) -> _Decided:
    try:
        with desk.transaction() as connection:
            decision(connection, document, desk.actor)
            (sight,) = sights.look(connection, [document])
    except Exception as error:  # noqa: BLE001 - told with the document; the others go on
        words, code = words_of(error)
        return _Decided(document, error=words, code=code)
    return _Decided(document, sight)
