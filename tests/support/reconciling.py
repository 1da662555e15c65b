"""Reconcile passes over a matter's documents, and the ways in which things get lost."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from baton.aws.objects import Store
from baton.aws.queues import Queue
from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import Lane, RegistrationStatus
from baton.outbox.tickets import Ticket
from baton.reconcilers.engine import Reconciler
from baton.reconcilers.results import Mode, PassResult
from baton.registration import service
from baton.settings.agents import Runs
from baton.settings.model import Settings
from baton.settings.reconciling import Reconcile
from support.databases import Database
from support.matters import Matter

#: Nobody waits in a test: no waits between repairs, no scrub, no graces but the discrepancies' own.
QUICK = Reconcile(backoff_initial=0.0, backoff_max=0.0, scrub_rate=0.0)
#: Whatever a repair or a redrive may write; what was reserved of the minute is not among it.
_WRITTEN = (
    "documents",
    "ops.document_ingest_outbox",
    "agents.agent_run",
    "agents.agent_effect",
    "record.understanding_part",
    "ops.registration_repair",
    "ops.redrive",
    "ops.document_status_transition",
    "ops.audit_event",
    "inbox.item",
)
_ALL_ROWS = " UNION ALL ".join(f"SELECT '{table}', t::text FROM {table} t" for table in _WRITTEN)


@dataclass
class Loop:
    """Passes as the reconciler's, or the observer's, own role."""

    matter: Matter
    store: Store | None = None
    queues: dict[Lane, Queue] | None = None
    settings: Settings = field(default_factory=lambda: Settings(reconcile=QUICK, runs=Runs(max_attempts=3)))
    _kept: dict[tuple[Mode, Settings], Reconciler] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        """The test's database."""
        return self.matter.database

    def limited(self, **changes: Any) -> "Loop":
        """The same under other limits."""
        return replace(
            self, settings=replace(self.settings, reconcile=replace(self.settings.reconcile, **changes)), _kept={}
        )

    def reconciler(self, mode: Mode = Mode.REPAIR) -> Reconciler:
        """A new reconciler."""
        role = Role.RECONCILER if mode is Mode.REPAIR else Role.OBSERVER
        return Reconciler(
            self.database.engine(role), settings=self.settings, mode=mode, queues=self.queues, store=self.store
        )

    def repair(self) -> PassResult:
        """One pass of the loop that repairs."""
        return self._pass(Mode.REPAIR)

    def observe(self) -> PassResult:
        """One pass of the loop that observes."""
        return self._pass(Mode.OBSERVE)

    def _pass(self, mode: Mode) -> PassResult:
        key = (mode, self.settings)
        if key not in self._kept:
            self._kept[key] = self.reconciler(mode)
        return self._kept[key].run_once()

    # how things stand

    def consumers(self, *lanes: Lane, seconds_ago: float = 0.0, since: float = 7200.0) -> None:
        """Somebody consumes these lanes."""
        for lane in lanes or tuple(Lane):
            self.matter.prepare(
                "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, started_at, polled_at) VALUES"
                " (gen_random_uuid(), :lane, '1', app.clock() - make_interval(secs => :since),"
                " app.clock() - make_interval(secs => :ago))",
                lane=lane.value,
                since=since,
                ago=seconds_ago,
            )

    def queued(self) -> tuple[UUID, Ticket]:
        """A document that is queued; its ticket is with the relay."""
        document = self.matter.document()
        with self.matter.registrar() as connection:
            found = lock_document(connection, document)
            assert found is not None
            ticket = service.request(connection, found)
        assert ticket is not None
        return document, ticket

    def send(self, ticket: Ticket) -> None:
        """The ticket was sent a moment ago; nobody has received it."""
        self.matter.prepare(
            "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock(), message_id = 'm' WHERE id = :id",
            id=ticket.id,
        )

    def lose(self, ticket: Ticket | int, *, ago: float = 3600.0) -> None:
        """The ticket was sent and received, and its consumer died with the message in hand."""
        self.matter.prepare(
            "UPDATE ops.document_ingest_outbox SET"
            " dispatched_at = coalesce(dispatched_at, app.clock() - make_interval(secs => :ago + 60)),"
            " message_id = 'm', first_received_at = app.clock() - make_interval(secs => :ago), receive_count = 1,"
            " hold_until = app.clock() - make_interval(secs => :ago - 60) WHERE id = :id",
            id=ticket if isinstance(ticket, int) else ticket.id,
            ago=ago,
        )

    def lost(self, count: int = 1) -> list[UUID]:
        """Queued documents whose tickets are lost."""
        found = []
        for _ in range(count):
            document, ticket = self.queued()
            self.lose(ticket)
            found.append(document)
        return found

    def age(self, document: UUID, *, seconds: float = 86_400.0) -> None:
        """The document came into its states this long ago."""
        self.matter.prepare(
            "UPDATE documents SET processing_status_since = app.clock() - make_interval(secs => :seconds),"
            " registration_status_since = app.clock() - make_interval(secs => :seconds) WHERE id = :id",
            id=document,
            seconds=seconds,
        )

    def erase_request(self, document: UUID) -> None:
        """The document's registration was never asked for, though it is queued: row and mark are gone."""
        self.matter.prepare("DELETE FROM ops.document_ingest_outbox WHERE document_id = :id", id=document)
        self.matter.prepare("UPDATE documents SET registration_ticket_id = NULL WHERE id = :id", id=document)
        self.age(document)

    def without_parts(self) -> UUID:
        """A registered document whose parts were deleted by hand long ago: neither a mark nor a ticket shows it."""
        document = self.matter.registered()
        self.matter.prepare(
            "DELETE FROM ops.document_ingest_outbox WHERE id IN"
            " (SELECT ticket_id FROM record.understanding_part WHERE document_id = :id)",
            id=document,
        )
        self.matter.prepare("DELETE FROM record.understanding_part WHERE document_id = :id", id=document)
        self.age(document)
        return document

    # looking

    def everything(self) -> list[tuple[str, str]]:
        """All rows that a repair or a redrive may write."""
        return sorted((table, row) for table, row in self.matter.rows(_ALL_ROWS))

    def ledger(self, document: UUID | None = None) -> list[Any]:
        """Rows of the ledger, the oldest first."""
        return self.matter.rows(
            "SELECT * FROM ops.registration_repair WHERE CAST(:id AS uuid) IS NULL OR document_id = :id ORDER BY id",
            id=document,
        )

    def generations(self, document: UUID) -> list[int]:
        """Generations of the document's registration tickets."""
        rows = self.matter.rows(
            "SELECT generation FROM ops.document_ingest_outbox WHERE document_id = :id"
            " AND event_type = 'document.registration.requested' ORDER BY generation",
            id=document,
        )
        return [row[0] for row in rows]

    def statuses(self) -> Counter[RegistrationStatus]:
        """How many documents there are at each registration status."""
        rows = self.matter.rows("SELECT registration_status, count(*) FROM documents GROUP BY 1")
        return Counter({RegistrationStatus(status): count for status, count in rows})
