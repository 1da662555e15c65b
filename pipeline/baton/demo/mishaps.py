"""The third act: what nobody's crash explains. Things are lost, deleted and edited; the loops find, name and heal them.

And some things look lost and are not: those must be left alone, and are counted, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text

from baton.aws import notifications
from baton.aws.clients import Clients
from baton.aws.errors import AwsError
from baton.aws.queues import configured
from baton.casefile.exhibits import Exhibit
from baton.db.connect import firm_transaction
from baton.demo import cast
from baton.demo.arrivals import Filed, Firm
from baton.demo.stage import ACCOUNT, Stage
from baton.settings.loading import load

_LOOK: Final = 0.05
_DARK: Final = 4.0  # seconds for which the agent, and before it the registrar, is away at least

_AT_WORK: Final = text(
    "SELECT d.processing_status = 'extracting' AND EXISTS (SELECT FROM ops.document_ingest_outbox t"
    " WHERE t.document_id = d.id AND t.first_received_at IS NOT NULL AND t.handled_at IS NULL)"
    " FROM documents d WHERE d.id = :id"
)
_READ: Final = text(
    "SELECT processing_status NOT IN ('pending', 'uploaded', 'stored', 'extracting') FROM documents WHERE id = :id"
)
_REPAIRS: Final = text(
    "SELECT discrepancy || ': ' || action FROM ops.registration_repair WHERE document_id = :id AND result = 'repaired'"
)
_WAITS: Final = text("SELECT count(*) FROM ops.document_ingest_outbox WHERE lane = 'registrar' AND handled_at IS NULL")
_TURNED_AWAY: Final = text("SELECT count(*) FROM agents.agent_run WHERE state = 'undispatched'")
_EDIT: Final = text("UPDATE documents SET understood_pass = NULL WHERE id = :id")
_EDITED: Final = text("SELECT understood_pass IS NULL FROM documents WHERE id = :id")


@dataclass(frozen=True, slots=True)
class Mishap:
    """One thing that went wrong, and what became of it."""

    what: str
    found: str
    """What it was found as, and what was done; or why it was left alone."""
    ok: bool


class Mishaps:
    """Lets everything go wrong, in a thread of its own, and watches what the loops make of it."""

    def __init__(
        self, firm: Firm, stage: Stage, company: cast.Cast, *, edited: Filed, slow: Exhibit, quick: Exhibit
    ) -> None:
        """Prepare, touch nothing yet.

        :param edited: a registered document, whose row is edited by hand.
        :param slow: an exhibit that takes long enough to be read for its message to be deleted meanwhile.
        :param quick: an exhibit for which registrar and agent are away.
        """
        self._firm = firm
        self._stage = stage
        self._cast = company
        self._edited = edited
        self._slow = slow
        self._quick = quick
        self._filed: list[Filed] = []
        self._lines: list[str] = []
        self._ended: list[Mishap] = []
        self._lost: Filed
        self._was_lost = False
        self._waited = self._moved = self._turned_away = 0
        self._stop = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mishaps", daemon=True)

    @property
    def filed(self) -> tuple[Filed, ...]:
        """What was uploaded for it so far."""
        return tuple(self._filed)

    @property
    def lines(self) -> tuple[str, ...]:
        """What happened so far, for people."""
        return tuple(self._lines)

    @property
    def ended(self) -> tuple[Mishap, ...]:
        """What became of each."""
        return tuple(self._ended)

    @property
    def done(self) -> bool:
        """Whether everything that had to be found was found."""
        return self._done.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Let nothing go wrong any more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(20)
        for name in (cast.REGISTRAR, cast.AGENT):
            self._cast.release(name)

    def _run(self) -> None:
        clients = Clients(load(self._stage.aws.environ(ACCOUNT)).aws)
        try:
            self._cast.begin(cast.RECONCILER)
            self._say("the reconcile loop is started")
            self._edit_by_hand()
            self._delete_messages(clients)
            self._forget_notification(clients)
            self._go_dark()
            self._await_healing(clients)
        finally:
            clients.close()

    # what goes wrong

    def _edit_by_hand(self) -> None:
        self._execute(_EDIT, self._edited.id)
        self._say(f"a row is edited by hand: {self._edited.exhibit.name}")

    def _delete_messages(self, clients: Clients) -> None:
        """Those of a queue, with a document's among them in its consumer's hand, and the consumer gone with it."""
        (self._lost,) = self._upload([self._slow])
        self._until(lambda: self._ask(_AT_WORK, self._lost.id) or self._ask(_READ, self._lost.id))
        self._was_lost = bool(self._ask(_AT_WORK, self._lost.id))
        self._cast.kill(cast.EXTRACTOR)
        ingest, *_ = configured(clients, self._stage.queues)
        ingest.purge()
        self._say(f"the ingest queue is emptied, and the extractor killed with {self._slow.name} in its hand")

    def _forget_notification(self, clients: Clients) -> None:
        with_nothing: Any = {}
        clients.s3.put_bucket_notification_configuration(
            Bucket=self._firm.store.name, NotificationConfiguration=with_nothing
        )
        self._say("the bucket's notification of artifacts is removed")

    def _go_dark(self) -> None:
        """First nobody consumes the registrar's queue, then nobody answers behind it."""
        self._cast.hold(cast.REGISTRAR)
        self._cast.hold(cast.AGENT)
        self._say("the registrar is stopped, and the agent goes dark")
        waiting = self._upload([self._quick])
        began = time.monotonic()
        self._until(lambda: self._ask(_WAITS) and time.monotonic() - began > _DARK)
        self._waited = int(self._ask(_WAITS) or 0)
        self._moved = sum(found.startswith("request_stalled") for each in waiting for found in self._repairs(each.id))
        self._cast.release(cast.REGISTRAR)
        self._say("the registrar is back")
        self._until(lambda: bool(self._ask(_TURNED_AWAY)), patience=20.0)
        self._turned_away = int(self._ask(_TURNED_AWAY) or 0)
        self._cast.release(cast.AGENT)
        self._say("the agent is back")

    # what becomes of it

    def _await_healing(self, clients: Clients) -> None:
        *_, results = configured(clients, self._stage.queues)

        def announced() -> bool:
            try:
                return not notifications.missing(clients, self._firm.store.name, results)
            except AwsError:
                return False

        mended = self._until(lambda: not self._ask(_EDITED, self._edited.id))
        self._tell("a row was edited by hand", self._edited, ok=mended)
        found = self._until(lambda: bool(self._repairs(self._lost.id)) or not self._was_lost)
        self._until(lambda: bool(self._ask(_READ, self._lost.id)))
        self._tell("a message was deleted in its consumer's hand", self._lost, ok=found)
        restored = self._until(announced)
        self._end("a notification was removed", "made again by the loop before its next pass", ok=restored)
        left = f"left alone: {self._waited} tickets waited for a consumer, none was sent twice"
        self._end("a consumer was stopped", left, ok=not self._moved)
        away = f"left alone: {self._turned_away} runs were never taken, their tickets waited for the agent"
        self._end("an agent went dark", away, ok=True)
        if not self._stop.is_set():
            self._done.set()

    def _tell(self, what: str, filed: Filed, *, ok: bool) -> None:
        repairs = self._repairs(filed.id)
        self._end(what, f"{filed.exhibit.name}: {'; '.join(repairs) or 'it had been quicker'}", ok=ok)

    def _end(self, what: str, found: str, *, ok: bool) -> None:
        self._ended.append(Mishap(what, found, ok))
        self._say(f"{what}: {found}")

    def _say(self, line: str) -> None:
        self._lines.append(line)

    def _upload(self, exhibits: Sequence[Exhibit]) -> tuple[Filed, ...]:
        filed = self._firm.upload(exhibits, batch=3)
        self._filed.extend(filed)
        return filed

    def _repairs(self, document: UUID) -> list[str]:
        with firm_transaction(self._firm.engine, self._firm.id) as connection:
            return list(connection.scalars(_REPAIRS, {"id": document}))

    def _ask(self, question: Any, document: UUID | None = None) -> Any:
        with firm_transaction(self._firm.engine, self._firm.id) as connection:
            return connection.execute(question, {} if document is None else {"id": document}).scalar_one_or_none()

    def _execute(self, statement: Any, document: UUID) -> None:
        with firm_transaction(self._firm.engine, self._firm.id) as connection:
            connection.execute(statement, {"id": document})

    def _until(self, condition: Callable[[], object], *, patience: float = 120.0) -> bool:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not self._stop.is_set():
            if condition():
                return True
            self._stop.wait(_LOOK)
        return False
