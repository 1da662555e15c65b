"""``kill -9`` in the middle of work: who is struck, and how it is known to be at work just then."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from sqlalchemy import TextClause, text

from baton.db.connect import firm_transaction
from baton.demo import cast
from baton.demo.arrivals import Firm

_LOOK: Final = 0.005


@dataclass(frozen=True, slots=True)
class Victim:
    """One process, and the question whose answer is yes while it works on something of the firm's."""

    name: str
    doing: str
    at_work: TextClause


#: Tickets whose age tells them from the first batch's are not needed: that one is at rest.
VICTIMS: Final = (
    Victim(
        cast.RELAY_INGEST,
        "tickets waited to be sent",
        text(
            "SELECT EXISTS (SELECT FROM ops.document_ingest_outbox WHERE lane = 'ingest'"
            " AND dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL)"
        ),
    ),
    Victim(
        cast.EXTRACTOR,
        "a document was being read",
        text("SELECT EXISTS (SELECT FROM documents WHERE processing_status = 'extracting')"),
    ),
    Victim(
        cast.REGISTRAR,
        "a message was in its hand",
        text(
            "SELECT EXISTS (SELECT FROM ops.document_ingest_outbox WHERE lane = 'registrar'"
            " AND dispatched_at IS NOT NULL AND handled_at IS NULL AND hold_until > (SELECT app.clock()))"
        ),
    ),
    Victim(
        cast.SETTLER,
        "an agent's answer was on its way",
        text("SELECT EXISTS (SELECT FROM agents.agent_run WHERE state = 'pending' AND accepted_at IS NOT NULL)"),
    ),
)


@dataclass(frozen=True, slots=True)
class Blow:
    """One process was killed."""

    name: str
    doing: str
    pid: int
    at_work: bool
    """Whether it was seen at work just before; if not, it was killed when waiting for that took too long."""


class Blows:
    """Strikes each victim once, each as soon as it is at work, in a thread of its own."""

    def __init__(self, firm: Firm, killed: cast.Cast, *, patience: float = 30.0) -> None:
        """Prepare, strike nobody yet.

        :param patience: seconds to wait for a victim to be at work before it is struck anyway.
        """
        self._firm = firm
        self._cast = killed
        self._patience = patience
        self._struck: list[Blow] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._strike_all, name="blows", daemon=True)

    @property
    def struck(self) -> tuple[Blow, ...]:
        """The blows so far."""
        return tuple(self._struck)

    @property
    def done(self) -> bool:
        """Whether every victim was struck."""
        return len(self._struck) == len(VICTIMS)

    def start(self) -> None:
        """Begin to lie in wait."""
        self._thread.start()

    def stop(self) -> None:
        """Strike nobody any more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(10)

    def _strike_all(self) -> None:
        for victim in VICTIMS:
            at_work = self._await(victim)
            if self._stop.is_set():
                return
            pid = self._cast.kill(victim.name)
            self._struck.append(Blow(name=victim.name, doing=victim.doing, pid=pid, at_work=at_work))

    def _await(self, victim: Victim) -> bool:
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline and not self._stop.is_set():
            with firm_transaction(self._firm.engine, self._firm.id) as connection:
                if connection.execute(victim.at_work).scalar_one():
                    return True
            self._stop.wait(_LOOK)
        return False
